"""The initial table for new members of an update group in steps: a full table is a second of work.

Its prefixes are grouped by their best path, and encoded path by path, as they are when they are read.
What changes until the end is noted, and sent as it is then, before the End-of-RIB markers: until then
the new members get no other changes, and all others get theirs at once. Changes of a family with
ADD-PATH are sent to the new members at once, too: its Adj-RIB-Out has the routes that they were sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from speaker.nlri import Family
from speaker.rib import pack, prefix_groups
from speaker.rib.changed_prefixes import Changed, mark_unread, without_changed
from speaker.rib.loc_rib import LocRib, TableChanges
from speaker.rib.path import Path, SourceSession
from speaker.rib.prefix_groups import (
    PATH_UNITS,
    STEP_UNITS,
    PrefixGroups,
    group_in_steps,
    parts,
    pieces,
)
from speaker.rib.update_encoder import UpdateBatch, join_batches

if TYPE_CHECKING:
    from speaker.rib.update_group import GroupMember, UpdateGroup

    M = TypeVar("M", bound=GroupMember)
else:
    M = TypeVar("M")

LARGE_TABLE: Final = 10_000
"""Prefixes of a table that is sent in steps; a smaller one takes ten milliseconds."""
PREFIXES_PER_UNIT: Final = 20
ADD_PATH_PREFIX_UNITS: Final = 3
"""The work for a prefix with ADD-PATH, whose paths are looked up and stored."""
CHANGED_PREFIX_UNITS: Final = 5
"""The work for a prefix that has changed meanwhile."""
LAST_PREFIXES: Final = 1_000
"""Prefixes that have changed and are sent together with the End-of-RIB markers."""
ROUNDS: Final = 8
"""A table that changes during each of them is completed at once."""

Counts = dict[Family, dict[SourceSession, int]]
"""Exported prefixes, by the session that they came from."""


class InitialTable(Generic[M]):
    """One table on its way to the members that came at the same time."""

    def __init__(self, group: UpdateGroup[M], members: dict[M, None]) -> None:
        self.members = members
        """The sessions that get it; a session that ends is removed."""
        self.steps: Iterator[int] = iter(())
        """The steps that are left, once `start` was called."""
        self._group = group
        self._changed: dict[Family, Changed] = {}
        self._counts: Counts = {}
        self._sent: list[UpdateBatch] = []

    def start(self, flush: Callable[[], None], send: Callable[[M, UpdateBatch], None]) -> None:
        """Begin: ``flush`` sends all changes of the tables to the members that are complete."""
        self.steps = self._completed(flush, send)

    def _completed(
        self, flush: Callable[[], None], send: Callable[[M, UpdateBatch], None]
    ) -> Iterator[int]:
        """Perform the steps; after an internal error the sessions get the changes at least."""
        if not self.members:
            # The instance may be another router by now, whose groups have these tables.
            return
        try:
            yield from self._steps(flush, send)
        except Exception:
            self._group.abandon(self)
            raise

    def counts_of(self, family: Family) -> dict[SourceSession, int]:
        """Return the exported prefixes of a family, as far as they have been sent."""
        return self._counts.setdefault(family, {})

    def note(self, changes: Mapping[Family, TableChanges]) -> None:
        """Note changes of the tables, which the new members do not get yet."""
        for family, of_family in changes.items():
            if family in self._group.rules.add_path or family not in self._group.rules.sendable:
                continue
            changed = self._changed.setdefault(family, {})
            for old, _, nlri in of_family.best:
                for prefix in nlri:
                    changed.setdefault(prefix, old)

    def _steps(
        self, flush: Callable[[], None], send: Callable[[M, UpdateBatch], None]
    ) -> Iterator[int]:
        """Send the table, what has changed, and the End-of-RIB markers; yields units of work."""
        group = self._group
        revisions = group.revisions
        for family in group.rules.families:
            if family not in group.tables or family not in group.rules.sendable:
                continue
            groups: PrefixGroups = {}
            unread = partial(self._unread, family, flush)
            none_read = partial(self._none_read, family, flush)
            # Nothing of the family has been read: what has changed so far is in its table.
            flush()
            self._changed.pop(family, None)
            for units in group_in_steps(group.tables[family], groups, unread, none_read):
                yield units
                if not self.members:
                    return
            of_family = self._send_add_path if family in group.rules.add_path else self._send_paths
            for units in of_family(family, groups, send):
                yield units
                if not self.members:
                    return
        for _ in range(ROUNDS):
            flush()
            changed, self._changed = self._changed, {}
            if sum(map(len, changed.values())) <= LAST_PREFIXES:
                break
            for family, prefixes in changed.items():
                while prefixes:
                    flush()
                    self._send_changed(family, prefixes, send)
                    yield STEP_UNITS
                    if not self.members:
                        return
            changed = {}
        else:
            flush()
            changed = self._changed
        for family, prefixes in changed.items():
            while prefixes:
                self._send_changed(family, prefixes, send)
        markers = [UpdateBatch(pack.end_of_rib(family), 1, 0) for family in group.rules.families]
        self._send(markers, send)
        table = join_batches(self._sent) if group.revisions == revisions else None
        group.complete(self, self._counts, None if table is None else (revisions, table))

    def _none_read(self, family: Family, flush: Callable[[], None]) -> None:
        """Note that the prefixes that have changed so far were not read before."""
        flush()
        mark_unread(self._changed, family)

    def _unread(
        self, family: Family, flush: Callable[[], None], prefixes: Sequence[bytes]
    ) -> Sequence[bytes]:
        """Return the prefixes that have not changed; the others are read with the changes."""
        flush()
        return without_changed(self._changed.get(family), prefixes)

    def _send_paths(
        self, family: Family, groups: PrefixGroups, send: Callable[[M, UpdateBatch], None]
    ) -> Iterator[int]:
        counts = self.counts_of(family)
        batches: list[UpdateBatch] = []
        units = 0
        for path, some in parts(groups, prefix_groups.STEP_PREFIXES):
            for origin, part in self._group.encode_path(family, path, some, batches):
                counts[origin] = counts.get(origin, 0) + len(part)
            units += PATH_UNITS + len(some) // PREFIXES_PER_UNIT
            if units >= STEP_UNITS:
                self._send(batches, send)
                batches = []
                yield units
                units = 0
        self._send(batches, send)

    def _send_add_path(
        self, family: Family, groups: PrefixGroups, send: Callable[[M, UpdateBatch], None]
    ) -> Iterator[int]:
        counts = self.counts_of(family)
        for units, some in pieces(groups, ADD_PATH_PREFIX_UNITS):
            batches: list[UpdateBatch] = []
            self._group.encode_all_paths(family, some, counts, batches)
            self._send(batches, send)
            yield units

    def _send_changed(
        self, family: Family, prefixes: Changed, send: Callable[[M, UpdateBatch], None]
    ) -> None:
        """Send the present routes of some prefixes, which are removed."""
        some = {}
        for _ in range(min(len(prefixes), STEP_UNITS // CHANGED_PREFIX_UNITS)):
            prefix, path = prefixes.popitem()
            some[prefix] = path
        present = self._group.tables[family].best_of(some)
        counts = self.counts_of(family)
        later = self._changed.get(family, {})
        batches: list[UpdateBatch] = []
        for prefix, before in some.items():
            # What has changed again is sent as it is now.
            if later is not prefixes:
                later.pop(prefix, None)
            if isinstance(before, Path):
                for origin, _ in self._group.exported_parts(family, before, (prefix,)):
                    counts[origin] = counts.get(origin, 0) - 1
        sent: set[bytes] = set()
        private: list[tuple[SourceSession, UpdateBatch]] = []
        for path, nlri in present.items():
            for origin, part in self._group.encode_path(family, path, nlri, batches):
                counts[origin] = counts.get(origin, 0) + len(part)
                sent.update(part)
            private.append((path.source.session, self._group.withdrawn(family, nlri)))
        gone = [prefix for prefix in some if prefix not in sent]
        if gone:
            batches.append(self._group.withdrawn(family, gone))
        self._send(batches, send)
        for member in self.members:
            for source, batch in private:
                # A route that a member had of another peer, and that is its own now.
                if member.source.session is source:
                    send(member, batch)

    def _send(self, batches: Sequence[UpdateBatch], send: Callable[[M, UpdateBatch], None]) -> None:
        for member, batch in self.addressed(batches):
            send(member, batch)

    def addressed(self, batches: Sequence[UpdateBatch]) -> Iterator[tuple[M, UpdateBatch]]:
        """Yield UPDATEs for each member without its own routes: a part of the table, or changes."""
        if not batches:
            return
        common = join_batches(batches)
        self._sent.append(common)
        special = {batch.exclude for batch in batches}
        for member in self.members:
            source = member.source.session
            if source not in special:
                yield member, common
            elif some := [batch for batch in batches if batch.exclude is not source]:
                yield member, join_batches(some)


def table_size(tables: Mapping[Family, LocRib], families: Iterable[Family]) -> int:
    """Return the number of prefixes of some families."""
    return sum(len(tables[family]) for family in families if family in tables)
