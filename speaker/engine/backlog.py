"""The backlog of a stream of best paths: changed prefixes, each with the best path before.

Two halves, so that neither a new change waits for a hundred thousand others, nor these for what
changes all the time: the newest changes are taken from the newer half, and the older one, to which
nothing is added, is worked off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, final

from speaker.nlri import Family
from speaker.rib.path import Path

Prefixes: TypeAlias = dict[bytes, Path | None]
"""Prefix -> the best path that the reader was given last; None for no route."""


@final
class Backlog:
    """The backlog of one stream; no prefix is in it twice."""

    __slots__ = ("_newer", "_older", "swaps")

    def __init__(self) -> None:
        """Start empty."""
        self._newer: dict[Family, Prefixes] = {}
        self._older: dict[Family, Prefixes] = {}
        self.swaps = 0
        """How often the older half was empty, and the newer one took its place."""

    def __bool__(self) -> bool:
        """Whether there are prefixes."""
        return bool(self._newer or self._older)

    def __len__(self) -> int:
        return sum(len(some) for half in (self._newer, self._older) for some in half.values())

    def add(self, family: Family, prefixes: Iterable[tuple[bytes, Path | None]]) -> None:
        """Add prefixes with their best path before; of a prefix twice the first one remains."""
        newer = self._newer.setdefault(family, {})
        older = self._older.get(family)
        if older:
            for prefix, path in prefixes:
                if prefix not in older:
                    newer.setdefault(prefix, path)
        elif newer:
            for prefix, path in prefixes:
                newer.setdefault(prefix, path)
        else:
            newer.update(prefixes)
        if not newer:
            del self._newer[family]

    def is_disjoint(self, family: Family, nlri: Sequence[bytes]) -> bool:
        """Return whether none of the prefixes is in the backlog."""
        return all(
            family not in half or half[family].keys().isdisjoint(nlri)
            for half in (self._newer, self._older)
        )

    def discard(self, family: Family, nlri: Iterable[bytes]) -> None:
        """Remove prefixes, wherever they are."""
        for half in (self._newer, self._older):
            prefixes = half.get(family)
            if prefixes:
                for prefix in nlri:
                    prefixes.pop(prefix, None)
                if not prefixes:
                    del half[family]

    def take(self, limit: int) -> Mapping[Family, Prefixes]:
        """Remove and return up to ``limit`` prefixes: half of them the newest, half the oldest."""
        if not self._older:
            self._older, self._newer = self._newer, {}
            self.swaps += 1
        taken: dict[Family, Prefixes] = {}
        moved = _move(self._older, taken, limit // 2 if self._newer else limit)
        _move(self._newer, taken, limit - moved)
        return taken


def _move(half: dict[Family, Prefixes], taken: dict[Family, Prefixes], limit: int) -> int:
    """Move up to ``limit`` prefixes, the newest ones first; returns their number."""
    moved = 0
    while half and moved < limit:
        family, prefixes = next(reversed(half.items()))
        of_family = taken.setdefault(family, {})
        while prefixes and moved < limit:
            prefix, path = prefixes.popitem()
            of_family[prefix] = path
            moved += 1
        if not prefixes:
            del half[family]
    return moved
