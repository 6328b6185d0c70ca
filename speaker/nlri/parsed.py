"""Prefixes as text that were parsed: of the many of a configuration few change at a time.

As many are remembered as a configuration has, and some more: an object whose prefixes change again and
again takes the memory of one. What was not used while others came is forgotten in two steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import filterfalse
from typing import Final

from speaker.iana import Family
from speaker.nlri.text import prefix_to_wire

SPARE: Final = 4_096
"""Prefixes that are remembered beside twice as many as the list that was parsed last has."""
MOST: Final = 1 << 18
"""Prefixes that are remembered where no list bounds them."""

_known: dict[str, tuple[Family, bytes]] = {}
_former: dict[str, tuple[Family, bytes]] = {}
"""The prefixes before `_known` was begun; used ones move there."""


def parsed_prefix(text: str) -> tuple[Family, bytes]:
    """Return the family and the wire form of a prefix, and remember it. Raises ValueError."""
    known = _known.get(text)
    if known is None:
        known = _former.get(text) or prefix_to_wire(text)
        if text.rpartition("/")[2].isdigit():
            if len(_known) >= MOST:
                _begin({})
            _known[text] = known
    return known


def remembered_prefixes(texts: Sequence[str]) -> list[tuple[Family, bytes] | None]:
    """Return what is remembered of some prefixes, whose lengths are decimal numbers."""
    return list(map(_known.get, texts))


def parse_prefixes(texts: Sequence[str]) -> None:
    """Parse prefixes for `parsed_prefix`. Raises ValueError."""
    for text in filterfalse(_known.__contains__, texts):
        parsed_prefix(text)
    bound_prefixes(texts)


def bound_prefixes(texts: Sequence[str]) -> None:
    """Begin to forget others than these prefixes, which were parsed, if there are many others."""
    if len(_known) > 2 * len(texts) + SPARE:
        _begin({text: _known[text] for text in texts if text in _known})


def _begin(present: dict[str, tuple[Family, bytes]]) -> None:
    global _known, _former
    _known, _former = present, _known
