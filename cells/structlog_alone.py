"""Imports structlog without rich.

structlog imports rich, where it is installed, for tracebacks on a terminal, which no program here
prints: 66 modules and 5 MB. `waggle demo` draws with rich, and is another process.
"""

from __future__ import annotations

import sys


def import_structlog() -> None:
    """Import structlog, for all modules that import it later; rich can be imported as before."""
    if "structlog" in sys.modules or "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # its import fails
    try:
        import structlog  # noqa: F401
    finally:
        del sys.modules["rich"]
