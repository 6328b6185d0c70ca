"""Writes the operator's plans to the API server.

An object is written if it differs from the stored one. A failed write is retried with exponential
backoff and delays no other object. Writes of one object are at least `WRITE_INTERVAL_SECONDS` apart;
one that the operator's watch does not confirm is repeated after `UNCONFIRMED_SECONDS`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, TypeAlias, final

import msgspec

from reconcilers import conditions
from reconcilers.dialect import Delete
from reconcilers.model import Condition, ObjectRef
from reconcilers.operator.planner import Plan
from reconcilers.operator.stored_conditions import StoredConditions
from reconcilers.operator.writes import Annotate, Apply, Write
from resources.enumeration import first_of
from resources.kind import Kind, Kinds
from resources.kubernetes import ApplyClient, Backoff, KubernetesError, StatusError, apply_owned

FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 1.0, 512.0
"""Bounds of the pause after a failed write."""
RETRY_JITTER = 0.25
"""Fraction by which a pause is shortened at random."""
WRITE_INTERVAL_SECONDS = 1.0
"""Between two writes of one object: the changes of that time are one write."""
UNCONFIRMED_SECONDS = 30.0
"""After which a write is repeated that the watch has not confirmed."""
DROPPED_SECONDS = 600.0
"""After which conditions of a kind are written again that the API server has dropped."""
SHORTEST_PAUSE_SECONDS = 0.05
"""Between two passes over a plan."""
UNDECLARED = ".status.conditions: field not declared in schema"
"""In the error of server-side apply (status 500) if the definition has a status without conditions."""

Key: TypeAlias = tuple[ObjectRef, bool]
Verb: TypeAlias = Literal["apply", "status", "delete", "adopt", "annotate"]


class PlanClient(ApplyClient, Protocol):
    """Requests to an API server; `resources.kubernetes.Writer` implements them."""

    async def get(self, path: str) -> dict[str, Any] | None:
        """Return an object, or None if it does not exist."""

    async def delete(self, path: str, uid: str) -> None:
        """Delete the object with this UID."""

    async def annotate(self, path: str, content: Mapping[str, Any], dialect: str) -> dict[str, Any]:
        """Apply annotations under a field manager of the dialect's own; others' values are kept."""


class WriteOutcome(msgspec.Struct, frozen=True):
    """The result of one write, for logs and metrics."""

    object: ObjectRef
    verb: Verb
    """``adopt``: other managers' fields were transferred to the operator."""
    error: str = ""
    """Empty if it was written."""
    failures: int = 0
    """Consecutive failures, this one included."""
    retry_in: float = 0.0
    """Seconds until the next attempt."""


class _Attempt(msgspec.Struct):
    """The last write of one object, or of its status."""

    write: Write
    backoff: Backoff
    due: float
    """Monotonic time before which the same write is not repeated."""
    error: str = ""
    missing: bool = False
    """True if the API server did not find what was written."""


@final
class PlanWriter:
    """Carries out plans, one at a time."""

    def __init__(
        self,
        client: PlanClient,
        kinds: Kinds,
        managed: frozenset[str],
        rng: random.Random,
        *,
        allowed: Callable[[], bool],
        report: Callable[[WriteOutcome], None],
        now: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        """Write objects of these kinds, and conditions of the types in ``managed``.

        ``allowed`` is called before each write and returns whether this operator leads; ``report``
        receives the outcome of each write; ``now`` is a monotonic clock, ``wall`` Unix time, both in
        seconds.
        """
        self._client = client
        self._kinds = kinds
        self._rng = rng
        self._allowed = allowed
        self._report = report
        self._now = now
        self._wall = wall
        self._conditions = StoredConditions(kinds, managed)
        self._attempts: dict[Key, _Attempt] = {}
        self._written_at: dict[Key, float] = {}
        """Monotonic time of each object's last request."""
        self._delayed_until: list[float] = []
        """When the writes are due that this pass left out because of `WRITE_INTERVAL_SECONDS`."""
        self._dropped: dict[str, float] = {}
        """Kinds whose conditions the API server drops, and when they are tried again."""
        self.writes = 0
        """Successful writes."""

    @property
    def failure(self) -> str:
        """The first failing object with its error, and the number of others; empty if none fails."""
        failing = [attempt for attempt in self._attempts.values() if attempt.error]
        if not failing:
            return ""
        first = min(failing, key=lambda attempt: str(attempt.write.object))
        return first_of(f"{first.write.object}: {first.error}", len(failing))

    @property
    def kinds_without_conditions(self) -> tuple[str, ...]:
        """The kinds whose definition has no conditions: the API server drops those that are written."""
        return tuple(sorted(self._dropped))

    async def carry_out(self, plan: Plan) -> float | None:
        """Write what a plan contains; the seconds until it has to be carried out again, or None."""
        wanted: set[Key] = set()
        self._delayed_until.clear()
        for write in plan.objects:
            wanted.add(write.key)
            await self._write_object(write)
        self._conditions.keep_only(plan.conditions)
        for ref, wanted_conditions in plan.conditions.items():
            wanted.add((ref, True))
            await self._write_conditions(ref, wanted_conditions)
        self._attempts = {key: one for key, one in self._attempts.items() if key in wanted}
        recent = self._now() - WRITE_INTERVAL_SECONDS
        self._written_at = {key: at for key, at in self._written_at.items() if at > recent}
        return self._pause()

    async def _write_object(self, write: Write) -> None:
        """Write an object, unless the same write is unconfirmed or waits for its retry."""
        last = self._attempts.get(write.key)
        if last is not None and last.write == write and self._now() < last.due:
            return
        if await self._request(write) is not None:
            due = self._now() + UNCONFIRMED_SECONDS
            self._attempts[write.key] = _Attempt(write, self._new_backoff(), due)

    async def _write_conditions(self, ref: ObjectRef, wanted: tuple[Condition, ...]) -> None:
        last = self._attempts.get((ref, True))
        if last is not None and self._now() < last.due:
            return
        if self._now() < self._dropped.get(ref.kind, 0.0):
            return
        time = datetime.fromtimestamp(self._wall(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if ref not in self._conditions:
            stored = await self._read(ref)
            if stored is None:
                return
            if last is not None and last.missing:
                # The object is there, so that its definition has no status at all.
                self._dropped[ref.kind] = self._now() + DROPPED_SECONDS
                self._attempts.pop((ref, True), None)
                return
            self._conditions.store(ref, conditions.decode(stored))
        patch = self._conditions.patch(ref, wanted, time)
        if patch is not None:
            answer = await self._request(patch)
            if answer is not None:
                stored_now = conditions.decode(answer)
                if not wanted or stored_now.keys() & {one.type for one in wanted}:
                    self._dropped.pop(ref.kind, None)
                else:
                    self._dropped[ref.kind] = self._now() + DROPPED_SECONDS
                # Where conditions are removed, those that other managers own remain.
                self._conditions.store(ref, stored_now if wanted else {})
                self._attempts.pop((ref, True), None)

    async def _read(self, ref: ObjectRef) -> dict[str, Any] | None:
        """Read an object before its status is written; None if it does not exist or on errors."""
        try:
            return await self._client.get(self._path(ref))
        except KubernetesError as error:
            self._fail(Apply(ref, {}, status=True), error)
            return None

    async def _request(self, write: Write) -> dict[str, Any] | None:
        """Send a write; returns the API server's answer, or None if nothing was written."""
        if not self._allowed() or self._is_too_soon(write.key):
            return None
        self._written_at[write.key] = self._now()
        try:
            answer = await self._send(write)
        except KubernetesError as error:
            if isinstance(error, StatusError) and UNDECLARED in error.message and write.key[1]:
                self._dropped[write.object.kind] = self._now() + DROPPED_SECONDS
                self._attempts.pop(write.key, None)
                return None
            self._fail(write, error)
            return None
        self.writes += 1
        self._report(WriteOutcome(write.object, _verb(write)))
        return answer

    async def _send(self, write: Write) -> dict[str, Any]:
        ref = write.object
        if isinstance(write, Delete):
            await self._client.delete(self._path(ref), write.uid)
            return {}
        if isinstance(write, Annotate):
            return await self._client.annotate(self._path(ref), write.content, write.dialect)
        if write.status:
            return await self._client.apply(f"{self._path(ref)}/status", write.content)
        return await apply_owned(
            self._client,
            self._kind(ref),
            self._path(ref),
            write.content,
            on_adopted=lambda: self._report(WriteOutcome(ref, "adopt")),
        )

    def _is_too_soon(self, key: Key) -> bool:
        """True within `WRITE_INTERVAL_SECONDS` of an object's last write; it is due after that."""
        due = self._written_at.get(key, float("-inf")) + WRITE_INTERVAL_SECONDS
        if self._now() >= due:
            return False
        self._delayed_until.append(due)
        return True

    def _fail(self, write: Write, error: KubernetesError) -> None:
        last = self._attempts.get(write.key)
        backoff = last.backoff if last is not None else self._new_backoff()
        pause = backoff.next()
        missing = isinstance(error, StatusError) and error.status == 404
        if isinstance(error, StatusError):
            pause = max(pause, min(error.retry_after, LONGEST_RETRY_SECONDS))
            if missing and isinstance(write, Apply):
                # The object was deleted, and its conditions with it.
                self._conditions.drop(write.object)
        text = f"{_verb(write)}: {error}"
        self._attempts[write.key] = _Attempt(write, backoff, self._now() + pause, text, missing)
        self._report(
            WriteOutcome(write.object, _verb(write), str(error), backoff.failures, round(pause, 1))
        )

    def _new_backoff(self) -> Backoff:
        return Backoff(
            self._rng,
            first=FIRST_RETRY_SECONDS,
            longest=LONGEST_RETRY_SECONDS,
            jitter=RETRY_JITTER,
        )

    def _pause(self) -> float | None:
        attempts = (attempt.due for attempt in self._attempts.values())
        due = min((*self._delayed_until, *attempts, *self._dropped.values()), default=None)
        return None if due is None else max(SHORTEST_PAUSE_SECONDS, due - self._now())

    def _path(self, ref: ObjectRef) -> str:
        """Return the URL path of an object."""
        return self._kind(ref).object_path(ref.name, ref.namespace)

    def _kind(self, ref: ObjectRef) -> Kind[Any]:
        kind = self._kinds.named(ref.kind)
        if kind is None:
            raise LookupError(f"no table has {ref}")
        return kind


def _verb(write: Write) -> Verb:
    if isinstance(write, Delete):
        return "delete"
    if isinstance(write, Annotate):
        return "annotate"
    return "status" if write.status else "apply"
