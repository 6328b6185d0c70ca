"""The leader's writes: plans are carried out, failed writes are retried.

One object's failure delays no other. An object is written if it differs from the stored one; after a
write it is not written again before the change has been read back, or for a while.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog

from cells.hive import Health
from reconcilers import conditions
from reconcilers.model import Condition, ObjectRef
from reconcilers.operator import Apply, Delete, Plan, Statuses, Write
from resources.errors import ResourceError
from resources.kind import Kind, Kinds
from resources.kubernetes import KubernetesError, Refused, Writer

FIRST, LONGEST = 1.0, 512.0
"""Seconds until a failed write is retried: doubling, with jitter."""
LEAST = 1.0
"""Seconds between two writes of one object at least: changes meanwhile are one write."""
UNSEEN = 30.0
"""Seconds after which a write that was not read back is repeated."""

log = structlog.get_logger("waggle.operator")

Key = tuple[ObjectRef, bool]


class Attempt(msgspec.Struct):
    """The last write of one object and its result."""

    write: Write
    at: float
    failures: int = 0
    due: float = 0.0
    """When it may be retried."""
    error: str = ""


class Writing:
    """Carries out plans, one at a time."""

    def __init__(
        self,
        writer: Writer,
        kinds: Kinds,
        managed: frozenset[str],
        rng: random.Random,
        health: Health,
        *,
        allowed: Callable[[], bool],
        failed: Callable[[], None],
    ) -> None:
        """Write objects of these kinds.

        ``managed`` are the types of the conditions that are written; ``allowed`` returns before each
        write whether this operator still leads; ``failed`` counts.
        """
        self._writer = writer
        self._kinds = kinds
        self._rng = rng
        self._health = health
        self._allowed = allowed
        self._failed = failed
        self._statuses = Statuses(kinds, managed)
        self._attempts: dict[Key, Attempt] = {}
        self._last: dict[Key, float] = {}
        """Time of the last write of each object, or of its attempt."""
        self._held: list[float] = []
        """Times until which objects of this plan are delayed, as they have just been written."""
        self.written = 0

    async def carry_out(self, plan: Plan) -> float | None:
        """Write the objects of a plan; returns the seconds until the next retry, or None."""
        wanted: set[Key] = set()
        self._held.clear()
        for write in plan.objects:
            wanted.add(write.key)
            await self._once(write)
        self._statuses.keep_only(plan.conditions)
        for ref, wished in plan.conditions.items():
            wanted.add((ref, True))
            await self._status(ref, wished)
        self._attempts = {key: one for key, one in self._attempts.items() if key in wanted}
        recent = self._now() - LEAST
        self._last = {key: at for key, at in self._last.items() if at > recent}
        self._report_health()
        return self._pause()

    async def _once(self, write: Write) -> None:
        """Write an object, unless the same write was done or has failed a moment ago."""
        before = self._attempts.get(write.key)
        if before is not None and before.write == write and self._now() < before.due:
            return
        if await self._try(write, before) is not None:
            self._attempts[write.key] = Attempt(write, self._now(), due=self._now() + UNSEEN)

    async def _status(self, ref: ObjectRef, wished: tuple[Condition, ...]) -> None:
        before = self._attempts.get((ref, True))
        if before is not None and self._now() < before.due:
            return
        time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if not self._statuses.knows(ref):
            there = await self._read(ref, before)
            if there is None:
                return
            self._statuses.learn(ref, conditions.read(there))
        write = self._statuses.due(ref, wished, time)
        if write is not None:
            answer = await self._try(write, before)
            if answer is not None:
                # Conditions of other writers stay where ours are removed.
                self._statuses.learn(ref, conditions.read(answer) if wished else {})
                self._attempts.pop((ref, True), None)

    async def _read(self, ref: ObjectRef, before: Attempt | None) -> dict[str, Any] | None:
        """Read an object whose status is to be written; None where it cannot be read."""
        try:
            # A deleted object leaves the plan with the next round.
            return await self._writer.get(self._path(ref))
        except KubernetesError as error:
            self._note(Apply(ref, {}, status=True), before, error)
            return None

    async def _try(self, write: Write, before: Attempt | None) -> dict[str, Any] | None:
        """Write; returns the answer, or None without one."""
        if not self._allowed() or self._too_soon(write.key):
            return None
        self._last[write.key] = self._now()
        path = self._path(write.object, status=isinstance(write, Apply) and write.status)
        try:
            if isinstance(write, Delete):
                await self._writer.delete(path, write.uid)
                answer: dict[str, Any] = {}
            else:
                answer = await self._apply(path, write)
        except KubernetesError as error:
            self._note(write, before, error)
            return None
        self.written += 1
        log.info(
            "written",
            event_name="operator.written",
            object=str(write.object),
            what=_what(write),
        )
        return answer

    async def _apply(self, path: str, write: Apply) -> dict[str, Any]:
        """Apply; fields of another writer that conflict are adopted first."""
        try:
            answer = await self._writer.apply(path, write.content)
        except Refused as error:
            # Two writers' fields together may be invalid: each names a controller of its own.
            if error.status != 422 or write.status or not await self._writer.adopt(path):
                raise
        else:
            if (
                write.status
                or self._is_as_applied(write, answer)
                or not await self._writer.adopt(path)
            ):
                return answer
        log.info("adopted", event_name="operator.taken_over", object=str(write.object))
        return await self._writer.apply(path, write.content)

    def _too_soon(self, key: Key) -> bool:
        """Whether an object has just been written; if so, its retry is scheduled."""
        due = self._last.get(key, float("-inf")) + LEAST
        if self._now() >= due:
            return False
        self._held.append(due)
        return True

    def _note(self, write: Write, before: Attempt | None, error: KubernetesError) -> None:
        failures = (before.failures if before is not None else 0) + 1
        pause = min(LONGEST, FIRST * 2.0 ** min(failures - 1, 16)) * self._rng.uniform(0.75, 1.0)
        if isinstance(error, Refused):
            pause = max(pause, min(error.retry_after, LONGEST))
        if isinstance(error, Refused) and error.status == 404 and isinstance(write, Apply):
            # Deleted meanwhile: forget its status.
            self._statuses.forget(write.object)
        now = self._now()
        self._attempts[write.key] = Attempt(
            write, now, failures, now + pause, f"{_what(write)}: {error}"
        )
        self._failed()
        log.warning(
            "not written",
            event_name="operator.write_failed",
            object=str(write.object),
            what=_what(write),
            reason=str(error),
            attempt=failures,
            retry_in=round(pause, 1),
        )

    def _report_health(self) -> None:
        failing = [one for one in self._attempts.values() if one.failures]
        if failing:
            first = min(failing, key=lambda one: str(one.write.object))
            more = f" (and {len(failing) - 1} more)" if len(failing) > 1 else ""
            self._health.degraded(f"{first.write.object}: {first.error}{more}")
        else:
            self._health.ok(f"all objects are written ({self.written} writes)")

    def _pause(self) -> float | None:
        due = min((*self._held, *(one.due for one in self._attempts.values())), default=None)
        return None if due is None else max(0.05, due - self._now())

    def _path(self, ref: ObjectRef, *, status: bool = False) -> str:
        """Return the URL path of an object, or of its status."""
        path = self._kind(ref).object_path(ref.name, ref.namespace)
        return f"{path}/status" if status else path

    def _kind(self, ref: ObjectRef) -> Kind[Any]:
        kind = self._kinds.named(ref.kind)
        if kind is None:
            raise LookupError(f"no table has {ref}")
        return kind

    def _is_as_applied(self, write: Apply, answer: dict[str, Any]) -> bool:
        """True if an object equals the applied one: items of other writers stay in lists."""
        kind = self._kind(write.object)
        try:
            there, wanted = kind.decode(answer), kind.decode(write.content)
        except ResourceError:
            return False
        same: bool = there.spec == wanted.spec
        return same and there.metadata.owner_references == wanted.metadata.owner_references

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _what(write: Write) -> str:
    if isinstance(write, Delete):
        return "delete"
    return "status" if write.status else "apply"
