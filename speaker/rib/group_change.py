"""The difference between two update groups, for sessions that change from one to the other, in steps.

The sessions remain members of the group before until the end, and are sent what changes by its
rules. What they are to be sent besides is encoded meanwhile: the routes that the group after exports
otherwise, path by path, and then what changed in between, as it is then. So a session never has the
routes of two groups, and a change that is abandoned leaves nothing behind. With ADD-PATH the change
fills an Adj-RIB-Out for the group after, where that has none: it becomes the group's at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from speaker.nlri import Family
from speaker.rib import initial_table, prefix_groups
from speaker.rib.adj_out_add_path import AddPathAdjRibOut, wire
from speaker.rib.changed_prefixes import UNREAD, Changed, mark_unread, without_changed
from speaker.rib.export import ComparedPaths
from speaker.rib.loc_rib import LocRib, TableChanges
from speaker.rib.path import Path, SourceSession
from speaker.rib.prefix_groups import PrefixGroups, group_in_steps, pieces
from speaker.rib.update_encoder import UpdateBatch, join_batches

if TYPE_CHECKING:
    from speaker.rib.update_group import GroupMember, UpdateGroup

    M = TypeVar("M", bound=GroupMember)
else:
    M = TypeVar("M")

COMPARED_PREFIX_UNITS: Final = 1
"""The work for a prefix: two look-ups, a comparison, and mostly an announcement."""
ALL_PATHS_UNITS: Final = 2
"""The work for a prefix with ADD-PATH."""


class GroupChange(Generic[M]):
    """Sessions of one update group on their way to another."""

    def __init__(self, before: UpdateGroup[M], after: UpdateGroup[M]) -> None:
        self.before = before
        self.after = after
        self._all_paths = frozenset(after.rules.add_path)
        """The families with ADD-PATH, the same in both groups."""
        self.members: dict[M, list[UpdateBatch]] = {}
        """The sessions, with what they are to be sent; a session that ends is removed."""
        self._changed: dict[Family, Changed] = {}
        """Changes in the tables of the group after."""
        self._changed_before: dict[Family, dict[bytes, None]] = {}
        """Changes in the tables of the group before, where these are others."""
        self._counts: dict[Family, dict[SourceSession, int]] = {}
        """The prefixes that the group after exports, by the session that they came from."""
        self._adj_out: dict[Family, AddPathAdjRibOut] = {}
        """An Adj-RIB-Out for the group after, unless it has a filled one."""

    def note(self, tables: Mapping[Family, LocRib], changes: Mapping[Family, TableChanges]) -> None:
        """Note changes, which the sessions are sent by the rules of the group before."""
        if tables is self.after.tables:
            for family, of_family in changes.items():
                if family not in self.after.rules.families:
                    continue
                changed = self._changed.setdefault(family, {})
                if family in self._all_paths:
                    for prefix in sorted(of_family.prefixes() - changed.keys()):
                        changed[prefix] = self._stored_paths(family, prefix)
                    continue
                for old, _, nlri in of_family.best:
                    for prefix in nlri:
                        changed.setdefault(prefix, old)
        elif tables is self.before.tables:
            for family, of_family in changes.items():
                if family not in self.after.rules.families:
                    continue
                prefixes = self._changed_before.setdefault(family, {})
                if family in self._all_paths:
                    prefixes.update(dict.fromkeys(sorted(of_family.prefixes())))
                    continue
                for _, _, nlri in of_family.best:
                    prefixes.update(dict.fromkeys(nlri))

    def _stored_paths(self, family: Family, prefix: bytes) -> tuple[Path, ...]:
        """Return the paths of a prefix that the group after exported before a change."""
        adj_out = self._adj_out.get(family) or self.after.adj_out(family)
        return () if adj_out is None else adj_out.paths(prefix)

    def steps(
        self, flush: Callable[[], None], move: Callable[[M, UpdateBatch], None]
    ) -> Iterator[int]:
        """Perform the change; yields units of work.

        ``flush`` sends all changes of the tables to the members of all groups, and calls `note`;
        ``move`` makes a session a member of the group after, and sends it UPDATEs.
        """
        if not self.members:
            # The instance may be another router by now, whose groups have these tables.
            return
        flush()
        if not self.after.is_counted:
            self._adj_out = self.after.empty_adj_out()
        for units in self._difference(flush):
            yield units
            if not self.members:
                return
        self.after.take_counts(self._counts, self._adj_out)
        for member, batches in list(self.members.items()):
            move(member, join_batches(batches))

    def _difference(self, flush: Callable[[], None]) -> Iterator[int]:
        """Encode the difference; nothing has changed since its last part when it ends."""
        for family in self.after.rules.families:
            yield from self._compare_tables(family, flush)
        for _ in range(initial_table.ROUNDS):
            flush()
            changed, self._changed = self._changed, {}
            changed_before, self._changed_before = self._changed_before, {}
            size = sum(map(len, changed.values())) + sum(map(len, changed_before.values()))
            if size <= initial_table.LAST_PREFIXES:
                break
            for _ in self._encode_changes(changed, changed_before):
                yield prefix_groups.STEP_UNITS
                flush()
        else:
            flush()
            changed, changed_before = self._changed, self._changed_before
        for _ in self._encode_changes(changed, changed_before):
            pass

    # ----------------------------------------------------------------- tables

    def _compare_tables(self, family: Family, flush: Callable[[], None]) -> Iterator[int]:
        work = ALL_PATHS_UNITS if family in self._all_paths else COMPARED_PREFIX_UNITS
        after = self.after.exported_table(family)
        if after is not None:
            groups: PrefixGroups = {}
            unread = partial(self._unread, family, flush)
            none_read = partial(self._none_read, family, flush)
            none_read()
            yield from group_in_steps(after, groups, unread, none_read)
            for units, prefixes in pieces(groups, work):
                self._compare(family, unread(prefixes))
                yield units
        before = self.before.exported_table(family)
        if before is not None and before is not after:
            groups = {}
            yield from group_in_steps(before, groups)
            for units, prefixes in pieces(groups, work):
                flush()
                changed = self._changed.get(family, {})
                only_before = [
                    prefix
                    for prefix in prefixes
                    if prefix not in changed and (after is None or prefix not in after)
                ]
                self._compare(family, only_before)
                yield units

    def _none_read(self, family: Family, flush: Callable[[], None]) -> None:
        """Note that the prefixes that have changed so far were not compared before."""
        flush()
        mark_unread(self._changed, family)

    def _unread(
        self, family: Family, flush: Callable[[], None], prefixes: Sequence[bytes]
    ) -> Sequence[bytes]:
        """Return the prefixes that have not changed; the others are encoded with the changes."""
        flush()
        return without_changed(self._changed.get(family), prefixes)

    def _compare(self, family: Family, prefixes: Sequence[bytes]) -> None:
        """Encode the difference of some prefixes, which have not changed."""
        before, after = self.before, self.after
        batches: list[UpdateBatch] = []
        own: dict[SourceSession, list[bytes]] = {}
        had = {
            nlri: path for path, part in before.by_path(family, prefixes).items() for nlri in part
        }
        compared = ComparedPaths(before.rules, after.rules, family)
        for path, part in self._read(family, prefixes).items():
            origin = path.source.session
            announced: list[bytes] = []
            for nlri in part:
                known = had.pop(nlri, None)
                if known is not None:
                    if compared.are_alike(known, path):
                        continue
                    if known.source.session is not origin and not origin.local:
                        own.setdefault(origin, []).append(nlri)
                announced.append(nlri)
            if announced:
                after.announce(family, path, announced, batches)
        if had:
            batches.append(after.withdrawn(family, list(had)))
        self._add(family, batches, own)

    def _read(self, family: Family, prefixes: Sequence[bytes]) -> Mapping[Path, Sequence[bytes]]:
        """Return the routes of the group after for prefixes that were not read before, and count."""
        counts = self._counts.setdefault(family, {})
        adj_out = self._adj_out.get(family)
        if adj_out is not None:
            return self.after.update_adj_out(adj_out, family, prefixes, counts)[1]
        routes = self.after.by_path(family, prefixes)
        for path, part in routes.items():
            origin = path.source.session
            counts[origin] = counts.get(origin, 0) + len(part)
        return routes

    # ---------------------------------------------------------------- changes

    def _encode_changes(
        self, changed: Mapping[Family, Changed], changed_before: Mapping[Family, dict[bytes, None]]
    ) -> Iterator[None]:
        """Encode prefixes that changed as they are now, some in each step; they are removed."""
        size = max(1, prefix_groups.STEP_UNITS // initial_table.CHANGED_PREFIX_UNITS)
        for family, paths in changed.items():
            counts = self._counts.setdefault(family, {})
            while paths:
                later = self._changed.get(family, {})
                some: Changed = {}
                for _ in range(min(len(paths), size)):
                    prefix, path = paths.popitem()
                    some[prefix] = path
                    if later is not paths:
                        # What has changed again is encoded as it is now.
                        later.pop(prefix, None)
                    if isinstance(path, Path):
                        for origin, _ in self.after.exported_parts(family, path, (prefix,)):
                            counts[origin] = counts.get(origin, 0) - 1
                for origin, number in self._encode_present(family, some):
                    counts[origin] = counts.get(origin, 0) + number
                yield
        for family, prefixes in changed_before.items():
            while prefixes:
                # With ADD-PATH, what is encoded here has to be withdrawn by the next change.
                later = self._changed.get(family, {}) if family in self._all_paths else {}
                some = {}
                for _ in range(min(len(prefixes), size)):
                    prefix, _ = prefixes.popitem()
                    some[prefix] = later.pop(prefix, UNREAD)
                self._encode_present(family, some)
                yield

    def _encode_present(self, family: Family, prefixes: Changed) -> list[tuple[SourceSession, int]]:
        """Encode what the group after exports now; returns the numbers of prefixes by session.

        With ADD-PATH they are counted already.
        """
        if family in self._all_paths:
            self._encode_all_paths(family, prefixes)
            return []
        batches: list[UpdateBatch] = []
        own: dict[SourceSession, list[bytes]] = {}
        exported: list[tuple[SourceSession, int]] = []
        present: set[bytes] = set()
        for path, part in self.after.by_path(family, prefixes).items():
            origin = path.source.session
            self.after.announce(family, path, part, batches)
            exported.append((origin, len(part)))
            present.update(part)
            if not origin.local:
                own.setdefault(origin, []).extend(part)
        gone = [prefix for prefix in prefixes if prefix not in present]
        if gone:
            batches.append(self.after.withdrawn(family, gone))
        self._add(family, batches, own)
        return exported

    def _encode_all_paths(self, family: Family, prefixes: Changed) -> None:
        """Encode all paths that the group after exports now, in a family with ADD-PATH.

        Other paths that the sessions have, or that were encoded before, are withdrawn.
        """
        adj_out = self._adj_out.get(family)
        if adj_out is not None:
            counts = self._counts.setdefault(family, {})
            self.after.update_adj_out(adj_out, family, prefixes, counts)
            present: Mapping[Path, Sequence[bytes]] = adj_out.by_path(prefixes)
        else:
            present = self.after.by_path(family, prefixes)
        had = [nlri for part in self.before.by_path(family, prefixes).values() for nlri in part]
        for prefix, paths in prefixes.items():
            if isinstance(paths, tuple):
                had += [wire(path, prefix) for path in paths]
        remaining = {nlri for part in present.values() for nlri in part}
        gone = [nlri for nlri in dict.fromkeys(had) if nlri not in remaining]
        batches = [self.after.withdrawn(family, gone)] if gone else []
        for path, part in present.items():
            self.after.announce(family, path, part, batches)
        self._add(family, batches, {})

    def _add(
        self,
        family: Family,
        batches: Sequence[UpdateBatch],
        own: Mapping[SourceSession, Sequence[bytes]],
    ) -> None:
        """Add UPDATEs for each session: without its ``own`` routes, which it is withdrawn."""
        if batches:
            common = join_batches(batches)
            special = {batch.exclude for batch in batches}
            for member, parts in self.members.items():
                source = member.source.session
                if source not in special:
                    parts.append(common)
                elif some := [batch for batch in batches if batch.exclude is not source]:
                    parts.append(join_batches(some))
        for source, nlri in own.items():
            for member, parts in self.members.items():
                if member.source.session is source:
                    parts.append(self.after.withdrawn(family, nlri))
