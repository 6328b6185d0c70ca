"""The objects of one reconciler that are due, that wait, or that failed and are retried later."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import chain
from typing import Final

from reconcilers.apply.reconciler import ObjectKey, Part, Parts, Reconciler
from reconcilers.model import ReconcileStatus
from reconcilers.slices import Slices
from statedb import Snapshot

FIRST_RETRY_SECONDS: Final = 0.5
LAST_RETRY_SECONDS: Final = 30.0
JITTER: Final = (0.75, 1.25)
LISTING: Final[ObjectKey] = ("*",)
"""Stands for all objects in the status of a listing that failed."""


class Queue:
    """One reconciler's objects: what is owed, and the status of each.

    An object stays in `owed` until it has been reconciled, whatever interrupts that.
    """

    def __init__(self, reconciler: Reconciler, rng: random.Random) -> None:
        self.reconciler = reconciler
        self.name = reconciler.description.name
        self.owed: dict[ObjectKey, set[Part] | None] = {}
        """Objects to reconcile with the parts that changed; None is all of them."""
        self.statuses: dict[ObjectKey, ReconcileStatus] = {}
        self.failing: dict[ObjectKey, ReconcileStatus] = {}
        """Those of `statuses` with an error."""
        self.written: dict[ObjectKey, ReconcileStatus | None] = {}
        """Changes of statuses that have not been written to the table; None is a deletion."""
        self._rng = rng
        self.changed_parts = 0
        """The number of parts of the last changes, where it is known."""
        self.listed = False
        """Whether the objects have ever been listed."""
        self.current = False
        """Whether the changes since the last `take` are known: not before the first."""
        self._listing_retry: float | None = None
        """When a listing that failed is due again."""
        self._postponed: dict[ObjectKey, float] = {}
        """Objects that failed -> when they are due again."""

    def take(self, snapshot: Snapshot, now: float) -> Slices[bool]:
        """Add what has changed up to a snapshot; everything the first time and after an error.

        An error is the status of the listing; what is owed already stays. Returns whether the listing
        has failed, or has succeeded again.
        """
        known, self.current = self.current, False
        self.changed_parts = 0
        try:
            changes = yield from self.reconciler.changes(snapshot)
            if not known:
                changes = dict.fromkeys(
                    chain(self.reconciler.objects(snapshot), self.reconciler.actual_objects())
                )
        except Exception as error:  # noqa: BLE001  an error is the status of the listing
            self.listing_failed(error, now)
            return True
        self.add(changes)
        self.changed_parts = sum(len(parts) for parts in changes.values() if parts is not None)
        self.listed = self.current = True
        self._listing_retry = None
        if self.failing.pop(LISTING, None) is None:
            return False
        self.written[LISTING] = None
        return True

    def listing_failed(self, error: Exception, now: float) -> None:
        """Record that the objects cannot be listed; the next `take` lists all of them."""
        self.current = False
        status = self._failure(LISTING, error, self.failing.get(LISTING), now)
        self.failing[LISTING] = self.written[LISTING] = status
        self._listing_retry = status.retry_at

    def add(self, changes: Mapping[ObjectKey, Parts]) -> None:
        """Add changed objects; one that failed is due at once then."""
        for key, parts in changes.items():
            self._postponed.pop(key, None)
            if key not in self.statuses or key in self.failing:
                # Parts that changed before are not known: all of them are compared.
                parts = None
            if parts is None:
                self.owed[key] = None
            elif key not in self.owed:
                self.owed[key] = set(parts)
            elif (known := self.owed[key]) is not None:
                known.update(parts)

    def owe_whole(self, key: ObjectKey) -> None:
        """Owe all parts of an object until it is `done`."""
        self.owed[key] = None

    def due(self, now: float) -> list[ObjectKey]:
        """Return the objects to reconcile at this time, in a steady order."""
        if not self.owed:
            return []
        return sorted(key for key in self.owed if self._postponed.get(key, now) <= now)

    def next_retry(self) -> float | None:
        """Return when the first object that failed, or the listing, is due again."""
        times = chain(self._postponed.values(), (self._listing_retry,))
        return min((time for time in times if time is not None), default=None)

    def done(self, key: ObjectKey) -> None:
        """Record that an object is as desired."""
        self._settle(key)
        self._write(key, ReconcileStatus(self.name, "/".join(key)))

    def gone(self, key: ObjectKey) -> None:
        """Record that an object is neither desired nor in the target."""
        self._settle(key)
        self.forget(key)

    def forget(self, key: ObjectKey) -> None:
        """Drop the status of an object that is no longer followed."""
        self.failing.pop(key, None)
        if self.statuses.pop(key, None) is not None:
            self.written[key] = None

    def failed(self, key: ObjectKey, error: Exception, now: float) -> None:
        """Record an error; the pause before the retry doubles with each one."""
        status = self._failure(key, error, self.statuses.get(key), now)
        self.owed[key] = None
        self._postponed[key] = status.retry_at or now
        self.failing[key] = status
        self._write(key, status)

    def _failure(
        self, key: ObjectKey, error: Exception, before: ReconcileStatus | None, now: float
    ) -> ReconcileStatus:
        attempts = 1 + (before.attempts if before is not None else 0)
        pause = min(LAST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** min(attempts - 1, 32))
        retry_at = now + pause * self._rng.uniform(*JITTER)
        text = f"{type(error).__name__}: {error}"
        return ReconcileStatus(self.name, "/".join(key), text, attempts, retry_at)

    def _settle(self, key: ObjectKey) -> None:
        self.owed.pop(key, None)
        self._postponed.pop(key, None)
        self.failing.pop(key, None)

    def _write(self, key: ObjectKey, status: ReconcileStatus) -> None:
        if self.statuses.get(key) != status:
            self.statuses[key] = self.written[key] = status
