"""The routes that an Adj-RIB-In holds, and how they are read.

A family is one table from wire octets to shared paths, or no table at all where the import
policy leaves routes unchanged: `speaker.rib.adj_in.shared`. Nothing here changes a route.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, KeysView, Sequence
from typing import Final

from speaker.api import PolicyDecision
from speaker.nlri import Family
from speaker.rib.adj_in.counted_prefixes import CountedPrefixes
from speaker.rib.adj_in.path_ids import ReceivedPathIds
from speaker.rib.adj_in.shared import SharedAdjRibIn
from speaker.rib.adj_in.stale_mark import StaleMark
from speaker.rib.key_slices import key_slices
from speaker.rib.path import Path, Source
from speaker.rib.policy import CompiledPolicy
from speaker.rib.prefix_table import PrefixTable

EMPTY: Final[PrefixTable[Path]] = PrefixTable()
"""The routes of a family that a session does not have."""
NO_KEYS: Final[PrefixTable[bool]] = PrefixTable()
"""Its keys that are not installed."""
WALKED_KEYS: Final = 2000
"""Keys of a list of `HeldRoutes.keys`."""


class HeldRoutes:
    """The received routes of one session, to be read."""

    __slots__ = (
        "_counted",
        "_marks",
        "_mixed",
        "_moved",
        "_not_installed",
        "_policy",
        "_shared",
        "_tables",
        "changes",
        "path_ids",
        "source",
    )

    def __init__(
        self,
        source: Source,
        policy: CompiledPolicy | None,
        families: Iterable[Family],
        path_ids: ReceivedPathIds,
    ) -> None:
        """Start empty. A policy of None accepts every route unchanged."""
        self.source = source
        self.path_ids = path_ids
        self._policy = policy
        self._tables: dict[Family, PrefixTable[Path]] = {
            family: PrefixTable() for family in families
        }
        """Received routes by key. Of families in `_shared` only the ineligible ones."""
        self._shared: dict[Family, SharedAdjRibIn] = {}
        """The families whose eligible routes are held in the Loc-RIB alone."""
        self._counted: dict[Family, CountedPrefixes] = {}
        """The routes that are not kept, of families that have any."""
        self._not_installed: dict[Family, PrefixTable[bool]] = {
            family: PrefixTable() for family in self._tables
        }
        """Keys of `_tables` that are not in the Loc-RIB; not of families in `_shared`."""
        self._mixed: set[Family] = set()
        """The families of which eligible routes are in `_tables` although they are in `_shared`, while
        the policy changes from or to none. Their keys that are not in the Loc-RIB are noted."""
        self._moved = 0
        """Increases with routes that are moved from `_shared` to `_tables`."""
        self.changes = 0
        """Increases with every change of `_tables`."""
        self._marks: dict[Family, list[StaleMark]] = {}
        """The stale routes of the families that have any: the last mark, and earlier marks whose
        routes are being removed."""

    def _revision(self) -> int:
        return self.changes

    @property
    def accepts_nothing(self) -> bool:
        """Whether the policy rejects every route."""
        return self._policy is not None and self._policy.accepts_nothing

    def _has_installed(self, family: Family) -> bool:
        """Return whether any route of a table is in the Loc-RIB."""
        return len(self._tables[family]) > len(self._not_installed[family])

    def source_of(self, path_id: int) -> Source:
        """Return the source of the paths with a path identifier."""
        return self.path_ids.source_of(path_id)

    @property
    def families(self) -> KeysView[Family]:
        """The families of the session."""
        return self._tables.keys()

    def items(self, family: Family) -> Iterator[tuple[bytes, Path]]:
        """Iterate over the held routes of a family: key, and path as received."""
        table = self._tables.get(family, EMPTY)
        if family in self._shared:
            yield from (item for item in self._shared[family].items() if item[0] not in table)
        yield from table.items()

    def received(self, family: Family) -> int:
        """Return the number of received routes: held, or counted only."""
        return self.held(family) + len(self._counted.get(family, ()))

    def held(self, family: Family) -> int:
        """Return the number of held routes."""
        shared = self._shared.get(family)
        return len(self._tables.get(family, ())) + (0 if shared is None else shared.count)

    def announced(self, family: Family) -> int:
        """Return the number of routes that were received in the present session.

        Routes of the last session are not among them. Routes that a route refresh marks as stale are:
        a peer may send any number of BoRRs.
        """
        marks = self._marks.get(family)
        if not marks or marks[-1].refresh:
            return self.received(family)
        return marks[-1].fresh + self.counted(family)

    def counted(self, family: Family) -> int:
        """Return the number of received routes of a family that are counted and not kept."""
        return len(self._counted.get(family, ()))

    @property
    def not_kept(self) -> int:
        """The number of received routes that are counted and not kept, of all families."""
        return sum(map(len, self._counted.values()))

    def accepted(self, family: Family) -> int:
        """Return the number of held routes that are in the Loc-RIB."""
        shared = self._shared.get(family)
        count = 0 if shared is None else shared.count
        if family not in self._tables or (shared is not None and family not in self._mixed):
            return count
        return count + len(self._tables[family]) - len(self._not_installed[family])

    def stale(self, family: Family) -> int:
        """Return the number of stale routes."""
        marks = self._marks.get(family)
        return self.held(family) - marks[-1].fresh if marks else 0

    def stale_paths(self, family: Family) -> dict[Path, list[bytes]]:
        """Return the keys of the stale routes by path."""
        marks = self._marks.get(family)
        groups: dict[Path, list[bytes]] = {}
        if marks:
            routes = dict(self.items(family))
            stale = marks[-1].stale(routes)
            for nlri, path in routes.items():
                if nlri in stale:
                    groups.setdefault(path, []).append(nlri)
        return groups

    def by_path(
        self, family: Family, keys: Iterable[bytes]
    ) -> tuple[dict[Path, list[bytes]], list[bytes]]:
        """Group keys by path as received; the second list is the keys that are not held."""
        table = self._tables.get(family, EMPTY)
        shared = self._shared.get(family)
        if shared is not None and not table:
            return shared.by_path(keys)
        groups: dict[Path, list[bytes]] = {}
        gone: list[bytes] = []
        for key in keys:
            path = table.get(key)
            if path is None and shared is not None:
                path = shared.path(key)
            if path is None:
                gone.append(key)
            else:
                groups.setdefault(path, []).append(key)
        return groups, gone

    def keys(self, family: Family) -> Iterator[Sequence[bytes]]:
        """Iterate over lists with every key held now; duplicates may be among them.

        Keys that are no longer held may be among them, too. Routes may change between two lists. An
        empty list is a turn for others.
        """
        moved = -1
        while moved != self._moved:
            # Again, where a policy has moved routes of the Loc-RIB to a table that was read before.
            moved = self._moved
            # First: routes that become ineligible later are in the log.
            yield from self._tables.get(family, EMPTY).walk(WALKED_KEYS, self._revision)
            shared = self._shared.get(family)
            if shared is not None:
                yield from shared.prefix_lists()

    def decide(self, family: Family, path: Path, nlri: bytes) -> PolicyDecision:
        """Return what the import policy decides about a held route, and by what."""
        if self._policy is None:
            return PolicyDecision(accepted=True)
        return self._policy.decide(path, family, nlri)

    @property
    def accepts_all(self) -> bool:
        """Whether every eligible route is imported unchanged."""
        return self._policy is None

    def imported(
        self, family: Family, path: Path, keys: Sequence[bytes]
    ) -> Iterable[tuple[Path | None, Sequence[bytes]]]:
        """Return routes by their path in the Loc-RIB; None for routes that are not imported."""
        policy = self._policy
        if path.rejected is not None or self.accepts_nothing:
            return ((None, keys),)
        if policy is None:
            return ((path, keys),)
        skip = 4 if family in self.path_ids.families else 0
        return (
            (policy.apply(path, family, lists), part)
            for lists, part in policy.group_by_matching_lists(family, keys, skip)
        )

    def routes(
        self, family: Family, size: int, prefixes: Iterable[bytes] | None = None
    ) -> Iterator[list[tuple[bytes, Path, Path | None]]]:
        """Iterate over the routes: prefix, path as received, and path in the Loc-RIB or None.

        In slices of about ``size`` looked-up keys; a slice may be empty, and routes may change
        between two slices. With ``prefixes`` only over their routes, in their order.
        """
        if prefixes is None:
            slices = self._distinct_keys(family, size)
        else:
            slices = key_slices((self._keys_of(family, nlri) for nlri in prefixes), size)
        for keys in slices:
            yield list(self._routes_of(family, keys))

    def _distinct_keys(self, family: Family, size: int) -> Iterator[Sequence[bytes]]:
        """As `keys`, in lists of about ``size``, once each."""
        table = self._tables.get(family, EMPTY)
        yield from table.walk(size, self._revision)
        shared = self._shared.get(family)
        if shared is not None:
            for keys in shared.distinct_prefixes(size):
                # The log may have prefixes that became ineligible since.
                yield [key for key in keys if key not in table]

    def _keys_of(self, family: Family, nlri: bytes) -> Sequence[bytes]:
        """Return the keys that a prefix may have."""
        return self.path_ids.keys_of(family, nlri) if family in self.path_ids.families else (nlri,)

    def _routes_of(
        self, family: Family, keys: Iterable[bytes]
    ) -> Iterator[tuple[bytes, Path, Path | None]]:
        """Iterate over the routes that some keys have now."""
        table = self._tables.get(family, EMPTY)
        shared = self._shared.get(family)
        not_installed = self._not_installed.get(family, NO_KEYS)
        skip = 4 if family in self.path_ids.families else 0
        policy = self._policy
        for key in keys:
            path = table.get(key)
            if path is None and shared is not None:
                path = shared.path(key)
            if path is None:
                continue
            used: Path | None = path
            if path.rejected is not None or self.accepts_nothing or key in not_installed:
                used = None
            elif policy is not None:
                used = policy.apply(path, family, policy.matching_lists(family, key[skip:]))
            yield key[skip:], path, used
