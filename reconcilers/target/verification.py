"""Full verification: everything that the targets hold against everything that they should.

Rounds compare what has changed. This compares the rest, in slices of a few milliseconds between which
rounds go on: each comparison reads the snapshot that the last round has applied, so that a change
between two slices is not a difference. Objects that are dirty (failed, or waiting for another object)
are left to the rounds, or only their dirty parts where these are known, as are objects of a reconciler
that cannot list them. Rounds compare the whole of a target that answers with coroutines, at the pace of
its reconciler (`Pace.compare`, `list_again`).

What differs is *drift*: it is repaired at once, in the order of the reconcilers, and reported once per
object. Objects that should not exist are deleted at the end, in the opposite order.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from reconcilers.target.comparison import difference
from reconcilers.target.queue import LISTING, Queue
from reconcilers.target.reconciler import (
    WHOLE,
    Answer,
    ObjectKey,
    Part,
    ReconcileError,
    Reconciler,
    State,
)
from reconcilers.target.runner import Runner
from statedb import Snapshot

SLICE_SECONDS: Final = 0.005
"""Work between two slices. One piece may come on top of it, so that a slice stays below 10 ms."""
PIECE_PARTS: Final = 200
"""Parts that are compared between two readings of the clock: about a millisecond."""
MAX_DETAILS: Final = 10
"""Parts of an object that are named."""


class Drift(msgspec.Struct, frozen=True):
    """The differences of one object and their repair, or the error that prevented the comparison."""

    reconciler: str
    object: str
    missing: int = 0
    """Parts that the target did not have; 1 for an object without parts of its own."""
    unexpected: int = 0
    """Parts that the target should not have had."""
    different: int = 0
    """Parts with another value."""
    details: tuple[str, ...] = ()
    """The first of them: prefixes of a route set, fields of other objects; never values."""
    error: str | None = None
    """Why it could not be repaired, or compared at all; rounds retry it. None if it was repaired."""

    @property
    def parts(self) -> int:
        """The parts of an object that differed in a full verification."""
        return self.missing + self.unexpected + self.different


T = TypeVar("T")
Listing: TypeAlias = Callable[[], Answer[Iterable[ObjectKey]]]
Work: TypeAlias = Callable[[Queue, ObjectKey, Snapshot], Iterator[Drift | None]]


class Verification:
    """One full verification. ``now`` is the clock of `Runner.run`, ``clock`` measures slices."""

    def __init__(
        self,
        runner: Runner,
        now: Callable[[], float] = time.monotonic,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._runner = runner
        self._now = now
        self._clock = clock
        self._until = 0.0
        self.objects = 0
        """Objects that have been compared."""

    def slices(self) -> Iterator[list[Drift]]:
        """Verify all objects; each step is a slice and returns the objects that have drifted.

        Nothing is verified before the first round.
        """
        differing: list[Drift] = []
        self._until = self._clock() + SLICE_SECONDS
        for drift in self._all():
            if drift is not None:
                differing.append(drift)
                self._runner.count_drift(drift.reconciler, drift.parts)
            if self._clock() >= self._until:
                self._runner.write_statuses()
                yield differing
                differing = []
                self._until = self._clock() + SLICE_SECONDS
        self._runner.write_statuses()
        yield differing

    def _all(self) -> Iterator[Drift | None]:
        """Compare piece by piece."""
        snapshot = self._runner.applied
        if snapshot is None:
            return
        for queue in self._runner.queues:
            desired = functools.partial(queue.reconciler.objects, snapshot)
            yield from self._each(queue, desired, self._verify, snapshot)
        for queue in reversed(self._runner.queues):
            yield from self._each(queue, queue.reconciler.actual_objects, self._prune, snapshot)

    def _each(
        self, queue: Queue, listing: Listing, work: Work, snapshot: Snapshot
    ) -> Iterator[Drift | None]:
        """Do something for each object; an error of the listing is its status, and rounds retry it."""
        if not queue.current:
            return
        try:
            keys = list(_given(listing()))
        except Exception as error:  # noqa: BLE001  an error is the status of the listing
            queue.listing_failed(error, self._now())
            yield Drift(queue.name, "/".join(LISTING), error=queue.failing[LISTING].error)
            return
        for key in keys:
            yield from work(queue, key, snapshot)

    def _verify(self, queue: Queue, key: ObjectKey, snapshot: Snapshot) -> Iterator[Drift | None]:
        """Compare an object piece by piece; an error of any read or write is its status."""
        self.objects += 1
        comparison = _Comparison(queue.reconciler, key)
        try:
            for piece in queue.reconciler.pieces(snapshot, key, PIECE_PARTS):
                self._compare(queue, key, piece, comparison)
                yield None
        except Exception as error:  # noqa: BLE001  an error is the status of its object
            comparison.error = self._failed(queue, key, error)
        yield comparison.drift()

    def _compare(
        self, queue: Queue, key: ObjectKey, piece: Collection[Part], comparison: _Comparison
    ) -> None:
        """Compare a piece with what it should be by now, and repair it."""
        snapshot = self._runner.applied
        reconciler = queue.reconciler
        dirty = queue.dirty.get(key, ())
        if (
            snapshot is None
            or not queue.current
            or dirty is None
            or not reconciler.wanted(snapshot, key)
            or not reconciler.possible(key)
        ):
            return
        if dirty:
            piece = [part for part in piece if part not in dirty]
        actual = _given(reconciler.actual(key, piece))
        desired = reconciler.desired(snapshot, key, piece)
        changes = difference(desired, actual or {})
        if actual is not None and not changes:
            return
        comparison.add(desired, actual, changes)
        # Whatever interrupts the repair, rounds compare the object whole.
        queue.mark_dirty(key)
        try:
            reconciler.update(key, changes)
        except ReconcileError as error:
            if error.parts is not None:
                error.parts = [*dirty, *error.parts]
            raise
        if dirty:
            queue.dirty[key] = dirty
        else:
            queue.done(key, self._now())

    def _prune(self, queue: Queue, key: ObjectKey, snapshot: Snapshot) -> Iterator[Drift | None]:
        """Delete an object that should not exist, after its parts, piece by piece."""
        reconciler = queue.reconciler
        unexpected, error = 0, None
        try:
            if not self._is_unexpected(queue, key):
                return
            unexpected, removed = 1, 0
            for piece in reconciler.pieces(snapshot, key, PIECE_PARTS):
                held = _given(reconciler.actual(key, piece)) or {}
                if held and WHOLE not in held:
                    removed += len(held)
                    unexpected = removed
                    queue.mark_dirty(key)
                    reconciler.update(key, dict.fromkeys(held))
                    queue.gone(key)
                    yield None
                    if not self._is_unexpected(queue, key):
                        break
            else:
                queue.mark_dirty(key)
                reconciler.delete(key)
                queue.gone(key)
        except Exception as failure:  # noqa: BLE001  an error is the status of its object
            error = self._failed(queue, key, failure)
        yield Drift(queue.name, "/".join(key), unexpected=unexpected, error=error)

    def _is_unexpected(self, queue: Queue, key: ObjectKey) -> bool:
        snapshot = self._runner.applied
        reconciler = queue.reconciler
        return (
            snapshot is not None
            and queue.current
            and key not in queue.dirty
            and not reconciler.wanted(snapshot, key)
            and _given(reconciler.actual(key, ())) is not None
            and not reconciler.still_used((key,))
        )

    def _failed(self, queue: Queue, key: ObjectKey, error: Exception) -> str | None:
        """Record the error of an object for the rounds; returns its text."""
        queue.failed(key, error, self._now())
        return queue.failing[key].error


def _given(answer: Answer[T]) -> T:
    if isinstance(answer, Awaitable):
        raise TypeError("a target that answers with coroutines is verified")
    return answer


class _Comparison:
    """The differences of one object, gathered over its pieces."""

    def __init__(self, reconciler: Reconciler, key: ObjectKey) -> None:
        self._reconciler = reconciler
        self._key = key
        self._missing = self._unexpected = self._different = 0
        self._details: list[str] = []
        self.error: str | None = None

    def add(self, desired: State, actual: State | None, changes: State) -> None:
        """Count the differences of a piece of a verified object."""
        if actual is None and not changes:
            self._missing += 1
        for part, value in changes.items():
            held = None if actual is None else actual.get(part)
            if held is None:
                self._missing += 1
            elif part not in desired:
                self._unexpected += 1
            else:
                self._different += 1
            room = MAX_DETAILS - len(self._details)
            if room > 0:
                self._details += self._detail(part, value, held)[:room]

    def _detail(self, part: Part, value: Any, held: Any) -> list[str]:  # noqa: ANN401
        if part != WHOLE:
            return [self._reconciler.text(part)]
        if isinstance(value, msgspec.Struct) and type(value) is type(held):
            fields = value.__struct_fields__
            return [field for field in fields if getattr(value, field) != getattr(held, field)]
        return []

    def drift(self) -> Drift | None:
        """Return the drift of a verified object; None without differences and without an error."""
        drift = Drift(
            reconciler=self._reconciler.description.name,
            object="/".join(self._key),
            missing=self._missing,
            unexpected=self._unexpected,
            different=self._different,
            details=tuple(sorted(self._details)),
            error=self.error,
        )
        return drift if drift.parts or drift.error is not None else None
