"""Update groups: peers with the same export rules, which get the same routes as the same octets.

What is advertised to a group is a function of the table (`speaker.rib.exported_routes`), so a change
of the best path is encoded from the path before and after, once for all members. A member does not
get its own routes back: only a member that a change comes from gets octets of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, Generic, TypeVar

from speaker.nlri import Family
from speaker.rib.adj_out_add_path import AddPathAdjRibOut
from speaker.rib.export import ExportRules, same_update
from speaker.rib.exported_routes import ExportedRoutes, GroupMember
from speaker.rib.initial_table import (
    ADD_PATH_PREFIX_UNITS,
    LARGE_TABLE,
    InitialTable,
    table_size,
)
from speaker.rib.loc_rib import Change, LocRib, TableChanges
from speaker.rib.path import Path, SourceSession
from speaker.rib.update_encoder import UpdateBatch, join_batches

M = TypeVar("M", bound=GroupMember)

LARGE_DIFFERENCE: Final = 4_000
"""The work of tables (`UpdateGroup.table_work`) whose difference to others is encoded in steps."""


class UpdateGroup(ExportedRoutes, Generic[M]):
    """The sessions with equal export rules, over the tables of one route set or of the Loc-RIB."""

    __slots__ = (
        "_counts",
        "_full",
        "_left_out_counted",
        "_own_uncounted",
        "_sendable",
        "_unsendable",
        "arriving",
        "exports_nothing",
        "initial_table",
        "members",
        "pending_members",
    )

    def __init__(self, rules: ExportRules, tables: Mapping[Family, LocRib]) -> None:
        super().__init__(rules, tables)
        self.members: dict[M, None] = {}
        """The sessions that have the whole table; in order, so that a run is reproducible."""
        self.pending_members: dict[M, None] = {}
        """The sessions that wait for their initial table."""
        self.initial_table: InitialTable[M] | None = None
        """The table that new sessions are sent in steps."""
        self._own_uncounted = False
        """Whether `_counts` lacks own routes of the only member; counted before anything needs it."""
        self._left_out_counted = 0
        """`LeftOutRoutes.total` when `_counts` was computed last."""
        self._counts: dict[Family, dict[SourceSession, int]] | None = None
        """Exported prefixes by the session that they came from; None before the first member."""
        self._full: tuple[object, UpdateBatch] | None = None
        """The initial table as encoded last, behind the revisions of its tables."""
        self._sendable = rules.sendable
        self._unsendable: dict[Family, tuple[int, int]] = {}
        """Revision and exported prefixes of the families that cannot be sent."""
        self.exports_nothing: Final = not self._sendable
        self.arriving = 0
        """The number of changes of sessions to this group that are on their way."""

    def join(self, member: M) -> None:
        """Add a session without any routes; it gets the table from `export_initial_table`."""
        self.pending_members[member] = None

    def leave(self, member: M) -> None:
        """Remove a session."""
        self._encoder.forget_received()
        self.pending_members.pop(member, None)
        self.members.pop(member, None)
        if self.initial_table is not None:
            self.initial_table.members.pop(member, None)
            if not self.initial_table.members:
                self._end_initial_table()

    def forget_received(self) -> None:
        """Release received paths that are cached."""
        self._encoder.forget_received()

    @property
    def empty(self) -> bool:
        """Whether the group has no session."""
        return not (self.members or self.pending_members or self.initial_table or self.arriving)

    @property
    def is_large(self) -> bool:
        """Whether the difference to another group is encoded in steps."""
        return self.table_work >= LARGE_DIFFERENCE

    @property
    def table_work(self) -> int:
        """The prefixes of its tables; of families with ADD-PATH each as several."""
        size = table_size(self.tables, self._sendable)
        all_paths = [family for family in self.rules.add_path if family in self._sendable]
        return size + (ADD_PATH_PREFIX_UNITS - 1) * table_size(self.tables, all_paths)

    def is_pending(self, member: M) -> bool:
        """Whether a session waits for its initial table, or for the rest of it."""
        return member in self.pending_members or self.is_sent_in_steps(member)

    def is_sent_in_steps(self, member: M) -> bool:
        """Whether a session has a part of its initial table."""
        return self.initial_table is not None and member in self.initial_table.members

    # ---------------------------------------------------------------- changes

    def export_changes(
        self, changes: Mapping[Family, TableChanges]
    ) -> Iterator[tuple[M, UpdateBatch]]:
        """Return the UPDATEs for each member, from the table before the changes to the one after."""
        initial = self.initial_table
        if initial is not None:
            initial.note(changes)
        batches: list[UpdateBatch] = []
        all_paths: list[UpdateBatch] = []
        private: dict[SourceSession, list[UpdateBatch]] = {}
        for family in self._sendable:
            changed = changes.get(family)
            if changed is None:
                continue
            if family in self._add_path:
                counts = self._counts_of(family)
                self._encode_add_path(family, changed.prefixes(), counts, all_paths)
            elif changed.best and self._counts is not None:
                self._encode_changes(family, changed.best, batches, private)
        batches += all_paths
        # Before its first member the group has no routes that changed.
        sent = _addressed(() if self._counts is None else self.members, batches, private)
        if initial is None or not all_paths:
            return sent
        return chain(initial.addressed(all_paths), sent)

    def _counts_of(self, family: Family) -> dict[SourceSession, int]:
        """Return the exported prefixes of a family; before the first member, its own."""
        if self._counts is not None:
            return self._counts.setdefault(family, {})
        return {} if self.initial_table is None else self.initial_table.counts_of(family)

    def _encode_changes(
        self,
        family: Family,
        changes: Sequence[Change],
        batches: list[UpdateBatch],
        private: dict[SourceSession, list[UpdateBatch]],
    ) -> None:
        """Encode changes of best paths: for all members, and ``private`` for single sources."""
        assert self._counts is not None  # noqa: S101  checked by `export_changes`
        counts = self._counts.setdefault(family, {})
        encoder = self._encoder
        gone: list[bytes] = []
        # With one member, its own routes are exported to no one: a full table from the only peer of
        # the group. Their changes are skipped, and counted when a second member joins.
        only = next(iter(self.members)).source.session if len(self.members) == 1 else None
        for old, new, nlri in changes:
            if only is not None and _is_from(old, only) and _is_from(new, only):
                self._own_uncounted = True
                continue
            for lists, part in self._by_lists(family, nlri):
                was = None if old is None else self._exported(family, old, lists)
                now = None if new is None else self._exported(family, new, lists)
                if self.left_out.total:
                    was, now = self._encodable(family, was, now, part)
                if was is not None:
                    if now is not None and same_update(was, now, family, self.rules):
                        continue
                    origin = was.source.session
                    counts[origin] = counts.get(origin, 0) - len(part)
                if now is None:
                    if was is not None:
                        gone.extend(part)
                    continue
                origin = now.source.session
                source = None if origin.local else origin
                if (source is None or source is not only) and not encoder.announce(
                    family, now, part, source, batches
                ):
                    self.left_out.count(family, origin, len(part))
                    continue
                counts[origin] = counts.get(origin, 0) + len(part)
                if was is not None and source is not None and was.source.session is not source:
                    # The member's own route became best: the route that it has is withdrawn.
                    private.setdefault(source, []).append(encoder.withdraw(family, part))
        if gone:
            # The source's own peer gets the withdrawal of a route that it does not have: harmless,
            # and the octets stay equal for all members.
            batches.append(encoder.withdraw(family, gone))

    def _encodable(
        self, family: Family, was: Path | None, now: Path | None, nlri: Sequence[bytes]
    ) -> tuple[Path | None, Path | None]:
        """Return the exported paths before and after without paths that cannot be encoded.

        Needed only once a path could not be: all paths of before were announced.
        """
        if was is not None and self._encoder.encoding_error(family, was) is not None:
            self.left_out.count(family, was.source.session, -len(nlri))
            was = None
        if now is not None:
            error = self._encoder.encoding_error(family, now)
            if error is not None:
                self.left_out.count(family, now.source.session, len(nlri))
                self.left_out.add(family, nlri, error)
                now = None
        return was, now

    def _encode_add_path(
        self,
        family: Family,
        touched: Iterable[bytes],
        counts: dict[SourceSession, int],
        batches: list[UpdateBatch],
    ) -> None:
        """Encode the changes of all paths of a family with ADD-PATH."""
        gone, announced = self._update_add_path(family, touched, counts)
        # Withdrawals first: a path identifier may be reused in the same batch.
        if gone:
            batches.append(self._encoder.withdraw(family, gone))
        for path, wires in announced.items():
            if not self.announce(family, path, wires, batches):
                # Its paths leave the Adj-RIB-Out again.
                self._update_add_path(family, [wire[4:] for wire in wires], counts)

    # --------------------------------------------------------------- whole table

    def take_initial_table(self) -> InitialTable[M] | None:
        """Return the table for the pending members, to be sent in steps; None if it takes short."""
        if self.table_work < LARGE_TABLE:
            return None
        pending = self.pending_members
        is_encoded = self._full is not None and self._full[0] == self.revisions
        if is_encoded and self._counts is not None and not self._own_uncounted:
            counts = self._counts.values()
            sources = [member.source.session for member in pending]
            if not any(of_family.get(source) for of_family in counts for source in sources):
                return None
        if self._counts is None:
            # Filled as it is sent.
            self._add_path = self.empty_adj_out()
        self.pending_members = {}
        self.initial_table = InitialTable(self, pending)
        return self.initial_table

    def encode_all_paths(
        self,
        family: Family,
        nlri: Sequence[bytes],
        counts: dict[SourceSession, int],
        batches: list[UpdateBatch],
    ) -> None:
        """Encode all paths of some prefixes of a family with ADD-PATH.

        The Adj-RIB-Out of the first members is filled by it, and ``counts`` then.
        """
        if self._counts is None:
            self._encode_add_path(family, nlri, counts, batches)
            return
        for path, wires in self._add_path[family].by_path(nlri).items():
            self.announce(family, path, wires, batches)

    def complete(
        self,
        table: InitialTable[M],
        counts: dict[Family, dict[SourceSession, int]],
        full: tuple[object, UpdateBatch] | None,
    ) -> None:
        """Take the sessions that have the whole table as members.

        ``counts`` are the exported prefixes; ``full`` is the table behind its revisions, if no route
        has changed while it was sent.
        """
        self.initial_table = None
        self.members.update(table.members)
        self._full = full or self._full
        self.take_counts(counts, self._add_path)

    @property
    def is_counted(self) -> bool:
        """Whether the exported prefixes are counted, and the Adj-RIB-Out is filled."""
        return self._counts is not None

    def take_counts(
        self,
        counts: dict[Family, dict[SourceSession, int]],
        adj_out: dict[Family, AddPathAdjRibOut],
    ) -> None:
        """Take the numbers of exported prefixes and a filled Adj-RIB-Out, if they are not known."""
        if self.left_out.total:
            self._count()
        elif self._counts is None:
            self._counts, self._add_path = counts, adj_out
            self._left_out_counted = 0
        elif self._own_uncounted:
            counts |= {family: self._counts[family] for family in self._add_path}
            self._counts, self._own_uncounted = counts, False
            self._left_out_counted = 0

    def abandon(self, table: InitialTable[M]) -> None:
        """Take sessions as members whose table could not be sent, because of an internal error."""
        self._end_initial_table()
        self.members.update(table.members)

    def _end_initial_table(self) -> None:
        self.initial_table = None
        if self._counts is None:
            self._add_path = {}

    def export_initial_table(self) -> Iterator[tuple[M, UpdateBatch]]:
        """Yield the table and the End-of-RIB markers for each pending member; it is a member then."""
        if not self.pending_members:
            return
        self._initial = True
        try:
            self._count_if_due()
            pending, self.pending_members = self.pending_members, {}
            for member in pending:
                own = self.has_routes_of(member)
                self.members[member] = None
                batch = self._encode_full(member.source.session) if own else self._whole_table()
                yield member, batch
        finally:
            self._initial = False
            self._grouped.clear()
        self.count_left_out()

    def _whole_table(self) -> UpdateBatch:
        """Return the initial table of a member without own routes, encoded once per revision."""
        revisions = self.revisions
        if self._full is None or self._full[0] != revisions:
            self._full = (revisions, self._encode_full(None))
        return self._full[1]

    def _count(self) -> None:
        """Count the exported prefixes, and fill the Adj-RIB-Out of the families with ADD-PATH."""
        self._counts = {}
        self._own_uncounted = False
        self._left_out_counted = self.left_out.total
        self.left_out.clear_counts()
        for family in self.rules.sendable:
            counts = self._counts[family] = {}
            if family not in self.tables:
                continue
            table = self.tables[family]
            if family in self.rules.add_path:
                self._add_path[family] = AddPathAdjRibOut(table)
                self._update_add_path(family, table.prefixes(), counts)
                continue
            for path, nlri in self._best(family):
                origin = path.source.session
                if self._is_left_out(family, path):
                    self.left_out.count(family, origin, len(nlri))
                else:
                    counts[origin] = counts.get(origin, 0) + len(nlri)

    def _count_if_due(self) -> None:
        if self._counts is None or self._own_uncounted:
            self._count()

    def has_routes_of(self, member: M) -> bool:
        """Whether routes of a member are among the exported ones: it is not sent these."""
        self._count_if_due()
        assert self._counts is not None  # noqa: S101  just counted
        return any(counts.get(member.source.session) for counts in self._counts.values())

    def count_left_out(self) -> None:
        """Count again, after a table was encoded in which routes turned out not to be encodable."""
        if self.left_out.total != self._left_out_counted:
            self._count()

    # ------------------------------------------------------------------ reads

    def advertised_count(self, family: Family, member: M) -> int:
        """Return the number of prefixes that are advertised to a member."""
        if self._counts is None or member not in self.members:
            return 0
        counts = self._counts.get(family, {})
        return sum(counts.values()) - counts.get(member.source.session, 0)

    def left_out_count(self, family: Family, member: M) -> int:
        """Return the number of exported prefixes that a member does not get.

        Routes that cannot be encoded; of a family that is not negotiated, or has no next hop, all of
        the route set. The Loc-RIB is not counted for it, which may be a full table.
        """
        if member not in self.members:
            return 0
        if family in self._sendable:
            return self.left_out.of(family, member.source.session)
        table = self.tables.get(family)
        if table is None or self.rules.export != "set":
            return 0
        known = self._unsendable.get(family)
        if known is None or known[0] != table.revision:
            count = sum(len(nlri) for _, nlri in self._best(family))
            known = self._unsendable[family] = (table.revision, count)
        return known[1]

    # ------------------------------------------------- a member changes its group

    def export_difference(self, before: UpdateGroup[M], member: M) -> UpdateBatch:
        """Return the UPDATEs for a member of another group to have the routes of this one."""
        self._count_if_due()
        return self._difference(before, member)

    def add_synchronized(self, member: M) -> None:
        """Add a session that has, or is sent next, the routes of this group."""
        self._count_if_due()
        self.members[member] = None


def _addressed(
    members: Iterable[M],
    batches: Sequence[UpdateBatch],
    private: Mapping[SourceSession, Sequence[UpdateBatch]],
) -> Iterator[tuple[M, UpdateBatch]]:
    """Yield the UPDATEs for each member: without its own routes, with its ``private`` UPDATEs."""
    if not batches and not private:
        return
    special = {*[batch.exclude for batch in batches], *private}
    common = join_batches(batches)
    for member in members:
        source = member.source.session
        if source not in special:
            batch = common
        else:
            of_others = [batch for batch in batches if batch.exclude is not source]
            batch = join_batches([*of_others, *private.get(source, ())])
        if batch.octets:
            yield member, batch


def _is_from(path: Path | None, source: SourceSession) -> bool:
    return path is None or path.source.session is source


__all__ = ["GroupMember", "UpdateBatch", "UpdateGroup"]
