"""Stale routes of one family: all that were held at a moment and have not been announced since.

A mark keeps the keys that were announced since, so that marking a table takes no time, whatever its
size. They are in many small sets: none of them grows for longer than a millisecond.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, final

_MAX_KEYS: Final = 32_768
"""Keys of one set; the next message starts a new set."""


@final
class StaleMark:
    """The held keys of a family that are not stale; every other held key is."""

    __slots__ = ("_sets", "fresh", "refresh", "swept")

    def __init__(self, *, refresh: bool = False) -> None:
        """Start with all held keys stale; ``refresh``: because the peer announces them again."""
        self.refresh = refresh
        self._sets: list[set[bytes]] = [set()]
        self.fresh = 0
        """Their number."""
        self.swept = False
        """Whether the stale routes are being removed."""

    def announced(self, keys: Iterable[bytes]) -> None:
        """Note keys that were announced, and are held."""
        last = self._sets[-1]
        if len(last) >= _MAX_KEYS:
            last = set()
            self._sets.append(last)
        if len(self._sets) > 1:
            keys = set(keys).difference(*self._sets[:-1])
        before = len(last)
        last.update(keys)
        self.fresh += len(last) - before

    def gone(self, keys: Iterable[bytes]) -> None:
        """Note keys that are no longer held."""
        for some in self._sets:
            before = len(some)
            some.difference_update(keys)
            self.fresh -= before - len(some)

    def stale(self, keys: Iterable[bytes]) -> set[bytes]:
        """Return which of some held keys are stale."""
        return set(keys).difference(*self._sets)

    def fresh_of(self, keys: Sequence[bytes]) -> list[bytes]:
        """Return the keys that are not stale, in their order."""
        stale = self.stale(keys)
        return [key for key in keys if key not in stale]

    def release(self) -> Iterator[int]:
        """Forget all keys in steps; yield the number of each step."""
        while self._sets:
            yield len(self._sets.pop())
        self.fresh = 0
