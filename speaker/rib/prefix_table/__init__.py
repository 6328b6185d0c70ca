"""The table of a RIB: octets to shared values, in the order of insertion, in one of two forms.

* `dictionary`: in Python, and the interface of both
* `native.c`: in C, with a fifth of the memory; `in_c` gives it the interface
* `build`: compiles it, where a compiler and Python's headers are; used by the installation

`PrefixTable` is the one in C where it was built; with ``WAGGLE_PURE=1`` in the environment the other.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from speaker.rib.prefix_table.dictionary import PrefixTable

__all__ = ["FORM", "PrefixTable"]

FORM = "Python"
"""The language of `PrefixTable`: Python or C."""

if not TYPE_CHECKING and os.environ.get("WAGGLE_PURE", "") in ("", "0"):
    try:
        from speaker.rib.prefix_table.in_c import NativePrefixTable as PrefixTable
    except ImportError:
        pass
    else:
        FORM = "C"
