"""Imports structlog and prometheus_client without what no program here uses: 2 and 3 MB of a process.

structlog imports rich and greenlet, where they are installed, for tracebacks on a terminal and for
threads of another kind. prometheus_client imports its web servers, and with them the standard
library's. `waggle demo` draws with rich, and is another process.
"""

from __future__ import annotations

import sys

UNUSED_BY_STRUCTLOG = ("greenlet", "rich")


def import_lean() -> None:
    """Import structlog, for all modules that import it later, and enter prometheus_client.

    Unused libraries can be imported as before. Does nothing for what is already imported.
    """
    from resources.bare_packages import enter_bare  # --help needs none of it

    enter_bare("prometheus_client")
    if "structlog" in sys.modules:
        return
    unused = [name for name in UNUSED_BY_STRUCTLOG if name not in sys.modules]
    for name in unused:
        sys.modules[name] = None  # type: ignore[assignment]  # its import fails
    try:
        import structlog  # noqa: F401
    finally:
        for name in unused:
            del sys.modules[name]
