"""The objects of one reconciler that are due, that wait, or that failed and are retried later."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Final

import msgspec

from reconcilers.model import ReconcileStatus
from reconcilers.sliced_work import Slices, settled
from reconcilers.target.reconciler import NotNow, ObjectKey, Part, Parts, ReconcileError, Reconciler
from statedb import Snapshot

LISTING: Final[ObjectKey] = ("*",)
"""Stands for all objects in the status of a listing that failed."""


class ReconcileOutcome(msgspec.Struct, frozen=True):
    """A write, a failure of an object or of the listing, or the first success after a failure."""

    reconciler: str
    key: ObjectKey
    written: bool = False
    recovered: bool = False
    """True if the attempt before failed, and this one did not."""
    error: Exception | None = None
    text: str = ""
    """The error for people; empty for a success."""
    repeated: bool = False
    """True if the attempt before, or the object given up before, failed with the same text."""
    attempts: int = 0
    """Failures since the last success, this one included."""
    retry_in: float = 0.0
    """Seconds until the next attempt."""
    given_up: bool = False
    """True if there is no next attempt."""


class Queue:
    """One reconciler's objects: the dirty ones, and the status of each.

    An object stays in `dirty` until it has been reconciled, whatever interrupts that.
    """

    def __init__(
        self, reconciler: Reconciler, rng: random.Random, report: Callable[[ReconcileOutcome], None]
    ) -> None:
        """``report`` receives each write, each failure, and each end of one."""
        description = reconciler.description
        self.reconciler = reconciler
        self.name = description.name
        self._ordered = description.ordered
        self._pace = description.pace
        self._rng = rng
        self._report = report
        self.dirty: dict[ObjectKey, dict[Part, None] | None] = {}
        """Objects to reconcile with the parts that changed, in their order; None is all of them."""
        self.statuses: dict[ObjectKey, ReconcileStatus] = {}
        self.failing: dict[ObjectKey, ReconcileStatus] = {}
        """The rows of `statuses` with an error."""
        self.written: dict[ObjectKey, ReconcileStatus | None] = {}
        """Changes of statuses that have not been written to the table; None is a deletion."""
        self.changed_parts = 0
        """The number of parts of the last changes, where it is known."""
        self.listed = False
        """Whether the objects have ever been listed."""
        self.current = False
        """Whether the changes since the last `take` are known: not before the first."""
        self._listing_due = math.inf
        """When all objects are listed again: after a failure, or in the pace of the reconciler."""
        self._paused_until: float | None = None
        """Nothing is taken or reconciled before."""
        self.unproven = False
        """True after an error of an object that concerned all, until a round ends without one."""
        self._given_up: tuple[ObjectKey, str] | None = None
        """The last object that was given up with its error, until another object is written."""
        self._due: dict[ObjectKey, float] = {}
        """Dirty objects that wait -> when they are due."""
        self._attempted: dict[ObjectKey, float] = {}
        """Objects -> their last writes, in a reconciler with an interval between two."""
        self._compared: dict[ObjectKey, float] = {}
        """Objects that are compared again without a change -> when."""

    def is_up_to_date(self, changed: AbstractSet[str], now: Callable[[], float]) -> bool:
        """True if the queue takes nothing where these tables have changed since the last round."""
        self.changed_parts = 0
        return (
            self.current
            and not self.unproven
            and LISTING not in self.failing
            and not self.reconciler.concerns(changed)
            and now() < self._listing_due
        )

    def take(self, snapshot: Snapshot, now: Callable[[], float]) -> Slices[bool]:
        """Take what has changed up to a snapshot into the queue; everything after an error.

        An error is the status of the listing; dirty objects stay dirty. Returns whether the listing
        has failed, or has succeeded again.
        """
        self.changed_parts = 0
        at = now()
        known, self.current = self.current and at < self._listing_due, False
        # Changes of tables are taken in a pause, too: no later round takes them. A listing waits.
        if not known and self.is_paused(now):
            return False
        try:
            changes = yield from self.reconciler.changes(snapshot)
            if not known:
                present = yield from settled(self.reconciler.actual_objects())
                changes = dict.fromkeys(chain(self.reconciler.objects(snapshot), present))
                at = now()
        except Exception as error:  # noqa: BLE001  an error is the status of the listing
            self.listing_failed(error, now())
            return True
        self.add(changes, at, settle=self._pace.settle if known else 0.0)
        self.changed_parts = sum([len(parts) for parts in changes.values() if parts is not None])
        self.listed = self.current = True
        if not known:
            self._listing_due = at + self._pace.list_again()
        if self.unproven or LISTING not in self.failing:
            return False
        self._listing_succeeded()
        return True

    def _listing_succeeded(self) -> None:
        self.written[LISTING] = None
        del self.failing[LISTING]
        self._report(ReconcileOutcome(self.name, LISTING, recovered=True))

    def end_round(self) -> None:
        """Note that a round of the queue has ended; it ends an error of all objects."""
        if self.unproven and self.current:
            self.unproven = False
            self._listing_succeeded()

    def listing_failed(self, error: Exception, now: float) -> None:
        """Record that the queue's objects cannot be listed; the next `take` lists all of them."""
        self.current = False
        status = self._failure(LISTING, error, self.failing.get(LISTING), now)
        self.failing[LISTING] = self.written[LISTING] = status
        self._listing_due = status.retry_at or now
        if isinstance(error, ReconcileError):
            self._paused_until = self._listing_due

    def add(self, changes: Mapping[ObjectKey, Parts], now: float, *, settle: float = 0.0) -> None:
        """Add changed objects to the queue; with its pace a failed object is due at once then."""
        for key, parts in changes.items():
            self._advance(key, now + settle, now)
            if key not in self.statuses or (key in self.failing and self.dirty.get(key) is None):
                # Parts that changed before are not known: all of them are compared.
                parts = None
            if parts is None:
                self.dirty[key] = None
            elif key not in self.dirty:
                self.dirty[key] = dict.fromkeys(parts)
            elif (known := self.dirty[key]) is not None:
                known.update(dict.fromkeys(parts))

    def _advance(self, key: ObjectKey, due: float, now: float) -> None:
        """Make an object that changed due, unless it waits for something earlier."""
        self._compared.pop(key, None)
        if key in self.failing and not self._pace.retry_changed:
            return
        if self._attempted:
            due = max(due, self._attempted.get(key, -math.inf) + self._pace.interval)
        due = min(due, self._due.get(key, due))
        if due > now:
            self._due[key] = due
        else:
            self._due.pop(key, None)

    def mark_dirty(self, key: ObjectKey) -> None:
        """Mark all parts of an object in the queue, which are compared until it is `done`."""
        self.dirty[key] = None

    def is_paused(self, now: Callable[[], float]) -> bool:
        """True if no object of the queue can be reconciled now."""
        return self._paused_until is not None and now() < self._paused_until

    def due(self, now: float) -> list[ObjectKey]:
        """Return the objects of the queue to reconcile at this time, in a steady order."""
        if self._paused_until is not None:
            if now < self._paused_until:
                return []
            self._paused_until = None
        if self._compared:
            for key in [key for key, due in self._compared.items() if due <= now]:
                del self._compared[key]
                self.dirty.setdefault(key)
        if not self.dirty:
            return []
        if self._attempted:
            since = now - self._pace.interval
            self._attempted = {key: at for key, at in self._attempted.items() if at > since}
        due = self._due
        if not due:
            return list(self.dirty) if self._ordered else sorted(self.dirty)
        keys = [key for key in self.dirty if due.get(key, now) <= now]
        return keys if self._ordered else sorted(keys, key=lambda key: (due.get(key, 0.0), key))

    @property
    def failure(self) -> tuple[ObjectKey, str] | None:
        """The first object of the queue that fails, or the last that was given up, with its error."""
        first = min(self.failing.items(), default=None)
        return self._given_up if first is None else (first[0], first[1].error or "")

    def next_due(self, *, is_ready: bool = True) -> float | None:
        """Return when the queue's first waiting object, if it is ready, or the listing is due."""
        waiting = chain(self._due.values(), self._compared.values()) if is_ready else ()
        due = min(chain(waiting, (self._listing_due,)))
        if self._paused_until is not None:
            changed = is_ready and any(key not in self._due for key in self.dirty)
            due = self._paused_until if changed else max(due, self._paused_until)
        return None if due == math.inf else due

    def done(self, key: ObjectKey, now: float, *, written: bool = False) -> None:
        """Record for the queue that an object is as desired; ``written``: it was not."""
        self._settle(key, written=written)
        if written and self._pace.interval:
            self._attempted[key] = now
        if self._pace.compare is not None:
            self._compared[key] = now + self._pace.compare
        self._write(key, ReconcileStatus(self.name, "/".join(key)))

    def gone(self, key: ObjectKey, *, written: bool = False) -> None:
        """Record for the queue that an object is neither desired nor in the target."""
        self._settle(key, written=written)
        self.forget(key)

    def wait(self, key: ObjectKey) -> None:
        """Note in the queue that an object waits for another object: any round may reconcile it."""
        self._due.pop(key, None)

    def forget(self, key: ObjectKey) -> None:
        """Drop the status of an object that the queue no longer follows."""
        self.wait(key)
        self.failing.pop(key, None)
        self._compared.pop(key, None)
        if self.statuses.pop(key, None) is not None:
            self.written[key] = None

    def failed(self, key: ObjectKey, error: Exception, now: float) -> None:
        """Record that an object of the queue failed, or waits; the pause doubles with each error."""
        parts = error.parts if isinstance(error, ReconcileError) else None
        self.dirty[key] = None if parts is None else dict.fromkeys(parts)
        if isinstance(error, NotNow):
            self._wait(key, error, now)
            return
        if isinstance(error, ReconcileError):
            if error.all_objects:
                self.unproven = True
                self.listing_failed(error, now)
                return
            if error.final:
                self._give_up(key, error)
                return
            if error.outdated:
                self._listing_due = min(self._listing_due, now + self._pace.first_retry)
        if self._pace.interval:
            self._attempted[key] = now
        status = self._failure(key, error, self.statuses.get(key), now)
        self._due[key] = status.retry_at or now
        self.failing[key] = status
        self._write(key, status)

    def _give_up(self, key: ObjectKey, error: ReconcileError) -> None:
        text = str(error)
        repeated = self._given_up is not None and self._given_up[1] == text
        self._given_up = (key, text)
        del self.dirty[key]
        self.forget(key)
        self._report(
            ReconcileOutcome(
                self.name, key, error=error, text=text, repeated=repeated, given_up=True
            )
        )

    def _wait(self, key: ObjectKey, reason: NotNow, now: float) -> None:
        self._due[key] = now + reason.seconds
        if reason.all_objects:
            self._paused_until = self._due[key]
            return
        self._succeeded(key)
        self._write(key, ReconcileStatus(self.name, "/".join(key)))

    def _failure(
        self, key: ObjectKey, error: Exception, before: ReconcileStatus | None, now: float
    ) -> ReconcileStatus:
        pace = self._pace
        attempts = 1 + (before.attempts if before is not None else 0)
        pause = min(pace.last_retry, pace.first_retry * 2 ** min(attempts - 1, 32))
        pause *= self._rng.uniform(*pace.jitter)
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, ReconcileError):
            pause += error.retry_after
            text = str(error)
        pause = max(pause, pace.interval)
        outcome = ReconcileOutcome(
            self.name,
            key,
            error=error,
            text=text,
            repeated=before is not None and before.error == text,
            attempts=attempts,
            retry_in=pause,
        )
        self._report(outcome)
        return ReconcileStatus(self.name, "/".join(key), text, attempts, now + pause)

    def _settle(self, key: ObjectKey, *, written: bool) -> None:
        self.dirty.pop(key, None)
        self._due.pop(key, None)
        self._succeeded(key, written=written)

    def _succeeded(self, key: ObjectKey, *, written: bool = False) -> None:
        recovered = self.failing.pop(key, None) is not None
        if written:
            self._given_up = None
        if recovered or written:
            self._report(ReconcileOutcome(self.name, key, written, recovered))

    def _write(self, key: ObjectKey, status: ReconcileStatus) -> None:
        if self.statuses.get(key) != status:
            self.statuses[key] = self.written[key] = status
