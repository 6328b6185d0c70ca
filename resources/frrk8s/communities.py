"""Communities in the notation of FRR-k8s and MetalLB: ``A:B``, or ``large:A:B:C``.

Neither has well-known names, communities as one number, or extended ones.
"""

from __future__ import annotations

import functools
from typing import TypeAlias

from resources.decimal_numbers import decimal_number
from resources.errors import shortened

Community: TypeAlias = int | tuple[int, int, int]
"""A standard one (RFC 1997) as a number, a large one (RFC 8092) as three."""


class UnknownNotationError(ValueError):
    """A text that is in neither notation: in MetalLB's objects it may be a name."""


@functools.lru_cache(maxsize=1024)
def parse_community(text: str) -> Community:
    """Return the value of a community in the notation of FRR-k8s and MetalLB.

    Raises `UnknownNotationError` for another number of parts, `ValueError` for parts that are no
    numbers or too large.
    """
    parts = text.split(":")
    if len(parts) == 2:
        high, low = (_number(text, part, 16) for part in parts)
        return high << 16 | low
    if len(parts) == 4 and parts[0] == "large":
        first, second, third = (_number(text, part, 32) for part in parts[1:])
        return (first, second, third)
    raise UnknownNotationError(f"{shortened(text)} is neither A:B nor large:A:B:C")


def _number(text: str, part: str, bits: int) -> int:
    limit = (1 << bits) - 1
    number = decimal_number(part, limit)
    if number is None:
        raise ValueError(f"{shortened(text)}: {shortened(part)} is not a number from 0 to {limit}")
    return number
