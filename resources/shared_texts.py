"""Equal texts of many objects as one text, which goes with the last of the objects."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Final

SHARED_TEXTS: Final = 1 << 16
"""The most texts that are kept where the interpreter's own table never forgets one."""


def sharing(version: tuple[int, int]) -> Callable[[str], str]:
    """Return the function that shares equal texts, in a version of Python.

    Interned texts are never freed in Python 3.12 (CPython issue 113993), and names of objects come and
    go: there the last ones are shared.
    """
    return lru_cache(SHARED_TEXTS)(str) if version == (3, 12) else sys.intern


shared: Final = sharing(sys.version_info[:2])
