"""The Loc-RIB of one family: the eligible paths of each prefix, best path first, and what changed.

A prefix with one path maps to that path, which its whole attribute set shares; a prefix with several
maps to a tuple. So a full table costs one entry of a `PrefixTable` per prefix. Changes since the last
`take_changes` are kept as best path before and after: what an update group needs, unless it
advertises all paths of a prefix (RFC 7911). For those, and for equal paths, prefixes with any changed
path are kept. Knows paths and their sources, no peers and no sessions. Messages whose
prefixes change all together take `speaker.rib.loc_rib_fast_path`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from speaker.nlri import ENCODED_SIZE, NlriFields
from speaker.rib.decision import Metric, order
from speaker.rib.loc_rib_fast_path import Change, LocRibFastPath
from speaker.rib.path import Path, Source
from speaker.rib.prefix_table import PrefixTable

__all__ = ["Change", "LocRib", "TableChanges"]


class TableChanges(NamedTuple):
    """The changes of one table."""

    best: list[Change]
    """Changes of best paths, in the order in which they can be advertised."""
    whole: int
    """How many of them, the first ones, are of whole messages: one path before, one after, or none."""
    several: dict[bytes, Path | None]
    """Prefixes with several paths of which any changed -> the best path before.

    Only after `LocRib.track_all_paths`. Prefixes whose best path changed are in ``best``, too.
    """

    def prefixes(self) -> set[bytes]:
        """Return the prefixes of which any path changed, where all are tracked."""
        return {nlri for _, _, part in self.best for nlri in part} | self.several.keys()


def _group(
    items: Iterable[tuple[bytes, Path | tuple[Path, ...]]], groups: dict[Path, list[bytes]]
) -> None:
    """Add prefixes to groups by the first of their paths."""
    for nlri, held in items:
        path = held[0] if type(held) is tuple else held
        known = groups.get(path)  # type: ignore[arg-type]  # narrowed by type(), for speed
        if known is None:
            groups[path] = [nlri]  # type: ignore[index]  # as above
        else:
            known.append(nlri)


class LocRib:
    """The table of one family: prefix in wire form to paths."""

    __slots__ = ("_dirty", "_fast", "_table", "_tracks_all", "metric", "revision", "several")

    def __init__(self, metric: Metric | None = None) -> None:
        """Start empty; for ``metric`` see `reselect`."""
        self.metric = metric
        """The metric of a path's next hop; None where all are equal."""
        self._table: PrefixTable[Path | tuple[Path, ...]] = PrefixTable()
        self._fast = LocRibFastPath(self._table)
        """Changes of whole messages; they precede `_dirty`."""
        self._dirty: dict[bytes, Path | None] = {}
        """The best path before the first change, for prefixes that changed one by one."""
        self._tracks_all = False
        """Whether prefixes of which another path changed are in `_dirty`, too."""
        self.several = 0
        """The number of prefixes with several paths."""
        self.revision = 0
        """Increases with every change: the key of what is derived from the table."""

    def __len__(self) -> int:
        return len(self._table)

    def __contains__(self, nlri: bytes) -> bool:
        return nlri in self._table

    @property
    def changed(self) -> bool:
        """Whether there are changes to take."""
        fast = self._fast
        return bool(fast.announced or self._dirty or fast.replaced)

    def track_all_paths(self) -> None:
        """Track changes of any path from now on, for `TableChanges.several`."""
        self._tracks_all = True

    def best(self, nlri: bytes) -> Path | None:
        """Return the best path of a prefix, or None."""
        held = self._table.get(nlri)
        return held[0] if type(held) is tuple else held  # type: ignore[return-value]  # by type()

    def paths(self, nlri: bytes) -> tuple[Path, ...]:
        """Return all paths of a prefix, best first; () for an unknown prefix."""
        held = self._table.get(nlri)
        if held is None:
            return ()
        return held if isinstance(held, tuple) else (held,)

    def items(self) -> Iterator[tuple[bytes, tuple[Path, ...]]]:
        """Iterate over all prefixes with their paths, best first."""
        for nlri, held in self._table.items():
            yield nlri, held if isinstance(held, tuple) else (held,)

    def prefixes(self) -> Sequence[bytes]:
        """Return all prefixes, a copy that is made at once; see `walk`."""
        return tuple(self._table)

    def walk(self, size: int) -> Iterator[Sequence[bytes]]:
        """Iterate over lists of all prefixes, while the table changes; see `PrefixTable.walk`."""
        return self._table.walk(size, self._revision)

    def _revision(self) -> int:
        return self.revision

    def best_of(self, prefixes: Iterable[bytes]) -> dict[Path, list[bytes]]:
        """Group prefixes by their best path; unknown prefixes are omitted."""
        groups: dict[Path, list[bytes]] = {}
        for prefix in prefixes:
            path = self.best(prefix)
            if path is not None:
                groups.setdefault(path, []).append(prefix)
        return groups

    def best_by_path(self) -> dict[Path, list[bytes]]:
        """Group all prefixes by their best path."""
        groups: dict[Path, list[bytes]] = {}
        _group(self._table.items(), groups)
        return groups

    def best_by_path_in_steps(self, size: int, groups: dict[Path, list[bytes]]) -> Iterator[bool]:
        """As `best_by_path`, ``size`` prefixes in a step; ends with False if the table changes."""
        revision, items = self.revision, iter(self._table.items())
        left = len(self._table)
        while left > 0:
            if self.revision != revision:
                yield False
                return
            _group(islice(items, size), groups)
            left -= size
            yield True

    def add_best(self, prefixes: Iterable[bytes], groups: dict[Path, list[bytes]]) -> None:
        """Add prefixes to groups by their best path; unknown prefixes are omitted."""
        table = self._table
        _group(((nlri, table[nlri]) for nlri in prefixes if nlri in table), groups)

    def path_of(self, source: Source, nlri: bytes) -> Path | None:
        """Return the path of a prefix from a source, or None."""
        held = self._table.get(nlri)
        if isinstance(held, tuple):
            return next((path for path in held if path.source is source), None)
        return held if held is not None and held.source is source else None

    def prefixes_of(self, source: Source, nlri: Iterable[bytes]) -> list[bytes]:
        """Return the prefixes that have a path from a source."""
        table = self._table
        prefixes: list[bytes] = []
        for prefix in nlri:
            held = table.get(prefix)
            if type(held) is tuple:
                if any(path.source is source for path in held):
                    prefixes.append(prefix)
            elif held is not None and held.source is source:  # type: ignore[union-attr]  # by type()
                prefixes.append(prefix)
        return prefixes

    def contested(self, keys: Iterable[bytes], skip: int = 0) -> list[bytes]:
        """Return the keys whose prefixes, behind ``skip`` octets, have several paths."""
        get = self._table.get
        if skip:
            return [key for key in keys if type(get(key[skip:])) is tuple]
        return [key for key in keys if type(get(key)) is tuple]

    def by_path_of(
        self, source: Source, nlri: Iterable[bytes]
    ) -> tuple[dict[Path, list[bytes]], list[bytes]]:
        """Group prefixes by their path from a source; the second list has prefixes without one."""
        table = self._table
        groups: dict[Path, list[bytes]] = {}
        gone: list[bytes] = []
        for prefix in nlri:
            held = table.get(prefix)
            path = self.path_of(source, prefix) if type(held) is tuple else held
            if path is None or path.source is not source:  # type: ignore[union-attr]  # by type()
                gone.append(prefix)
                continue
            known = groups.get(path)  # type: ignore[arg-type]  # as above
            if known is None:
                groups[path] = [prefix]  # type: ignore[index]  # as above
            else:
                known.append(prefix)
        return groups, gone

    def announce(self, path: Path, nlri: Sequence[bytes]) -> int:
        """Install a path for prefixes; it replaces the path of the same source.

        Returns the number of prefixes that had no path from this source.
        """
        self.revision += 1
        fast, dirty = self._fast, self._dirty
        if self._table.isdisjoint(nlri):
            if fast.replaced and not fast.can_announce_beside(nlri):
                fast.fold_into(dirty)
            if not dirty or dirty.keys().isdisjoint(nlri):
                return fast.announce_new(path, nlri)
        elif not dirty and fast.replace(path.source, nlri, path):
            return 0
        if fast.replaced:
            fast.fold_into(dirty)
        return self._announce_each(path, nlri)

    def _announce_each(self, path: Path, nlri: Sequence[bytes]) -> int:
        """Announce prefix by prefix: the slow path."""
        table, dirty, tracks_all = self._table, self._dirty, self._tracks_all
        source = path.source
        new = several = 0
        last: Path | tuple[Path, ...] | None = None
        ranked: tuple[Path, ...] = ()
        before, is_new = path, False
        for prefix in nlri:
            held = table.get(prefix)
            if held is None:
                table[prefix] = path
                dirty.setdefault(prefix, None)
                new += 1
                continue
            if type(held) is not tuple and held.source is source:  # type: ignore[union-attr]  # by type()
                if held is not path:
                    table[prefix] = path
                    dirty.setdefault(prefix, held)  # type: ignore[arg-type]  # as above
                continue
            if held is not last:
                # Neighbours in a table have the same paths, mostly.
                last = held
                some: tuple[Path, ...] = held if type(held) is tuple else (held,)  # type: ignore[assignment]
                others = [other for other in some if other.source is not source]
                is_new = len(others) == len(some)
                ranked = order((*others, path), self.metric)
                before = some[0]
            new += is_new
            several += type(held) is not tuple
            table[prefix] = ranked
            if tracks_all or ranked[0] is not before:
                dirty.setdefault(prefix, before)
        self.several += several
        return new

    def announce_new(self, paths: Sequence[Path], fields: NlriFields) -> tuple[int, int]:
        """Install the path of each NLRI field, up to the first field with a prefix that is not new.

        There is a field. Returns the number of installed fields and of their prefixes. The others are
        for `announce`: their prefixes are known or duplicated, a field is malformed, or pending changes
        do not permit the fast path.
        """
        fast = self._fast
        if self._dirty or fast.has_withdrawal:
            return 0, 0
        first = fields.data[0]
        if first[: ENCODED_SIZE[first[0]]] in self._table:
            # A table that is received again: its first prefix is known.
            return 0, 0
        prefixes = fast.announce_fields(paths, fields)
        if prefixes:
            self.revision += 1
            return len(fields.data), prefixes
        taken = 0
        if len(fields.data) > 1:
            for path in paths:
                new = fast.announce_fields((path,), fields.part(taken, taken + 1))
                if not new:
                    break
                self.revision += 1
                taken += 1
                prefixes += new
        return taken, prefixes

    def withdraw(self, source: Source, nlri: Sequence[bytes]) -> int:
        """Withdraw the paths of prefixes from a source; prefixes without one are ignored.

        Returns the number of prefixes that had a path from this source.
        """
        self.revision += 1
        fast = self._fast
        if not self._dirty and (gone := fast.replace(source, nlri, None)):
            return gone
        if fast.replaced:
            fast.fold_into(self._dirty)
        return self._withdraw_each(source, nlri)

    def _withdraw_each(self, source: Source, nlri: Sequence[bytes]) -> int:
        """Withdraw prefix by prefix: the slow path."""
        table, dirty, tracks_all = self._table, self._dirty, self._tracks_all
        gone = single = 0
        last: tuple[Path, ...] = ()
        rest: tuple[Path, ...] = ()
        for prefix in nlri:
            held = table.get(prefix)
            if held is None:
                continue
            if isinstance(held, tuple):
                if held is not last:
                    # As in `_announce_each`.
                    last = held
                    others = [other for other in held if other.source is not source]
                    rest = held if len(others) == len(held) else order(others, self.metric)
                if rest is held:
                    continue
                if len(rest) == 1:
                    single += 1
                    table[prefix] = rest[0]
                else:
                    table[prefix] = rest
                if tracks_all or rest[0] is not held[0]:
                    dirty.setdefault(prefix, held[0])
            elif held.source is source:
                del table[prefix]
                dirty.setdefault(prefix, held)
            else:
                continue
            gone += 1
        self.several -= single
        return gone

    def reselect(self, nlri: Iterable[bytes]) -> int:
        """Select the best path of prefixes again, after another metric of next hops.

        Returns the number of prefixes with several paths: the others remain as they are.
        """
        table, dirty = self._table, self._dirty
        several = 0
        for prefix in nlri:
            held = table.get(prefix)
            if not isinstance(held, tuple):
                continue
            several += 1
            ranked = order(held, self.metric)
            if ranked[0] is not held[0]:
                table[prefix] = ranked
            elif not self._tracks_all:
                continue
            # With the same best path, too, other paths may be equal to it.
            dirty.setdefault(prefix, held[0])
        if several:
            self.revision += 1
        return several

    def discard_changes(self) -> None:
        """Forget all changes: nothing follows this table."""
        self._fast.forget()
        self._dirty.clear()

    def take_changes(self) -> TableChanges:
        """Return the changes since the last call."""
        changes = self._fast.take()
        whole = len(changes)
        several: dict[bytes, Path | None] = {}
        if not self._dirty:
            return TableChanges(changes, whole, several)
        dirty, self._dirty = self._dirty, {}
        table, tracks_all = self._table, self._tracks_all
        pairs: dict[tuple[Path | None, Path | None], list[bytes]] = {}
        for prefix, old in dirty.items():
            held = table.get(prefix)
            new: Path | None
            if isinstance(held, tuple):
                new = held[0]
                if tracks_all:
                    several[prefix] = old
            else:
                new = held
                if new is old and tracks_all:
                    several[prefix] = old
            if new is old:
                continue
            pair = (old, new)
            known = pairs.get(pair)
            if known is None:
                pairs[pair] = [prefix]
            else:
                known.append(prefix)
        changes.extend((old, new, nlri) for (old, new), nlri in pairs.items())
        return TableChanges(changes, whole, several)
