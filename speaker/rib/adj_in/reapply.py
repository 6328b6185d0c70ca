"""The held routes of an Adj-RIB-In to which a changed import policy is still to be applied.

Or that are still to be dropped, where only a number of received routes is kept.
In slices, so that a large table does not stop the event loop; and only to the routes that the change
can concern, which are looked up where they are few. Bounded by numbers of keys and not by time: a
recorded run replays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple, final

from speaker.nlri import Family
from speaker.rib.policy import PrefixList

SLICE_KEYS: Final = 2000
"""The number of keys of a slice: a few milliseconds."""
LOOKUP_FACTOR: Final = 4
"""Prefixes are looked up one by one if they are fewer than the keys by this factor."""


class _Walk(NamedTuple):
    """The rest of the keys of a family."""

    family: Family
    keys: Iterator[bytes]
    only: PrefixList | None
    """None: the policy is applied to every key."""
    skip: int
    """Octets of a path identifier before each prefix."""


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
        self, family: Family, table: Collection[bytes], only: PrefixList | None, *, skip: int
    ) -> None:
        """Add the keys of a table: of these prefixes only, or (None) all of them."""
        if not table:
            return
        if only is None or skip or only.size(family) * LOOKUP_FACTOR > len(table):
            self._walks.append(_Walk(family, iter(list(table)), only, skip))
            return
        keys = dict.fromkeys(nlri for nlri in only.members(family) if nlri in table)
        if keys:
            self._walks.append(_Walk(family, iter(keys), None, skip))

    def add_keys(self, family: Family, keys: Sequence[bytes]) -> None:
        """Add keys of a family."""
        self._walks.append(_Walk(family, iter(keys), None, 0))

    def take(self) -> Iterator[tuple[Family, list[bytes]]]:
        """Yield the keys of the next slice, by family; keys that are no longer held are among them."""
        budget = SLICE_KEYS
        while self._walks and budget > 0:
            family, keys, only, skip = self._walks[0]
            chunk = list(islice(keys, budget))
            if len(chunk) < budget:
                del self._walks[0]
            budget -= len(chunk)
            if only is not None:
                chunk, _ = only.split(family, chunk, skip)
            if chunk:
                yield family, chunk
