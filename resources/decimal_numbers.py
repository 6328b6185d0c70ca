"""Decimal numbers in texts of objects: annotations, prefix lengths, communities.

``int()`` raises for more than 4,300 digits (Python's own limit), and takes signs, spaces, underscores
and digits of other scripts.
"""

from __future__ import annotations

from typing import Final

_LONGEST: Final = 20
"""Digits of the largest number of 64 bits; leading zeros are within them."""


def decimal_number(text: str, highest: int) -> int | None:
    """Return a text of ASCII digits as a number; None for another text, and above ``highest``."""
    if len(text) > _LONGEST or not (text.isascii() and text.isdigit()):
        return None
    number = int(text)
    return number if number <= highest else None
