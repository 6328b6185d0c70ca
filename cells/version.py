"""The version of this program.

`importlib.metadata` imports archives, tables and mail for it: 0.8 MB of a process.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from pathlib import Path
from typing import Final

DISTRIBUTION: Final = "waggle-bgp"
_BEFORE: Final = "waggle_bgp-"
_AFTER: Final = ".dist-info"


@functools.cache
def version() -> str:
    """Return the version of the installed distribution, by the name of its directory."""
    for place in sys.path:
        with contextlib.suppress(OSError):  # it may not be searched, as imports do not mind either
            for directory in Path(place).glob(f"{_BEFORE}*{_AFTER}"):
                return directory.name.removeprefix(_BEFORE).removesuffix(_AFTER)
    import importlib.metadata  # an archive, or a directory of another layout

    return importlib.metadata.version(DISTRIBUTION)
