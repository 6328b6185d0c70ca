"""The table of a RIB: octets to shared values, in the order of insertion, in one of two forms.

* `dictionary`: in Python, and the interface of both
* `native.c`: in C, with a fifth of the memory; `in_c` gives it the interface
* `build`: compiles it, where a compiler and Python's headers are; used by the installation

`PrefixTable` is the one in C where it was built; with ``WAGGLE_PURE=1`` in the environment the other.
To type checkers it is always the one in C, whose interface is the smaller one; so it is to mypyc, which
would compile the methods of a dictionary for any class of that base.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from speaker.rib.prefix_table import dictionary

__all__ = ["FORM", "PrefixTable"]

FORM: str
"""The language of `PrefixTable`: Python or C; why Python, where the one in C is built but unusable."""


def _choose() -> tuple[Any, str]:
    """Return the class and the language of the table."""
    if os.environ.get("WAGGLE_PURE", "") in ("", "0"):
        try:
            from speaker.rib.prefix_table.in_c import NativePrefixTable
        except ModuleNotFoundError:
            pass
        except ImportError as error:
            return dictionary.PrefixTable, f"Python: {error}"
        else:
            return NativePrefixTable, "C"
    return dictionary.PrefixTable, "Python"


if TYPE_CHECKING:
    from speaker.rib.prefix_table.in_c import NativePrefixTable as PrefixTable
else:
    PrefixTable, FORM = _choose()
