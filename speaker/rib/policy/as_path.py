"""Patterns for AS paths: AS numbers, ranges, ``?`` for one hop and ``*`` for any number of hops.

A match takes time proportional to path times pattern, whatever the peer sends: no regular expression.
"""

from __future__ import annotations

import re
from typing import Final, final

from speaker.attribute import AS_SET, AsPath
from speaker.attribute.as_path import without_confederation

_RANGE: Final = re.compile(r"(\d+)(?:\.\.(\d+))?")
_MANY: Final = None
"""The word ``*``."""
_ONE: Final = (0, 0xFFFFFFFF)


@final
class AsPathPattern:
    """A compiled pattern. Raises ValueError with the invalid word."""

    __slots__ = ("_words",)

    def __init__(self, text: str) -> None:
        self._words: list[tuple[int, int] | None] = []
        for word in text.split():
            if word == "*":
                if not self._words or self._words[-1] is not _MANY:
                    self._words.append(_MANY)
                continue
            if word == "?":
                self._words.append(_ONE)
                continue
            match = _RANGE.fullmatch(word)
            low = int(match[1]) if match else -1
            high = int(match[2] or match[1]) if match else -1
            if not 0 <= low <= high <= 0xFFFFFFFF:
                raise ValueError(f"AS path {text!r}: {word!r} is not an AS number, a range, ? or *")
            self._words.append((low, high))

    def matches(self, path: AsPath) -> bool:
        """Return whether the whole path matches; confederation segments are ignored."""
        hops = _hops(path)
        words = self._words
        word = hop = 0
        # Backtracking: after a mismatch the last ``*`` takes one hop more.
        retry_word, retry_hop = -1, 0
        while hop < len(hops):
            current = words[word] if word < len(words) else ()
            if current is _MANY:
                retry_word, retry_hop = word, hop
                word += 1
            elif current and any(current[0] <= asn <= current[1] for asn in hops[hop]):
                word += 1
                hop += 1
            elif retry_word >= 0:
                retry_hop += 1
                word, hop = retry_word + 1, retry_hop
            else:
                return False
        return all(each is _MANY for each in words[word:])


def _hops(path: AsPath) -> list[tuple[int, ...]]:
    hops: list[tuple[int, ...]] = []
    for kind, asns in without_confederation(path):
        if kind == AS_SET:
            hops.append(asns)
        else:
            hops.extend((asn,) for asn in asns)
    return hops
