"""The Adj-RIB-Out of peers that are told the same: encoded once, the same octets for all of them.

An update group is every session with the same `ExportRules`: same routes, same policy, same
rewriting, same encoding. What a peer has been told is not stored but follows from the table and the
rules, which are a pure function of a path and of the prefix lists that a prefix is in; so a change
is its best path before and after. The one exception
is that a peer is not told its own routes, which costs extra only for the peer that a change came
from.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from speaker.errors import EncodingError
from speaker.nlri import IPV4_UNICAST, Family
from speaker.rib import pack
from speaker.rib.adj_out_add_path import AddPathAdjRibOut
from speaker.rib.export import ExportRules, rewrite
from speaker.rib.loc_rib import Change, LocRib
from speaker.rib.path import Path, Source, same_export
from speaker.rib.policy import compile_export


class GroupMember(Protocol):
    """A session that is told routes."""

    @property
    def source(self) -> Source:
        """As which its own routes are in the Loc-RIB."""


M = TypeVar("M", bound=GroupMember)


class UpdateBatch(NamedTuple):
    """UPDATEs that members have to be sent."""

    octets: bytes
    messages: int
    prefixes: int
    exclude: Source | None = None
    """The one source that is not told this."""


EMPTY_BATCH = UpdateBatch(b"", 0, 0)
_OWN: Final = 4096
_RECENT: Final = 64
"""How many attribute sets are kept as they are sent."""


class UpdateGroup(Generic[M]):
    """The sessions with the same export rules, over the tables of one route set or Loc-RIB."""

    __slots__ = (
        "_all_paths",
        "_counts",
        "_encoded",
        "_full",
        "_own_uncounted",
        "_policy",
        "_recent",
        "_sendable",
        "exports_nothing",
        "members",
        "oversized",
        "pending_members",
        "rules",
        "tables",
    )

    def __init__(self, rules: ExportRules, tables: Mapping[Family, LocRib]) -> None:
        self.rules = rules
        self.members: dict[M, None] = {}
        """Those that have been told the whole table, in order, so that a run can be repeated."""
        self.pending_members: dict[M, None] = {}
        self.oversized = 0
        """Announcements that were left out because their attributes fill a message."""
        self.tables = tables
        self._policy = compile_export("", rules.policy)
        self._own_uncounted = False
        """The count of the only member's own routes is not right: it matters to nobody yet."""
        self._all_paths: dict[Family, AddPathAdjRibOut] = {}
        """What is told in the families with all paths; made by `_count`."""
        self._counts: dict[Family, dict[Source, int]] | None = None
        self._full: tuple[object, UpdateBatch] | None = None
        self._sendable = rules.sendable
        self.exports_nothing: Final = not self._sendable
        """Whether nobody of it is ever told a route."""
        self._encoded: dict[tuple[Path, Family], tuple[bytes, bytes, bool]] = {}
        """Attributes as they are sent, of routes of our own ..."""
        self._recent: dict[tuple[Path, Family], tuple[bytes, bytes, bool]] = {}
        """... and those that were learnt and met lately: a route that flaps has the same again."""

    def join(self, member: M) -> None:
        """Add a session that has been told nothing yet."""
        self.pending_members[member] = None

    def leave(self, member: M) -> None:
        """Remove a session."""
        # Paths of its source, perhaps.
        self._recent.clear()
        self.pending_members.pop(member, None)
        self.members.pop(member, None)

    @property
    def empty(self) -> bool:
        """Whether nobody is left."""
        return not self.members and not self.pending_members

    # ---------------------------------------------------------------- changes

    def export_changes(
        self,
        changes: Mapping[Family, Sequence[Change]],
        touched: Mapping[Family, set[bytes]],
    ) -> Iterator[tuple[M, UpdateBatch]]:
        """Yield what changes mean for each member that knows the table as it was before.

        ``touched`` are all prefixes that changed, of the families in which all paths are told.
        """
        if self._counts is None:
            return
        chunks: list[UpdateBatch] = []
        private: dict[Source, list[UpdateBatch]] = {}
        for family in self._sendable:
            if family in self._all_paths:
                self._encode_all_paths(family, touched.get(family, set()), chunks)
            elif changes.get(family):
                self._encode_changes(family, changes[family], chunks, private)
        if not chunks and not private:
            return
        special = {*[chunk.exclude for chunk in chunks], *private}
        everything = _join(chunks)
        for member in self.members:
            source = member.source
            if source not in special:
                told = everything
            else:
                told = _join(
                    [
                        *(chunk for chunk in chunks if chunk.exclude is not source),
                        *private.get(source, ()),
                    ]
                )
            if told.octets:
                yield member, told

    def _encode_changes(
        self,
        family: Family,
        changes: Sequence[Change],
        chunks: list[UpdateBatch],
        private: dict[Source, list[UpdateBatch]],
    ) -> None:
        assert self._counts is not None  # noqa: S101  `tell` has looked
        counts = self._counts.setdefault(family, {})
        gone: list[bytes] = []
        # Where there is one member, its own routes are for nobody: a full table from the only peer
        # that is told everything. They are not even looked at until somebody else comes.
        only = next(iter(self.members)).source if len(self.members) == 1 else None
        for old, new, nlri in changes:
            if only is not None and _is_of(old, only) and _is_of(new, only):
                self._own_uncounted = True
                continue
            for lists, part in self._split(family, nlri):
                was = None if old is None else self._exported(family, old, lists)
                now = None if new is None else self._exported(family, new, lists)
                if was is not None:
                    origin = was.source.session
                    counts[origin] = counts.get(origin, 0) - len(part)
                if now is None:
                    if was is not None:
                        gone.extend(part)
                    continue
                origin = now.source.session
                counts[origin] = counts.get(origin, 0) + len(part)
                source = None if origin.local else origin
                if source is None or source is not only:
                    self._announce(family, now, part, source, chunks)
                if was is not None and source is not None and was.source.session is not source:
                    # Its own route has become best: what it was told before is no more.
                    private.setdefault(source, []).extend(self._withdrawals(family, part))
        if gone:
            # Also told to where it came from, which was never told it: harmless, and the octets
            # stay the same for everybody.
            chunks.extend(self._withdrawals(family, gone))

    def _split(
        self, family: Family, nlri: Sequence[bytes]
    ) -> Iterable[tuple[int, Sequence[bytes]]]:
        return (
            ((0, nlri),)
            if self._policy is None
            else self._policy.group_by_matching_lists(family, nlri)
        )

    def _exported(self, family: Family, path: Path, lists: int) -> Path | None:
        """Return a path as the policy leaves it, or None where it is not told."""
        if not self.rules.exports(path):
            return None
        return path if self._policy is None else self._policy.apply(path, family, lists)

    def _exported_prefix(self, family: Family, path: Path, nlri: bytes) -> Path | None:
        lists = 0 if self._policy is None else self._policy.matching_lists(family, nlri)
        return self._exported(family, path, lists)

    def _best(self, family: Family) -> Iterator[tuple[Path, Sequence[bytes]]]:
        """Iterate over what is told of a family whose best paths are told, by path."""
        for path, nlri in self.tables[family].best_by_path().items():
            for lists, part in self._split(family, nlri):
                exported = self._exported(family, path, lists)
                if exported is not None:
                    yield exported, part

    def _encode_all_paths(
        self, family: Family, touched: Iterable[bytes], chunks: list[UpdateBatch]
    ) -> None:
        assert self._counts is not None  # noqa: S101  `tell` has looked
        counts = self._counts.setdefault(family, {})
        gone, announced = self._all_paths[family].update(touched, counts)
        # An identifier is withdrawn before it, or another one of the prefix, is told.
        if gone:
            chunks.extend(self._withdrawals(family, gone))
        for path, wires in announced.items():
            origin = path.source.session
            self._announce(family, path, wires, None if origin.local else origin, chunks)

    def _announce(
        self,
        family: Family,
        path: Path,
        nlri: Sequence[bytes],
        exclude: Source | None,
        chunks: list[UpdateBatch],
    ) -> None:
        limit = self.rules.max_message
        try:
            next_hop, attributes, mp = self._attributes(path, family)
            if mp:
                messages = pack.announce_mp(family, next_hop, attributes, nlri, limit)
            else:
                messages = pack.announce(attributes, nlri, limit)
        except (pack.AttributesTooLong, EncodingError):
            # Attributes that a peer sent, and a policy made longer. Whoever is told must not keep
            # what it was told before in their place.
            self.oversized += len(nlri)
            chunks.extend(self._withdrawals(family, nlri))
            return
        chunks.append(UpdateBatch(b"".join(messages), len(messages), len(nlri), exclude))

    def _attributes(self, path: Path, family: Family) -> tuple[bytes, bytes, bool]:
        # Learnt paths are met once per change; keeping all of them would hold a second table.
        kept, limit = (self._encoded, _OWN) if path.source.local else (self._recent, _RECENT)
        key = (path, family)
        known = kept.get(key)
        if known is None:
            if len(kept) >= limit:
                kept.clear()
            known = kept[key] = rewrite(path, family, self.rules)
        return known

    def _withdrawals(self, family: Family, nlri: Sequence[bytes]) -> Iterator[UpdateBatch]:
        limit = self.rules.max_message
        if family == IPV4_UNICAST and not self.rules.uses_mp(family):
            messages = pack.withdraw(nlri, limit)
        else:
            messages = pack.withdraw_mp(family, nlri, limit)
        yield UpdateBatch(b"".join(messages), len(messages), len(nlri), None)

    # -------------------------------------------------------------- pending_members

    def send_initial_table(self) -> Iterator[tuple[M, UpdateBatch]]:
        """Yield the whole table and the End-of-RIB markers for each newcomer; now members."""
        if not self.pending_members:
            return
        if self._counts is None or self._own_uncounted:
            self._count()
        assert self._counts is not None  # noqa: S101  just counted
        pending_members, self.pending_members = self.pending_members, {}
        for member in pending_members:
            own = any(counts.get(member.source) for counts in self._counts.values())
            self.members[member] = None
            yield member, self._encode_full(member.source) if own else self._whole_table()

    def _whole_table(self) -> UpdateBatch:
        state = tuple(
            self.tables[family].revision for family in self.rules.families if family in self.tables
        )
        if self._full is None or self._full[0] != state:
            self._full = (state, self._encode_full(None))
        return self._full[1]

    def export_table(self, member: M, family: Family) -> UpdateBatch:
        """Return a family's table once more (RFC 2918)."""
        chunks: list[UpdateBatch] = []
        self._table(family, member.source, chunks)
        return _join(chunks)

    def prefixes(self, family: Family) -> list[bytes]:
        """Return the prefixes of which anything may be told, as they are now."""
        if family in self._all_paths:
            return self._all_paths[family].prefixes()
        table = self.tables.get(family)
        return [] if table is None or family not in self.rules.sendable else table.prefixes()

    def export_prefixes(self, family: Family, nlri: Sequence[bytes], member: M) -> bytes:
        """Return what a member is told of some prefixes, once more, as UPDATEs."""
        chunks: list[UpdateBatch] = []
        told = self._all_paths.get(family)
        if told is not None:
            groups: Mapping[Path, Sequence[bytes]] = told.by_path(nlri)
        else:
            groups = self._best_of(family, nlri)
        for path, wires in groups.items():
            if path.source.session is not member.source:
                self._announce(family, path, wires, None, chunks)
        return _join(chunks).octets

    def _best_of(self, family: Family, nlri: Iterable[bytes]) -> dict[Path, list[bytes]]:
        groups: dict[Path, list[bytes]] = {}
        for path, prefixes in self.tables[family].best_of(nlri).items():
            for lists, part in self._split(family, prefixes):
                exported = self._exported(family, path, lists)
                if exported is not None:
                    groups.setdefault(exported, []).extend(part)
        return groups

    def _encode_full(self, exclude: Source | None) -> UpdateBatch:
        chunks: list[UpdateBatch] = []
        for family in self.rules.families:
            self._table(family, exclude, chunks)
        # An End-of-RIB for families that we could not send anything in, too: the peer waits for it.
        chunks.extend(
            UpdateBatch(pack.end_of_rib(family), 1, 0, None) for family in self.rules.families
        )
        return _join(chunks)

    def _table(self, family: Family, exclude: Source | None, chunks: list[UpdateBatch]) -> None:
        table = self.tables.get(family)
        if table is None or family not in self.rules.sendable:
            return
        if family in self._all_paths:
            groups: Iterable[tuple[Path, Sequence[bytes]]] = (
                self._all_paths[family].by_path().items()
            )
        else:
            groups = self._best(family)
        for path, nlri in groups:
            if path.source.session is not exclude:
                self._announce(family, path, nlri, None, chunks)

    def _count(self) -> None:
        self._counts = {}
        self._own_uncounted = False
        for family in self.rules.sendable:
            counts = self._counts[family] = {}
            if family not in self.tables:
                continue
            table = self.tables[family]
            if family in self.rules.add_path:
                exported = functools.partial(self._exported_prefix, family)
                told = self._all_paths[family] = AddPathAdjRibOut(table, exported)
                told.update([nlri for nlri, _ in table.items()], counts)
                continue
            for path, nlri in self._best(family):
                origin = path.source.session
                counts[origin] = counts.get(origin, 0) + len(nlri)

    # ------------------------------------------------------------------ views

    def advertised_count(self, family: Family, member: M) -> int:
        """Return how many prefixes a member has been told."""
        if self._counts is None or member not in self.members:
            return 0
        counts = self._counts.get(family, {})
        return sum(counts.values()) - counts.get(member.source, 0)

    def routes(self, family: Family, member: M) -> Iterator[tuple[bytes, Path]]:
        """Iterate over what a member is told: prefix and path, before rewriting.

        In families with all paths the prefix comes behind its path identifier, as on the wire.
        """
        table = self.tables.get(family)
        if table is None or family not in self.rules.sendable:
            return
        told = self._all_paths.get(family)
        if told is not None:
            for path, wires in told.by_path().items():
                if path.source.session is not member.source:
                    for wire in wires:
                        yield wire, path
            return
        for path, part in self._best(family):
            if path.source.session is not member.source:
                for nlri in part:
                    yield nlri, path

    def stored_routes(self, family: Family) -> dict[Path, list[bytes]]:
        """Return what is told of a family with all paths, by path: the one case where it is kept."""
        told = self._all_paths.get(family)
        return {} if told is None else told.by_path()

    def export_difference(self, before: UpdateGroup[M], member: M) -> UpdateBatch:
        """Return what turns what the member knows from another group into what this one tells."""
        if self._counts is None or self._own_uncounted:
            self._count()
        chunks: list[UpdateBatch] = []
        for family in self.rules.families:
            old = dict(before.routes(family, member))
            announced: dict[Path, list[bytes]] = {}
            for nlri, path in self.routes(family, member):
                known = old.pop(nlri, None)
                if known is None or not same_export(known, path):
                    announced.setdefault(path, []).append(nlri)
            if old:
                chunks.extend(self._withdrawals(family, list(old)))
            for path, prefixes in announced.items():
                self._announce(family, path, prefixes, None, chunks)
        return _join(chunks)

    def add_synchronized(self, member: M) -> None:
        """Take a member that knows the table already."""
        if self._counts is None or self._own_uncounted:
            self._count()
        self.members[member] = None


def _is_of(path: Path | None, source: Source) -> bool:
    return path is None or path.source.session is source


def _join(chunks: Sequence[UpdateBatch]) -> UpdateBatch:
    if len(chunks) == 1:
        return chunks[0]
    return UpdateBatch(
        b"".join([chunk.octets for chunk in chunks]),
        sum(chunk.messages for chunk in chunks),
        sum(chunk.prefixes for chunk in chunks),
    )


__all__ = ["EMPTY_BATCH", "GroupMember", "UpdateBatch", "UpdateGroup"]
