"""The routes that export rules select of the tables of an update group, and their UPDATEs.

What is exported is a function of the table, of the export rules, of the export policy and of the
prefix lists that contain a prefix; nothing is stored. Families with ADD-PATH do store an Adj-RIB-Out
(`speaker.rib.adj_out_add_path`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from speaker.nlri import Family
from speaker.rib import pack
from speaker.rib.adj_out_add_path import AddPathAdjRibOut
from speaker.rib.export import ComparedPaths, ExportRules, same_update
from speaker.rib.loc_rib import LocRib
from speaker.rib.path import Path, Source, SourceSession
from speaker.rib.policy import compile_export
from speaker.rib.prefix_groups import PrefixGroups, group_in_steps, pieces
from speaker.rib.update_encoder import UpdateBatch, UpdateEncoder, join_batches

REFRESHED_PREFIX_UNITS: Final = 0.2
"""The work for a prefix in the answer to ROUTE-REFRESH."""


class GroupMember(Protocol):
    """An established session that is a member of an update group."""

    @property
    def source(self) -> Source:
        """The source of its received routes."""


class ExportedRoutes:
    """The exported routes of the tables of one route set or of the Loc-RIB."""

    __slots__ = (
        "_add_path",
        "_encoder",
        "_grouped",
        "_initial",
        "_policy",
        "left_out",
        "rules",
        "tables",
    )

    def __init__(self, rules: ExportRules, tables: Mapping[Family, LocRib]) -> None:
        self.rules = rules
        self.tables = tables
        self._encoder = UpdateEncoder(rules)
        self.left_out = self._encoder.left_out
        """The routes that cannot be encoded for the members."""
        self._policy = compile_export("", rules.policy)
        self._add_path: dict[Family, AddPathAdjRibOut] = {}
        """The Adj-RIB-Out of the families with ADD-PATH; filled by the update group."""
        self._initial = False
        """True while initial tables are sent, of which no route changes."""
        self._grouped: dict[Family, dict[Path, list[bytes]]] = {}
        """Prefixes by their best path, while initial tables are sent."""

    @property
    def revisions(self) -> tuple[int, ...]:
        """The revisions of its tables; equal ones mean that no route has changed."""
        tables = self.tables
        return tuple(tables[family].revision for family in self.rules.families if family in tables)

    def stored_routes(self, family: Family) -> dict[Path, list[bytes]]:
        """Return the Adj-RIB-Out of a family with ADD-PATH, by path; empty for other families."""
        adj_out = self._add_path.get(family)
        return {} if adj_out is None else adj_out.by_path()

    def routes(self, family: Family, member: GroupMember) -> Iterator[tuple[bytes, Path]]:
        """Iterate over the routes of a member: prefix, and path after policy, before rewriting.

        With ADD-PATH the prefix follows its path identifier, as on the wire.
        """
        for path, part in self._exported_by_path(family):
            if path.source.session is not member.source.session:
                for nlri in part:
                    yield nlri, path

    def routes_of(
        self, family: Family, member: GroupMember, prefixes: Iterable[bytes]
    ) -> Iterator[tuple[bytes, Path]]:
        """Iterate over the routes of a member for some prefixes, in their order; as `routes`."""
        if family not in self.tables or family not in self.rules.sendable:
            return
        adj_out = self._add_path.get(family)
        for nlri in prefixes:
            groups = self._best_of(family, (nlri,)) if adj_out is None else adj_out.by_path((nlri,))
            for path, part in groups.items():
                if path.source.session is not member.source.session:
                    for wire in part:
                        yield wire, path

    def exported_parts(
        self, family: Family, path: Path, nlri: Sequence[bytes]
    ) -> Iterator[tuple[SourceSession, Sequence[bytes]]]:
        """Iterate over those prefixes of a path that are exported, with the path's session."""
        for exported, part in self._exported_parts(family, path, nlri):
            yield exported.source.session, part

    def encode_path(
        self, family: Family, path: Path, nlri: Sequence[bytes], batches: list[UpdateBatch]
    ) -> list[tuple[SourceSession, Sequence[bytes]]]:
        """Encode those prefixes of a path that are exported; see `exported_parts`."""
        encoded: list[tuple[SourceSession, Sequence[bytes]]] = []
        for exported, part in self._exported_parts(family, path, nlri):
            if self.announce(family, exported, part, batches):
                encoded.append((exported.source.session, part))
        return encoded

    def walk(self, family: Family, size: int) -> Iterator[Sequence[bytes]]:
        """Iterate over lists of prefixes of which routes may be exported; see `PrefixTable.walk`."""
        if family in self._add_path:
            return self._add_path[family].walk(size)
        table = self.tables.get(family)
        if table is None or family not in self.rules.sendable:
            return iter(())
        return table.walk(size)

    def export_table_in_steps(self, family: Family) -> Iterator[tuple[int, list[bytes]]]:
        """Yield units of work, and prefixes for `export_prefixes`: all that a member may have."""
        table = self.tables.get(family)
        if table is None or family not in self.rules.sendable:
            return
        groups: PrefixGroups = {}
        for units in group_in_steps(table, groups):
            yield units, []
        yield from pieces(groups, REFRESHED_PREFIX_UNITS)

    def export_prefixes(
        self, family: Family, nlri: Sequence[bytes], member: GroupMember
    ) -> UpdateBatch:
        """Return UPDATEs with the exported routes of some prefixes, as the member has them."""
        batches: list[UpdateBatch] = []
        for path, wires in self.by_path(family, nlri).items():
            if path.source.session is not member.source.session:
                self._encoder.announce(family, path, wires, None, batches)
        return join_batches(batches)

    def exported_table(self, family: Family) -> LocRib | None:
        """Return the table of a family, or None if none of its routes can be exported."""
        return self.tables.get(family) if family in self.rules.sendable else None

    def by_path(self, family: Family, nlri: Iterable[bytes]) -> Mapping[Path, Sequence[bytes]]:
        """Return the exported routes of some prefixes, by path; with ADD-PATH as in `routes`."""
        if self.exported_table(family) is None:
            return {}
        adj_out = self._add_path.get(family)
        return self._best_of(family, nlri) if adj_out is None else adj_out.by_path(nlri)

    def adj_out(self, family: Family) -> AddPathAdjRibOut | None:
        """Return the Adj-RIB-Out of a family with ADD-PATH, None for other families."""
        return self._add_path.get(family)

    def empty_adj_out(self) -> dict[Family, AddPathAdjRibOut]:
        """Return an Adj-RIB-Out for `update_adj_out`, of all families with ADD-PATH."""
        return {
            family: AddPathAdjRibOut(self.tables[family])
            for family in self.rules.sendable
            if family in self.rules.add_path and family in self.tables
        }

    def update_adj_out(
        self,
        adj_out: AddPathAdjRibOut,
        family: Family,
        touched: Iterable[bytes],
        counts: dict[SourceSession, int],
    ) -> tuple[list[bytes], dict[Path, list[bytes]]]:
        """Update the Adj-RIB-Out of a family with ADD-PATH; see `AddPathAdjRibOut.update`."""
        if self.left_out.total:
            for nlri in touched:
                self.left_out.forget_paths(family, nlri)
        exported = functools.partial(self._exported_prefix, family)
        same = functools.partial(self._same_update, family)
        return adj_out.update(touched, counts, exported, same)

    def announce(
        self, family: Family, path: Path, nlri: Sequence[bytes], batches: list[UpdateBatch]
    ) -> bool:
        """Add UPDATEs for all sessions but that of the path; see `UpdateEncoder.announce`."""
        origin = path.source.session
        return self._encoder.announce(family, path, nlri, None if origin.local else origin, batches)

    def withdrawn(self, family: Family, nlri: Sequence[bytes]) -> UpdateBatch:
        """Return the UPDATEs that withdraw prefixes."""
        return self._encoder.withdraw(family, nlri)

    def _difference(self, before: ExportedRoutes, member: GroupMember) -> UpdateBatch:
        """Return the UPDATEs for a session with other exported routes to have these."""
        batches: list[UpdateBatch] = []
        for family in self.rules.families:
            old = dict(before.routes(family, member))
            announced: dict[Path, list[bytes]] = {}
            compared = ComparedPaths(before.rules, self.rules, family)
            for nlri, path in self.routes(family, member):
                known = old.pop(nlri, None)
                if known is None or not compared.are_alike(known, path):
                    announced.setdefault(path, []).append(nlri)
            if old:
                batches.append(self._encoder.withdraw(family, list(old)))
            for path, prefixes in announced.items():
                self._encoder.announce(family, path, prefixes, None, batches)
        return join_batches(batches)

    def _encode_full(self, exclude: SourceSession | None) -> UpdateBatch:
        batches: list[UpdateBatch] = []
        for family in self.rules.families:
            self._encode_table(family, exclude, batches)
        # End-of-RIB also for families without a next hop: the peer waits for it (RFC 4724 section 2).
        batches.extend(
            UpdateBatch(pack.end_of_rib(family), 1, 0, None) for family in self.rules.families
        )
        return join_batches(batches)

    def _encode_table(
        self, family: Family, exclude: SourceSession | None, batches: list[UpdateBatch]
    ) -> None:
        """Encode all exported routes of a family except one source's."""
        for path, nlri in self._exported_by_path(family):
            if path.source.session is not exclude:
                self._encoder.announce(family, path, nlri, None, batches)

    def _exported_by_path(self, family: Family) -> Iterable[tuple[Path, Sequence[bytes]]]:
        """Return all exported routes of a family, by path."""
        if family not in self.tables or family not in self.rules.sendable:
            return ()
        adj_out = self._add_path.get(family)
        if adj_out is not None:
            return adj_out.by_path().items()
        best = self._best(family)
        if not self.left_out.total:
            return best
        return (item for item in best if not self._is_left_out(family, item[0]))

    def _best(self, family: Family) -> Iterator[tuple[Path, Sequence[bytes]]]:
        """Iterate over the exported routes of a family without ADD-PATH, by path.

        Routes that cannot be encoded are among them.
        """
        groups = self._grouped.get(family)
        if groups is None:
            groups = self.tables[family].best_by_path()
            if self._initial:
                self._grouped[family] = groups
        for path, nlri in groups.items():
            for lists, part in self._by_lists(family, nlri):
                exported = self._exported(family, path, lists)
                if exported is not None:
                    yield exported, part

    def _best_of(self, family: Family, nlri: Iterable[bytes]) -> dict[Path, list[bytes]]:
        groups: dict[Path, list[bytes]] = {}
        for path, prefixes in self.tables[family].best_of(nlri).items():
            for lists, part in self._by_lists(family, prefixes):
                exported = self._exported(family, path, lists)
                if exported is not None and not self._is_left_out(family, exported):
                    groups.setdefault(exported, []).extend(part)
        return groups

    def _exported_parts(
        self, family: Family, path: Path, nlri: Sequence[bytes]
    ) -> Iterator[tuple[Path, Sequence[bytes]]]:
        for lists, part in self._by_lists(family, nlri):
            exported = self._exported(family, path, lists)
            if exported is not None and not self._is_left_out(family, exported):
                yield exported, part

    def _exported_prefix(self, family: Family, path: Path, nlri: bytes) -> Path | None:
        lists = 0 if self._policy is None else self._policy.matching_lists(family, nlri)
        exported = self._exported(family, path, lists)
        if exported is not None and self._is_left_out(family, exported):
            self.left_out.count_path(family, nlri, exported.source.session)
            return None
        return exported

    def _exported(self, family: Family, path: Path, lists: int) -> Path | None:
        """Return a path after the export policy, or None if it is not exported."""
        if not self.rules.exports(path):
            return None
        return path if self._policy is None else self._policy.apply(path, family, lists)

    def _by_lists(
        self, family: Family, nlri: Sequence[bytes]
    ) -> Iterable[tuple[int, Sequence[bytes]]]:
        """Group prefixes by the prefix lists of the policy that contain them."""
        if self._policy is None:
            return ((0, nlri),)
        return self._policy.group_by_matching_lists(family, nlri)

    def _is_left_out(self, family: Family, path: Path) -> bool:
        return bool(self.left_out.total) and (
            self._encoder.encoding_error(family, path) is not None
        )

    def _update_add_path(
        self, family: Family, touched: Iterable[bytes], counts: dict[SourceSession, int]
    ) -> tuple[list[bytes], dict[Path, list[bytes]]]:
        return self.update_adj_out(self._add_path[family], family, touched, counts)

    def _same_update(self, family: Family, one: Path, other: Path) -> bool:
        return same_update(one, other, family, self.rules)
