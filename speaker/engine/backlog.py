"""The backlog of a stream of best paths: changed prefixes, each with the best path before.

Two halves, so that neither a new change waits for a hundred thousand others, nor these for what
changes all the time: the newest changes are taken from the newer half, and the older one, to which
nothing is added, is worked off. Urgent prefixes precede both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TypeAlias, final

from speaker.nlri import Family
from speaker.rib.path import Path

Prefixes: TypeAlias = dict[bytes, Path | None]
"""Prefix -> the best path that the reader was given last; None for no route."""


@final
class Backlog:
    """The backlog of one stream; no prefix is in it twice."""

    __slots__ = ("_newer", "_older", "_urgent", "swaps")

    def __init__(self) -> None:
        """Start empty."""
        self._urgent: dict[Family, Prefixes] = {}
        self._newer: dict[Family, Prefixes] = {}
        self._older: dict[Family, Prefixes] = {}
        self.swaps = 0
        """How often the older half was empty, and the newer one took its place."""

    def __bool__(self) -> bool:
        """Whether there are prefixes."""
        return bool(self._newer or self._older or self._urgent)

    def __len__(self) -> int:
        return sum(len(some) for part in self._parts for some in part.values())

    @property
    def _parts(self) -> tuple[dict[Family, Prefixes], ...]:
        return (self._urgent, self._newer, self._older)

    @property
    def has_urgent(self) -> bool:
        """Whether there are urgent prefixes."""
        return bool(self._urgent)

    @property
    def has_others(self) -> bool:
        """Whether there are prefixes that are not urgent."""
        return bool(self._newer or self._older)

    def add(self, family: Family, prefixes: Iterable[tuple[bytes, Path | None]]) -> None:
        """Add prefixes with their best path before; of a prefix twice the first one remains."""
        newer = self._newer.setdefault(family, {})
        others = [part[family] for part in (self._urgent, self._older) if family in part]
        if others:
            for prefix, path in prefixes:
                if not any(prefix in part for part in others):
                    newer.setdefault(prefix, path)
        elif newer:
            for prefix, path in prefixes:
                newer.setdefault(prefix, path)
        else:
            newer.update(prefixes)
        if not newer:
            del self._newer[family]

    def add_urgent(self, family: Family, prefixes: Iterable[tuple[bytes, Path | None]]) -> None:
        """Add some prefixes that precede all others, also prefixes that are queued already."""
        urgent = self._urgent.setdefault(family, {})
        for prefix, path in prefixes:
            before = path
            for half in (self._newer, self._older):
                known = half.get(family)
                if known and prefix in known:
                    before = known.pop(prefix)
                    if not known:
                        del half[family]
            urgent.setdefault(prefix, before)
        if not urgent:
            del self._urgent[family]

    def is_disjoint(self, family: Family, nlri: Sequence[bytes]) -> bool:
        """Return whether none of the prefixes is in the backlog."""
        return all(
            family not in part or part[family].keys().isdisjoint(nlri) for part in self._parts
        )

    def discard(self, family: Family, nlri: Iterable[bytes]) -> None:
        """Remove prefixes, wherever they are."""
        for part in self._parts:
            prefixes = part.get(family)
            if prefixes:
                for prefix in nlri:
                    prefixes.pop(prefix, None)
                if not prefixes:
                    del part[family]

    def take_urgent(self, limit: int) -> Mapping[Family, Prefixes]:
        """Remove and return up to ``limit`` urgent prefixes, the oldest ones of each family."""
        taken: dict[Family, Prefixes] = {}
        families = sorted(self._urgent, key=lambda family: len(self._urgent[family]))
        for number, family in enumerate(families):
            urgent = self._urgent[family]
            some = list(islice(urgent, max(1, limit // (len(families) - number))))
            taken[family] = {prefix: urgent.pop(prefix) for prefix in some}
            limit -= len(some)
            if not urgent:
                del self._urgent[family]
        return taken

    def take(self, limit: int) -> Mapping[Family, Prefixes]:
        """Remove and return up to ``limit`` others: half of them the newest, half the oldest."""
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
