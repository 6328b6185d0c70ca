"""A stream of best paths: what one reader of a Loc-RIB is sent, at its own pace.

It follows the Loc-RIB of its instance as imports and BMP stations do. What it sends is bounded by
what its reader has taken; what it keeps meanwhile is bounded by the table:

=========  ==============================================================================
table      the prefixes of the whole table, in slices: at the beginning
queue      changes of whole messages, up to `QUEUE_PREFIXES`: passed on as they are
backlog    prefixes with the best path that the reader was given last: everything else.
           What a prefix has now is looked up when it is sent, so that steps in between
           are not sent (`speaker.engine.backlog`). Changes of few prefixes that find others
           in the queue are urgent: they precede the queue, unless it has these prefixes, too,
           and are batches of their own, for which a reader has room when it has none for others
=========  ==============================================================================

While the table is sent every change is backlog, of which a slice of the table takes its prefixes. The
queue precedes the rest of the backlog: no prefix of the backlog is added to it, and no more than
`QUEUE_PREFIXES` before some of the backlog is sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, final

from speaker.api import (
    FEW_PREFIXES,
    NO_PATHS,
    BestPathChange,
    BestPathItem,
    InstanceRemoved,
    Multipath,
    PathSet,
    SelectionEnd,
    TableBegin,
    TableEnd,
)
from speaker.engine.backlog import Backlog
from speaker.engine.change_queue import ChangeQueue
from speaker.engine.instance import Instance
from speaker.engine.path_sets import PathSets
from speaker.nlri import Family
from speaker.rib.decision import equal_paths
from speaker.rib.loc_rib import LocRib, TableChanges
from speaker.rib.path import Path

MAX_UNREAD: Final = 2
"""Batches that are sent before the reader has taken one of them."""
MAX_UNREAD_URGENT: Final = 2
"""Batches of urgent changes beside them."""


BATCH_PREFIXES: Final = 1024
"""Prefixes of the queue in a batch, more only where a single message has more: a new change waits for
the reader's work on the prefixes of a batch."""


QUEUE_PREFIXES: Final = 128 * BATCH_PREFIXES


LOOKUPS: Final = 1000
"""Prefixes that are looked up for a batch: one or two milliseconds."""


URGENT_PREFIXES: Final = FEW_PREFIXES
"""A change of more prefixes is part of a table."""


@final
class BestPathStream:
    """The stream of one reader (`speaker.engine.instance.outbound_updates.LocRibFollower`)."""

    __slots__ = (
        "_ahead",
        "_backlog",
        "_fail",
        "_followed",
        "_given",
        "_marks",
        "_multipath",
        "_queue",
        "_selection_due",
        "_sets",
        "_table",
        "_uncopied",
        "instance",
        "reader",
        "unread",
    )

    def __init__(
        self,
        reader: int,
        instance: str,
        multipath: Multipath,
        sets: PathSets,
        fail: Callable[[BestPathStream, Exception], None],
    ) -> None:
        """Wait for the instance; ``fail`` ends the stream after an error."""
        self.reader = reader
        self.instance = instance
        self.unread: deque[bool] = deque()
        """For each batch that was sent and not taken yet, the oldest first: whether it is urgent."""
        self._multipath = multipath
        self._sets = sets
        self._fail = fail
        self._followed: Instance | None = None
        self._marks: list[BestPathItem] = []
        """Items to send before anything else."""
        self._forget()

    def _forget(self) -> None:
        self._table: Iterator[tuple[Family, LocRib, Sequence[bytes] | None]] | None = None
        """The rest of the whole table; None when it was sent."""
        self._uncopied: set[Family] = set()
        """The families of the whole table whose prefixes are not copied yet."""
        self._queue = ChangeQueue()
        self._ahead = 0
        """Prefixes that were added to the queue since some of the backlog was sent."""
        self._backlog = Backlog()
        self._selection_due: int | None = None
        """The swaps of the backlog after which all that preceded the end of selection was sent, but for
        urgent prefixes; negative before the end of selection."""
        self._given: dict[Family, dict[bytes, PathSet]] = {}
        """The sets of several paths that the reader was given last."""

    # --------------------------------------------------------------- instance

    def begin(self, instance: Instance) -> None:
        """Follow an instance, its whole table first."""
        self.detach()
        self._followed = instance
        loc = instance.outbound.loc
        if self._multipath.maximum > 1:
            loc.track_all_paths()
        instance.outbound.followers[self] = None
        self._marks = [TableBegin()]
        self._table = loc.slices(LOOKUPS)
        self._uncopied = set(loc.tables)
        self._selection_due = -1

    def removed(self) -> None:
        """Notify the reader that its instance was removed."""
        self.detach()
        self._marks = [InstanceRemoved()]

    def detach(self) -> None:
        """Follow no instance, and forget all that is not sent."""
        if self._followed is not None:
            self._followed.outbound.followers.pop(self, None)
            self._followed = None
        self._marks = []
        self._forget()

    # ---------------------------------------------------------------- changes

    def changed(self, changes: Mapping[Family, TableChanges]) -> None:
        """Take changes of the Loc-RIB (`LocRibFollower`)."""
        try:
            for family, changed in changes.items():
                # What changes before the copy of a table is in the copy.
                if family not in self._uncopied:
                    self._take(family, changed)
        except Exception as error:  # noqa: BLE001  fence: the peers are sent their UPDATEs
            self._fail(self, error)

    def _take(self, family: Family, changed: TableChanges) -> None:
        is_single = self._multipath.maximum == 1
        for number, change in enumerate(changed.best):
            old, _, nlri = change
            is_whole = is_single or number < changed.whole
            is_urgent = self._is_urgent(family, nlri)
            if is_whole and not is_urgent and self._may_queue(family, nlri):
                self._queue.append(family, change)
                self._ahead += len(nlri)
                continue
            add = self._backlog.add_urgent if is_urgent else self._backlog.add
            if is_whole or not changed.several:
                add(family, ((prefix, old) for prefix in nlri))
            else:
                add(family, ((n, old) for n in nlri if n not in changed.several))
        if changed.several and not is_single:
            several = changed.several
            is_urgent = self._is_urgent(family, list(several))
            add = self._backlog.add_urgent if is_urgent else self._backlog.add
            add(family, several.items())

    def _is_urgent(self, family: Family, nlri: Sequence[bytes]) -> bool:
        """Return whether a change of few prefixes would wait for others, and need not.

        Not once the end of selection is due: it follows all urgent ones, which have an end then.
        """
        due = self._selection_due
        return (
            (bool(self._queue) or self.unread.count(False) >= MAX_UNREAD)
            and (due is None or due < 0)
            and len(nlri) <= URGENT_PREFIXES
            and self._queue.is_disjoint(family, nlri)
        )

    def _may_queue(self, family: Family, nlri: Sequence[bytes]) -> bool:
        """Return whether a change can be passed on as it is."""
        if self._table is not None or self._queue.prefixes >= QUEUE_PREFIXES:
            return False
        backlog = self._backlog
        return not backlog or (
            (not backlog.has_others or self._ahead < QUEUE_PREFIXES)
            and backlog.is_disjoint(family, nlri)
        )

    # ------------------------------------------------------------------- send

    def taken(self, batches: int) -> None:
        """Note that the reader has taken the oldest batches."""
        for _ in range(min(batches, len(self.unread))):
            self.unread.popleft()

    @property
    def ready(self) -> bool:
        """Whether there is anything to send, and room for it."""
        if self.is_urgent:
            return True
        if self.unread.count(False) >= MAX_UNREAD:
            return False
        if self._queue or self._backlog.has_others or self._marks or self._table is not None:
            return True
        return self._selection_due is not None and not self._deferred and not self._backlog

    @property
    def is_urgent(self) -> bool:
        """Whether the next batch is urgent changes: they follow the whole table."""
        return (
            self._table is None
            and self._backlog.has_urgent
            and self.unread.count(True) < MAX_UNREAD_URGENT
        )

    @property
    def looks_up(self) -> bool:
        """Whether the next batch, if it is not urgent, looks prefixes up in the table."""
        has_room = self._queue.prefixes < BATCH_PREFIXES // 2
        return self._table is not None or (has_room and self._backlog.has_others)

    @property
    def waiting(self) -> tuple[bool, int, int]:
        """Whether the table is being sent; the prefixes of the queue, and of the backlog."""
        return self._table is not None, self._queue.prefixes, len(self._backlog)

    @property
    def _deferred(self) -> bool:
        return self._followed is not None and self._followed.restarting

    def batch(self) -> list[BestPathItem]:
        """Return the next items; empty while the prefixes of a long table are copied."""
        followed = self._followed
        if followed is not None and followed.outbound.loc.changed:
            # Imports from an instance that itself imports: what is looked up has to be the state
            # behind all changes that this stream has taken.
            followed.outbound.send_table_changes()
        items, self._marks = self._marks, []
        if self._table is not None:
            if not self._add_slice(items):
                return items
            items.append(TableEnd())
            self._table = None
        if self.is_urgent:
            for family, prefixes in self._backlog.take_urgent(LOOKUPS // 2).items():
                items += self._looked_up(family, prefixes)
            return items
        sent = self._send_queue(items)
        if not self._queue:
            if sent < BATCH_PREFIXES // 2:
                # Also behind some of the queue, or single changes would keep the backlog waiting.
                items += self._of_backlog()
            self._end_selection(items)
        return items

    def _send_queue(self, items: list[BestPathItem]) -> int:
        """Add changes of the queue; returns the number of their prefixes."""
        sent = 0
        key: tuple[Family, PathSet, PathSet] | None = None
        joined: list[bytes] = []
        while self._queue and sent < BATCH_PREFIXES:
            family, (old, new, nlri) = self._queue.popleft()
            sent += len(nlri)
            before, after = self._single(old), self._single(new)
            if before == after:
                continue
            # No prefix is in two successive changes between the same sets.
            if key == (family, before, after):
                joined += nlri
            else:
                key, joined = (family, before, after), list(nlri)
                items.append(BestPathChange(family, before, after, joined))
        return sent

    def _add_slice(self, items: list[BestPathItem]) -> bool:
        """Add a slice of the whole table; returns whether that was the last one before."""
        assert self._table is not None  # noqa: S101  checked by `batch`
        part = next(self._table, None)
        if part is None:
            return True
        family, table, prefixes = part
        if prefixes is None:
            return False
        self._uncopied.discard(family)
        # The reader has nothing of these prefixes, whatever changed meanwhile.
        self._backlog.discard(family, prefixes)
        if self._multipath.maximum > 1:
            items += self._looked_up(family, dict.fromkeys(prefixes))
            return False
        groups: dict[PathSet, list[bytes]] = {}
        for path, nlri in table.best_of(prefixes).items():
            groups.setdefault(self._single(path), []).extend(nlri)
        items += (BestPathChange(family, NO_PATHS, s, nlri) for s, nlri in groups.items())
        return False

    def _of_backlog(self) -> Iterator[BestPathItem]:
        """Look up some prefixes of the backlog."""
        self._ahead = 0
        for family, prefixes in self._backlog.take(LOOKUPS).items():
            yield from self._looked_up(family, prefixes)

    def _end_selection(self, items: list[BestPathItem]) -> None:
        """Add the end of route selection (RFC 4724 section 4.1) behind what preceded it."""
        due = self._selection_due
        if due is None or self._deferred:
            return
        if due < 0:
            due = self._selection_due = self._backlog.swaps + 2
        backlog = self._backlog
        if not backlog or (backlog.swaps >= due and not backlog.has_urgent):
            items.append(SelectionEnd())
            self._selection_due = None

    def _looked_up(
        self, family: Family, prefixes: Mapping[bytes, Path | None]
    ) -> Iterator[BestPathItem]:
        """Yield the changes of prefixes, from the best path before to what the table has now."""
        assert self._followed is not None  # noqa: S101  without an instance nothing is kept
        table = self._followed.outbound.loc.tables[family]
        groups: dict[tuple[PathSet, PathSet], list[bytes]] = {}
        if self._multipath.maximum == 1:
            pairs: dict[tuple[Path | None, Path | None], list[bytes]] = {}
            best = table.best
            for prefix, old in prefixes.items():
                pairs.setdefault((old, best(prefix)), []).append(prefix)
            for (old, new), nlri in pairs.items():
                groups.setdefault((self._single(old), self._single(new)), []).extend(nlri)
        else:
            given = self._given.setdefault(family, {})
            sets: dict[tuple[Path, ...], PathSet] = {}
            for prefix, old in prefixes.items():
                paths = table.paths(prefix)
                after = sets.get(paths)
                if after is None:
                    after = sets[paths] = self._best(paths, table)
                before = given.pop(prefix, None) or self._single(old)
                if len(after.paths) > 1:
                    given[prefix] = after
                groups.setdefault((before, after), []).append(prefix)
        for (before, after), nlri in groups.items():
            if before != after:
                yield BestPathChange(family, before, after, nlri)

    def _single(self, path: Path | None) -> PathSet:
        return NO_PATHS if path is None else self._sets.single(path, self.instance)

    def _best(self, paths: tuple[Path, ...], table: LocRib) -> PathSet:
        if len(paths) < 2:
            return self._single(paths[0] if paths else None)
        equal = equal_paths(
            paths,
            maximum=self._multipath.maximum,
            relax=self._multipath.relax,
            metric=table.metric,
        )
        return self._sets.several(equal, self.instance)
