"""Runs reconcilers in their order: one snapshot per round, one status per object, retries.

A round is level-triggered: it compares the desired state with what the targets hold, so a lost wake-up
costs nothing but time. It costs what has changed: only changed objects and parts are compared. A round
on asynchronous targets is awaited, one request after the other; each object is written at the time
that the pace of its reconciler permits.

1. Objects that shall not exist are deleted, in the opposite order: peers before their route sets, route
   sets before their instance. An object that another object of the target still uses is kept.
2. Objects are created and updated, in order. An object that needs a missing one waits.
3. Objects kept in step 1 are deleted if nothing uses them any more: peers have moved by now.

An error is the status of its object: it is retried after a pause that doubles, and never keeps another
object from being reconciled. Statuses are written in one transaction per round. A reconciler that
cannot list its objects has a status of its own, and the others go on: only before its first listing
those behind it of the same target wait, as a peer must not get a route set that was never filled.
"""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any, Final

import msgspec
from opentelemetry import trace
from opentelemetry.trace import SpanContext
from reactivex import Observable

from reconcilers.model import ReconcileStatus
from reconcilers.round_span import describe_objects, round_span
from reconcilers.sliced_work import Pieces, Slices, finish, settled
from reconcilers.target.comparison import SLICE_PARTS, make_equal
from reconcilers.target.queue import Queue, ReconcileOutcome
from reconcilers.target.reconciler import Description, ObjectKey, Reconciler
from statedb import Database, Snapshot, Table

_tracer = trace.get_tracer("waggle.reconcilers")

_name: Final = attrgetter("name")
_failing: Final = attrgetter("failing")
_changed_parts: Final = attrgetter("changed_parts")

OBJECT_PARTS: Final = 100
"""Parts that take as long as an object without parts of its own."""


class RoundSummary(msgspec.Struct, frozen=True):
    """The result of a round."""

    changed: bool
    """Whether any object was reconciled, or the listing of objects failed or recovered."""
    complete: bool
    """Whether every reconciler has listed its objects, now or before."""
    retry_at: float | None
    """When an object is due that failed or that waits, on the clock of the round."""
    due: frozenset[str] = frozenset()
    """The reconcilers with objects that were due."""


class ReconcilerReport(msgspec.Struct, frozen=True):
    """A reconciler at work, for health and the API."""

    description: Description
    objects: int
    """Objects with a status."""
    errors: int
    waiting: int
    """Objects that are to be reconciled, failed ones included."""
    last_run: float | None
    """Unix seconds of the last round with work for it; None before the first."""
    seconds: float
    """Duration of that work."""
    drifted: int
    """Parts that verifications have found to differ, since the start."""
    failure: tuple[ObjectKey, str] | None = None
    """The first object that fails, with its error."""


class _Run(msgspec.Struct):
    """The last run of one reconciler."""

    at: float | None = None
    seconds: float = 0.0
    drifted: int = 0


class _Work:
    """The objects of one reconciler that a round has to reconcile."""

    def __init__(
        self,
        queue: Queue,
        snapshot: Snapshot,
        keys: list[ObjectKey],
        now: Callable[[], float],
        span: str | None,
    ) -> None:
        """``span`` is the name of the spans of its steps, None where the round has none."""
        self.queue = queue
        self._span = span
        self.wanted: list[ObjectKey] = []
        self.unwanted: list[ObjectKey] = []
        self.seconds = 0.0
        for key in keys:
            wanted = _check(queue, key, now, functools.partial(queue.reconciler.wanted, snapshot))
            if wanted is not None:
                (self.wanted if wanted else self.unwanted).append(key)

    @contextmanager
    def measured(self, keys: list[ObjectKey]) -> Iterator[None]:
        """Measure a runner's step with these objects, in a span of its own."""
        began = time.perf_counter()
        if self._span is None:
            yield
        else:
            with _tracer.start_as_current_span(self._span) as span:
                yield
                describe_objects(span, keys, self.queue.failing)
        self.seconds += time.perf_counter() - began


class Runner:
    """Reconcilers of any number of targets, run together."""

    def __init__(
        self,
        db: Database,
        statuses: Table[ReconcileStatus] | None,
        reconcilers: Iterable[Reconciler],
        rng: random.Random | None = None,
        wall_clock: Callable[[], float] = time.time,
        report: Callable[[ReconcileOutcome], None] = lambda _: None,
        name: str = "apply",
    ) -> None:
        """``statuses`` is None where no other part reads them; ``report`` receives outcomes.

        ``name`` is the first part of the names of spans.
        """
        self._name = name
        rng = rng or random.Random()  # noqa: S311  jitter, no secret
        self._db = db
        self._table = statuses
        self._wall_clock = wall_clock
        self.queues = [
            Queue(reconciler, rng, report)
            for reconciler in sorted(
                reconcilers, key=lambda reconciler: reconciler.description.order
            )
        ]
        """One per reconciler, in their order."""
        self.applied: Snapshot | None = None
        """The snapshot of the last complete round; the targets hold it, except for dirty objects."""
        self._pieces = Pieces(SLICE_PARTS)
        self._runs = {queue.name: _Run() for queue in self.queues}
        self._tables = {table.name: table for table in db.tables}

    def wakes(self, but: Collection[str] = ()) -> tuple[Observable[Any], ...]:
        """Return what makes the runner's next round due: tables and streams, ``but`` some."""
        streams = [queue.reconciler.description.stream for queue in self.queues]
        of_tables = [table.observable for table in self._declared() if table.name not in but]
        return (*of_tables, *(stream for stream in streams if stream is not None))

    def is_outdated(self) -> bool:
        """True if a table of a reconciler has changed since the runner's last round."""
        then = self.applied
        if then is None:
            return True
        changed = self._db.changed(then.revisions, self._db.snapshot())
        return not changed.isdisjoint(self._declared())

    def _declared(self) -> list[Table[Any]]:
        queues = self.queues
        names = {name: None for q in queues for name in q.reconciler.description.tables}
        return [self._tables[name] for name in names if name in self._tables]

    def run(self, now: float, causes: Sequence[SpanContext] = ()) -> RoundSummary:
        """Run all reconcilers for one round, at one go; ``now`` is in monotonic seconds."""
        return finish(self.slices(lambda: now, causes))

    def slices(
        self, now: Callable[[], float], causes: Sequence[SpanContext] = ()
    ) -> Slices[RoundSummary]:
        """Run all reconcilers for one round, in slices. `applied` is None meanwhile."""
        snapshot = self._db.snapshot()
        # The revisions alone: the log of a table releases the rows of before in slices, and would not
        # while a snapshot has them.
        revisions = None if self.applied is None else self.applied.revisions
        whole = self.applied is None
        self.applied = None
        tables = frozenset(map(_name, self._db.changed(revisions, snapshot)))
        changed = False
        for queue in self.queues:
            if not whole and queue.is_up_to_date(tables, now):
                continue
            changed |= yield from queue.take(snapshot, now)
        self._pieces.begin()
        long = self._pieces.fill_slice(sum(map(_changed_parts, self.queues))) or whole
        if long:
            yield
        began = now()
        ready = self._ready_queues()
        due = [(queue, keys) for queue in ready if (keys := queue.due(began))]
        if due:
            with round_span(_tracer, f"{self._name}.round", causes) as span:
                name = self._name if span.is_recording() else None
                changed |= yield from self._reconcile(snapshot, due, now, name, long=long)
        for queue in self.queues:
            if queue.unproven:
                queue.end_round()
        self.applied = snapshot
        self.write_statuses()
        complete = len(ready) == len(self.queues)
        names = frozenset([queue.name for queue, _ in due])
        return RoundSummary(changed, complete, self._next_due(ready), names)

    def _ready_queues(self) -> list[Queue]:
        """Return the queues up to the first one of each target that was never listed."""
        ready, unlisted = [], set[str]()
        for queue in self.queues:
            target = queue.reconciler.description.target
            if not queue.listed:
                unlisted.add(target)
            if target not in unlisted:
                ready.append(queue)
        return ready

    @property
    def has_failures(self) -> bool:
        """Whether an object of a reconciler that runs fails, or a listing."""
        return any(map(_failing, self.queues))

    def reports(self) -> list[ReconcilerReport]:
        """Report all reconcilers that run, in order."""
        return [
            ReconcilerReport(
                description=queue.reconciler.description,
                objects=len(queue.statuses),
                errors=len(queue.failing),
                waiting=len(queue.dirty),
                last_run=self._runs[queue.name].at,
                seconds=self._runs[queue.name].seconds,
                drifted=self._runs[queue.name].drifted,
                failure=queue.failure,
            )
            for queue in self.queues
        ]

    def count_drift(self, name: str, parts: int) -> None:
        """Add to the number of drifted objects of a reconciler that runs."""
        self._runs[name].drifted += parts

    def write_statuses(self) -> None:
        """Write the statuses of reconciled objects that changed, in one transaction."""
        changed = [queue for queue in self.queues if queue.written]
        if changed and self._table is not None:
            with self._db.write(self._table) as txn:
                for queue in changed:
                    for key, status in queue.written.items():
                        if status is None:
                            self._table.delete(txn, (queue.name, "/".join(key)))
                        else:
                            self._table.upsert(txn, status)
        for queue in changed:
            queue.written = {}

    # The steps of a round

    def _reconcile(
        self,
        snapshot: Snapshot,
        due: list[tuple[Queue, list[ObjectKey]]],
        now: Callable[[], float],
        span: str | None,
        *,
        long: bool,
    ) -> Slices[bool]:
        work = [
            _Work(queue, snapshot, keys, now, span and f"{span}.{queue.name}")
            for queue, keys in due
        ]
        yield from self._delete_unwanted(work, now, long=long)
        for task in work:
            if task.wanted:
                with task.measured(task.wanted):
                    task.wanted = yield from self._update(snapshot, task.queue, task.wanted, now)
                if long:
                    yield
        yield from self._delete_unwanted(work, now, long=long)
        for task in work:
            if task.wanted:
                # An object may need a later one in the order: it may be there now.
                with task.measured(task.wanted):
                    task.wanted = yield from self._update(snapshot, task.queue, task.wanted, now)
            run = self._runs[task.queue.name]
            run.at, run.seconds = self._wall_clock(), task.seconds
        taken = left = 0
        for task, (_, keys) in zip(work, due, strict=True):
            taken += len(keys)
            left += len(task.wanted) + len(task.unwanted)
        return left < taken

    def _delete_unwanted(
        self, work: Sequence[_Work], now: Callable[[], float], *, long: bool
    ) -> Slices[None]:
        """Delete what should not exist, in the opposite order; objects still in use remain."""
        for task in reversed(work):
            if task.unwanted:
                with task.measured(task.unwanted):
                    task.unwanted = yield from self._delete(
                        task.queue, task.unwanted, now, long=long
                    )

    def _delete(
        self, queue: Queue, keys: list[ObjectKey], now: Callable[[], float], *, long: bool
    ) -> Slices[list[ObjectKey]]:
        """Delete objects, each in a slice of a long round; returns the objects still in use."""
        reconciler = queue.reconciler
        present = set()
        for key in keys:
            if queue.is_paused(now):
                return []
            try:
                exists = (yield from settled(reconciler.actual(key, ()))) is not None
            except Exception as error:  # noqa: BLE001  an error is the status of its object
                queue.failed(key, error, now())
                continue
            if exists:
                present.add(key)
            else:
                queue.gone(key)
        used = _still_used(queue, present, now)
        for key in sorted(present):
            if (is_used := used.get(key)) is None or queue.is_paused(now):
                continue
            if is_used:
                # Its parts are not followed meanwhile.
                queue.forget(key)
                continue
            # Whatever interrupts the work, the object is compared whole the next time.
            queue.mark_dirty(key)
            try:
                yield from settled(reconciler.delete(key))
            except Exception as error:  # noqa: BLE001  an error is the status of its object
                queue.failed(key, error, now())
            else:
                queue.gone(key, written=True)
            if long:
                yield
        return sorted(key for key, is_used in used.items() if is_used)

    def _update(
        self, snapshot: Snapshot, queue: Queue, keys: list[ObjectKey], now: Callable[[], float]
    ) -> Slices[list[ObjectKey]]:
        """Create and change objects; returns the objects that another object is missing for."""
        reconciler = queue.reconciler
        waiting = []
        for key in keys:
            if queue.is_paused(now):
                break
            possible = _check(queue, key, now, reconciler.possible)
            if not possible:
                if possible is not None:
                    queue.wait(key)
                    waiting.append(key)
                continue
            parts = queue.dirty[key]
            # Whatever interrupts the work, the object is compared whole the next time.
            queue.mark_dirty(key)
            try:
                written = yield from make_equal(reconciler, snapshot, key, parts, self._pieces)
            except Exception as error:  # noqa: BLE001  an error is the status of its object
                queue.failed(key, error, now())
            else:
                queue.done(key, now(), written=written)
            if self._pieces.fill_slice(OBJECT_PARTS):
                yield
        return waiting

    def _next_due(self, ready: Collection[Queue]) -> float | None:
        # Objects behind a listing that fails are due after it.
        times = [queue.next_due(is_ready=queue in ready) for queue in self.queues]
        return min([time for time in times if time is not None], default=None)


def _check(
    queue: Queue, key: ObjectKey, now: Callable[[], float], check: Callable[[ObjectKey], bool]
) -> bool | None:
    """Read a fact about an object; None if the read failed, which is the object's status then."""
    try:
        return check(key)
    except Exception as error:  # noqa: BLE001  an error is the status of its object
        queue.failed(key, error, now())
        return None


def _still_used(
    queue: Queue, keys: Collection[ObjectKey], now: Callable[[], float]
) -> dict[ObjectKey, bool]:
    """Return whether objects are still used, without objects whose check failed."""
    if not keys:
        return {}
    still_used = queue.reconciler.still_used
    try:
        used = set(still_used(keys))
    except Exception:  # noqa: BLE001  checked one by one, the error is that of its object
        checks = {
            key: _check(queue, key, now, lambda key: bool(still_used((key,)))) for key in keys
        }
        return {key: is_used for key, is_used in checks.items() if is_used is not None}
    return {key: key in used for key in keys}
