"""The held routes of an Adj-RIB-In to which a changed import policy is still to be applied.

Or that are still to be dropped, where only a number of received routes is kept.
In slices, so that a large table does not stop the event loop; and only to the routes that the change
can concern, which are looked up where they are few. Bounded by numbers of keys and not by time: a
recorded run replays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, final

from speaker.nlri import Family
from speaker.rib.key_slices import key_slices
from speaker.rib.path import Path
from speaker.rib.policy import PrefixList
from speaker.rib.prefix_table import PrefixTable

SLICE_KEYS: Final = 2000
"""The number of keys of a slice: a few milliseconds."""
LOOKUP_FACTOR: Final = 4
"""Prefixes are looked up one by one if they are fewer than the keys by this factor."""


class _Walk(NamedTuple):
    """The rest of the keys of a family."""

    family: Family
    lists: Iterator[Sequence[bytes]]
    only: PrefixList | None
    """None: the policy is applied to every key."""
    skip: int
    """Octets of a path identifier before each prefix."""
    is_beyond: bool = False
    """Whether the keys are of routes that are only to be dropped."""


@final
class PendingKeys:
    """The keys that are still to be looked at, of all families of one Adj-RIB-In."""

    __slots__ = ("_walks",)

    def __init__(self) -> None:
        self._walks: list[_Walk] = []

    def __bool__(self) -> bool:
        """Whether any key is left."""
        return bool(self._walks)

    def clear(self) -> None:
        """Forget the keys."""
        self._walks.clear()

    def add(
        self,
        family: Family,
        table: PrefixTable[Path],
        revision: Callable[[], int],
        only: PrefixList | None,
        *,
        skip: int,
    ) -> None:
        """Add the keys of a table: of these prefixes only, or (None) all of them."""
        if not table:
            return
        lists: Iterator[Sequence[bytes]]
        if only is None or skip or only.size(family) * LOOKUP_FACTOR > len(table):
            lists = table.walk(SLICE_KEYS, revision)
        else:
            keys = list(dict.fromkeys(nlri for nlri in only.members(family) if nlri in table))
            if not keys:
                return
            lists = (keys[at : at + SLICE_KEYS] for at in range(0, len(keys), SLICE_KEYS))
            only = None
        self._walks.append(_Walk(family, lists, only, skip))

    def add_beyond(
        self, family: Family, table: PrefixTable[Path], revision: Callable[[], int], number: int
    ) -> None:
        """Add the keys of a table but for a number of them, the first ones."""
        lists = _beyond(table.walk(SLICE_KEYS, revision), number)
        self._walks.append(_Walk(family, lists, None, 0, is_beyond=True))

    def add_lists(self, family: Family, lists: Iterator[Sequence[bytes]]) -> None:
        """Add lists of keys of any length."""
        self._walks.append(_Walk(family, key_slices(lists, SLICE_KEYS), None, 0))

    def take(self) -> Iterator[tuple[Family, list[bytes], bool]]:
        """Yield the keys of the next slice, by family; keys that are no longer held are among them.

        True behind them: the routes are only to be dropped.
        """
        budget = SLICE_KEYS
        while self._walks and budget > 0:
            family, lists, only, skip, is_beyond = self._walks[0]
            keys = next(lists, None)
            if keys is None:
                del self._walks[0]
                continue
            if not keys:
                return
            budget -= len(keys)
            chunk = list(keys) if only is None else only.split(family, keys, skip)[0]
            if chunk:
                yield family, chunk, is_beyond


def _beyond(lists: Iterator[Sequence[bytes]], number: int) -> Iterator[Sequence[bytes]]:
    """Yield lists without the first keys of them; an empty one is a turn for others."""
    for keys in lists:
        yield keys[number:]
        number = max(0, number - len(keys))
