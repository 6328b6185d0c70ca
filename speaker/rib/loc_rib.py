"""The Loc-RIB of one family: every eligible path of a prefix, the best one first, and what changed.

A prefix with one path maps straight to that shared path, one with several to a tuple; so a full
table costs one dictionary entry per prefix. Changes since the last `take_changes` are kept as the
best path before and after, which is all that an Adj-RIB-Out needs to know, unless it tells several
paths of a prefix (RFC 7911): then all prefixes are noted whose paths changed in any way. It must
never look at peers or sessions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Final

from speaker.errors import Truncated
from speaker.nlri import ENCODED_SIZE, decode_prefixes
from speaker.rib.decision import order
from speaker.rib.path import Path, Source

_WHOLE: Final = 32
"""How many messages are kept whole at the most: each one is compared with all that were before it."""
_BESIDE: Final = 8
"""So many announcements of new prefixes are told beside such messages."""

Change = tuple[Path | None, Path | None, Sequence[bytes]]
"""The best path before and after, None for no path, and the prefixes: one for each announcement."""


class LocRib:
    """Prefix (wire bytes) -> paths."""

    __slots__ = ("_dirty", "_gone", "_moved", "_new", "_table", "_touched", "revision")

    def __init__(self) -> None:
        self._table: dict[bytes, Path | tuple[Path, ...]] = {}
        self._new: list[Change] = []
        """Whole announcements of prefixes that were new: earlier than everything in `_dirty`.

        Where there is something in `_moved`, it names none of them.
        """
        self._dirty: dict[bytes, Path | None] = {}
        """The best path before the first change, for prefixes that were changed one by one."""
        self._moved: list[Change] = []
        """Messages whose prefixes went from one path to another all together, each prefix once.

        With a change that is not as easy they become part of `_dirty`.
        """
        self._gone = False
        """Whether any of these is a withdrawal."""
        self._touched: set[bytes] | None = None
        """Prefixes of which any path changed; None while nobody wants to know."""
        self.revision = 0
        """Moves with each change, so that what was made of a table can be kept until then."""

    def __len__(self) -> int:
        return len(self._table)

    @property
    def changed(self) -> bool:
        """Whether there is anything for `take_changes`."""
        return bool(self._new or self._dirty or self._moved or self._touched)

    def track_all_paths(self) -> None:
        """Note from now on changes of paths that are not best, too."""
        if self._touched is None:
            self._touched = set()

    def take_touched(self) -> set[bytes]:
        """Return the prefixes of which any path changed since the last call; for followers."""
        if self._touched is None:
            return set()
        touched, self._touched = self._touched, set()
        return touched

    def best(self, nlri: bytes) -> Path | None:
        """Return the best path of a prefix."""
        held = self._table.get(nlri)
        return held[0] if type(held) is tuple else held  # type: ignore[return-value]  # by type()

    def paths(self, nlri: bytes) -> tuple[Path, ...]:
        """Return all paths of a prefix, the best one first."""
        held = self._table.get(nlri)
        if held is None:
            return ()
        return held if isinstance(held, tuple) else (held,)

    def items(self) -> Iterator[tuple[bytes, tuple[Path, ...]]]:
        """Iterate over all prefixes with their paths, the best one first."""
        for nlri, held in self._table.items():
            yield nlri, held if isinstance(held, tuple) else (held,)

    def prefixes(self) -> list[bytes]:
        """Return all prefixes, as they are now."""
        return list(self._table)

    def best_of(self, prefixes: Iterable[bytes]) -> dict[Path, list[bytes]]:
        """Group prefixes by their best path; those that have none are left out."""
        groups: dict[Path, list[bytes]] = {}
        for prefix in prefixes:
            path = self.best(prefix)
            if path is not None:
                groups.setdefault(path, []).append(prefix)
        return groups

    def best_by_path(self) -> dict[Path, list[bytes]]:
        """Group all prefixes by their best path."""
        groups: dict[Path, list[bytes]] = {}
        for nlri, held in self._table.items():
            path = held[0] if type(held) is tuple else held
            known = groups.get(path)  # type: ignore[arg-type]  # narrowed by type(), for speed
            if known is None:
                groups[path] = [nlri]  # type: ignore[index]  # as above
            else:
                known.append(nlri)
        return groups

    def path_of(self, source: Source, nlri: bytes) -> Path | None:
        """Return the path that a source has for a prefix."""
        held = self._table.get(nlri)
        if isinstance(held, tuple):
            return next((path for path in held if path.source is source), None)
        return held if held is not None and held.source is source else None

    def prefixes_of(self, source: Source, nlri: Iterable[bytes]) -> list[bytes]:
        """Return those of some prefixes for which a source has a path."""
        table = self._table
        found: list[bytes] = []
        for prefix in nlri:
            held = table.get(prefix)
            if type(held) is tuple:
                if any(path.source is source for path in held):
                    found.append(prefix)
            elif held is not None and held.source is source:  # type: ignore[union-attr]  # by type()
                found.append(prefix)
        return found

    def by_path_of(
        self, source: Source, nlri: Iterable[bytes]
    ) -> tuple[dict[Path, list[bytes]], list[bytes]]:
        """Group prefixes by the path that a source has for them; those without one come last."""
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
        """Give prefixes this path; it replaces what the same source said of them before.

        Returns for how many of them the source had no path.
        """
        table = self._table
        dirty = self._dirty
        self.revision += 1
        if self._touched is not None:
            self._touched.update(nlri)
        new_to_us = table.keys().isdisjoint(nlri)
        if not new_to_us and self._move(path.source, nlri, path):
            return 0
        if self._moved and not (new_to_us and self._is_apart(nlri)):
            self._fold()
        if new_to_us and (not dirty or dirty.keys().isdisjoint(nlri)):
            size = len(table)
            for prefix in nlri:
                table[prefix] = path
            new = len(table) - size
            # A message may name a prefix twice; what is told is counted.
            told = nlri if new == len(nlri) else list(dict.fromkeys(nlri))
            self._new.append((None, path, told))
            return new
        source = path.source
        new = 0
        for prefix in nlri:
            held = table.get(prefix)
            if held is None:
                table[prefix] = path
                dirty.setdefault(prefix, None)
                new += 1
                continue
            if type(held) is not tuple:
                if held.source is source:  # type: ignore[union-attr]  # narrowed by type()
                    if held is not path:
                        table[prefix] = path
                        dirty.setdefault(prefix, held)  # type: ignore[arg-type]  # as above
                    continue
                held = (held,)  # type: ignore[assignment]  # as above
            others = [other for other in held if other.source is not source]  # type: ignore[union-attr]
            if len(others) == len(held):  # type: ignore[arg-type]  # as above
                new += 1
            if others:
                ranked = order((*others, path))
                table[prefix] = ranked
                after = ranked[0]
            else:
                table[prefix] = after = path
            before = held[0]  # type: ignore[index]  # as above
            if after is not before:
                dirty.setdefault(prefix, before)
        return new

    def announce_new(
        self, paths: Sequence[Path], fields: Sequence[bytes], afi: int
    ) -> tuple[int, int]:
        """Give each of some NLRI fields its path, as long as no prefix in them has one.

        What a full table is made of; no field is empty. Returns how many fields those are, and how
        many prefixes; the next field names a prefix that is known, or one twice, or is not in
        order, or changes are followed one by one.
        """
        if self._dirty or self._gone or self._touched is not None:
            return 0, 0
        first = fields[0]
        if first[: ENCODED_SIZE[first[0]]] in self._table:
            # What is said again begins with what is known: not worth a try.
            return 0, 0
        prefixes = self._put_new(paths, fields, afi)
        if prefixes or len(fields) == 1:
            return len(fields) if prefixes else 0, prefixes
        taken = 0
        for path, field in zip(paths, fields, strict=True):
            new = self._put_new((path,), (field,), afi)
            if not new:
                break
            taken += 1
            prefixes += new
        return taken, prefixes

    def _put_new(self, paths: Sequence[Path], fields: Sequence[bytes], afi: int) -> int:
        """Give NLRI fields their paths if all prefixes are new; how many, or 0 and nothing."""
        try:
            parts = [decode_prefixes(field, afi) for field in fields]
        except Truncated:
            return 0
        table = self._table
        # One look into the table for each prefix, not two: that is what a full table waits for.
        put = table.setdefault
        size = len(table)
        for path, prefixes in zip(paths, parts, strict=True):
            for prefix in prefixes:
                put(prefix, path)
        count = sum(map(len, parts))
        if len(table) - size != count:
            # One is known, or named twice. Those that were new are the last ones of the table.
            while len(table) > size:
                table.popitem()
            return 0
        self._new.extend(zip(repeat(None), paths, parts, strict=False))
        self.revision += 1
        return count

    def _move(self, source: Source, nlri: Sequence[bytes], path: Path | None) -> int:
        """Replace, or with None take away, what a source said, if one path is all that it said.

        What most messages do, and so at one go; for how many prefixes. 0, and nothing, where it is
        not as easy as that, or where something else has changed since the last look.
        """
        if self._dirty or self._new or len(self._moved) >= _WHOLE or not nlri:
            return 0
        table = self._table
        old = table.get(nlri[0])
        if old is None or type(old) is tuple or old.source is not source:  # type: ignore[union-attr]
            return 0
        if self._moved:
            before = [prefixes for _, moved, prefixes in self._moved if moved is old]
            if before and (len(before) > 1 or not set(nlri).isdisjoint(before[0])):
                # The same prefixes, perhaps, which were something else when they were told last.
                return 0
        told = nlri
        if path is None:
            held = list(map(table.pop, nlri, repeat(None)))
            if held.count(old) != len(held):
                for prefix, was in zip(nlri, held, strict=True):
                    if was is not None:
                        table[prefix] = was
                return 0
        else:
            held = list(map(table.get, nlri))
            if held.count(old) != len(held):
                return 0
            # A message may name a prefix twice; what is told is counted.
            prefixes = dict.fromkeys(nlri, path)
            if len(prefixes) != len(nlri):
                told = list(prefixes)
            if path is not old:
                table.update(prefixes)
        if path is not old:
            self._moved.append((old, path, told))  # type: ignore[arg-type]  # narrowed by type()
            self._gone = self._gone or path is None
        return len(told)

    def _is_apart(self, nlri: Sequence[bytes]) -> bool:
        """Tell whether no message that was kept whole has taken away one of these prefixes.

        Then they are told beside it: one peer's new prefix does not wait until another's flood of
        withdrawals is looked at prefix by prefix. For a few only, as each is compared with all.
        """
        if len(self._new) >= _BESIDE:
            return False
        ours = set(nlri)
        return all(ours.isdisjoint(gone) for _, path, gone in self._moved if path is None)

    def _fold(self) -> None:
        """Take the messages that were kept whole for changes of each of their prefixes."""
        for old, _, nlri in self._moved:
            self._dirty.update(dict.fromkeys(nlri, old))
        self._moved.clear()
        self._gone = False

    def withdraw(self, source: Source, nlri: Sequence[bytes]) -> int:
        """Take away what a source said of prefixes; those that it said nothing of stay.

        Returns how many it had said something of.
        """
        self.revision += 1
        touched = self._touched
        if touched is None and (gone := self._move(source, nlri, None)):
            return gone
        if self._moved:
            self._fold()
        table = self._table
        dirty = self._dirty
        gone = 0
        for prefix in nlri:
            held = table.get(prefix)
            if held is None:
                continue
            if touched is not None:
                touched.add(prefix)
            if isinstance(held, tuple):
                others = [other for other in held if other.source is not source]
                if len(others) == len(held):
                    continue
                table[prefix] = others[0] if len(others) == 1 else order(others)
                after = others[0] if len(others) == 1 else table[prefix][0]  # type: ignore[index]
                if after is not held[0]:
                    dirty.setdefault(prefix, held[0])
            elif held.source is source:
                del table[prefix]
                dirty.setdefault(prefix, held)
            else:
                continue
            gone += 1
        return gone

    def discard_changes(self) -> None:
        """Let go of all changes: there is nobody who has to be told."""
        self._new.clear()
        self._moved.clear()
        self._gone = False
        self._dirty.clear()
        self.take_touched()

    def take_changes(self) -> list[Change]:
        """Return what changed since the last call, in an order in which it can be told."""
        changes, self._new = self._new, []
        if self._moved:
            changes += self._moved
            self._moved.clear()
            self._gone = False
        if not self._dirty:
            return changes
        dirty, self._dirty = self._dirty, {}
        table = self._table
        pairs: dict[tuple[Path | None, Path | None], list[bytes]] = {}
        for prefix, old in dirty.items():
            held = table.get(prefix)
            new = held[0] if isinstance(held, tuple) else held
            if new is old:
                continue
            pair = (old, new)
            known = pairs.get(pair)
            if known is None:
                pairs[pair] = [prefix]
            else:
                known.append(prefix)
        changes.extend((old, new, nlri) for (old, new), nlri in pairs.items())
        return changes
