"""The statuses of objects in the API server: each written on change, at most once in `INTERVAL`.

The agent owns the whole status: fields of other writers are removed. The stored status is read before
the first write and periodically, as etcd may have been restored from an older state. A failed write
delays nothing; it is retried with growing pauses.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol, final

import msgspec
import structlog

from cells.hive import Health
from reconcilers import conditions
from reconcilers.dialect import ObjectStatus
from reconcilers.model import ObjectRef
from resources.kind import Kind, Kinds
from resources.kubernetes import Backoff, KubernetesError, Refused, Timing

INTERVAL: Final = 5.0
"""Seconds between two writes of one status at least."""
READ_AGAIN_SECONDS: Final = 600.0
"""Seconds after which the stored status is read again."""
TIMING: Final = Timing(first=1.0, longest=60.0)
"""The pauses after failures."""
NOT_KNOWN: Final = "no object of this node to report on is known"
NOT_STORED: Final = "the object of this node to report on is not in the API server"

JsonObject = dict[str, Any]

log = structlog.get_logger("waggle.report")


class Objects(Protocol):
    """Requests to an API server; `resources.kubernetes.Writer` implements them."""

    async def get(self, path: str) -> JsonObject | None:
        """Return an object, or None if it does not exist."""

    async def merge(self, path: str, content: JsonObject) -> JsonObject:
        """Set fields of an object."""


@final
class StatusWriting:
    """Keeps the status of every object that this node reports on; `step` does what is due."""

    def __init__(
        self,
        writer: Objects,
        kinds: Kinds,
        rng: random.Random,
        health: Health,
        *,
        enabled: bool,
        failed: Callable[[], None],
        written: Callable[[], None],
    ) -> None:
        """If ``enabled`` is false, a status that was written is removed and none is written."""
        self._writer = writer
        self._kinds = kinds
        self._rng = rng
        self._health = health
        self._enabled = enabled
        self._failed = failed
        self._written = written
        self._objects: dict[ObjectRef, ObjectWriting] = {}

    @property
    def writes(self) -> int:
        """The number of writes of the objects that are reported on now."""
        return sum(one.writes for one in self._objects.values())

    async def step(self, rows: Sequence[ObjectStatus]) -> float | None:
        """Write what is due; the seconds until the next step, None if only a change makes it due."""
        present = {row.object: row for row in rows if row.uid}
        self._objects = {ref: one for ref, one in self._objects.items() if ref in present}
        if not present:
            self._health.ok(NOT_STORED if rows else NOT_KNOWN)
            return None
        pauses = []
        for ref, row in present.items():
            one = self._objects.get(ref)
            if one is None:
                one = self._objects[ref] = self._new(ref)
            pauses.append(await one.step(row))
        failing = [one.message for one in self._objects.values() if one.failing]
        if failing:
            self._health.degraded(failing[0])
        else:
            self._health.ok(next(iter(self._objects.values())).message)
        return min((pause for pause in pauses if pause is not None), default=None)

    def _new(self, ref: ObjectRef) -> ObjectWriting:
        kind = self._kinds.named(ref.kind)
        if kind is None:
            raise LookupError(f"no table has {ref}")
        return ObjectWriting(
            self._writer,
            kind,
            ref,
            self._rng,
            enabled=self._enabled,
            failed=self._failed,
            written=self._written,
        )


@final
class ObjectWriting:
    """Keeps the status of one object."""

    def __init__(
        self,
        writer: Objects,
        kind: Kind[Any],
        ref: ObjectRef,
        rng: random.Random,
        *,
        enabled: bool,
        failed: Callable[[], None],
        written: Callable[[], None],
    ) -> None:
        self._writer = writer
        self._kind = kind
        self._ref = ref
        self._path = kind.object_path(ref.name, ref.namespace)
        self._backoff = Backoff(TIMING, rng)
        self._enabled = enabled
        self._failed = failed
        self._written = written
        self._uid = ""
        self._there: JsonObject | None = None
        """The status in the API server, as far as it is known."""
        self._read_at = 0.0
        self._ready_at = 0.0
        self._reason = ""
        self.failing = False
        """True while the last attempt has failed."""
        self.message = ""
        """For health."""
        self.writes = 0

    async def step(self, row: ObjectStatus) -> float | None:
        """Write if it is due; the seconds until the next step, None if only a change makes it due."""
        if row.uid != self._uid:
            self._uid, self._there = row.uid, None
        now = self._now()
        if now < self._ready_at:
            return self._ready_at - now
        try:
            return await (self._report(row) if self._enabled else self._clear())
        except KubernetesError as error:
            return self._note(error)

    async def _report(self, row: ObjectStatus) -> float:
        there = self._there
        if there is None or self._now() >= self._read_at + READ_AGAIN_SECONDS:
            there = await self._read()
            if there is None:
                return INTERVAL
        known = conditions.read({"status": there})
        wanted = _plain(conditions.with_times(row.status, known))
        if wanted != there:
            # In a merge patch null removes a field.
            content = dict.fromkeys(there.keys() - wanted.keys()) | wanted
            await self._write({"status": content}, wanted)
        self.message = f"written {self.writes} times"
        if wanted != there:
            return INTERVAL
        return max(INTERVAL, self._read_at + READ_AGAIN_SECONDS - self._now())

    async def _clear(self) -> float | None:
        there = self._there if self._there is not None else await self._read()
        if there is None:
            return INTERVAL
        if there:
            await self._write({"status": None}, {})
        self.message = "switched off (--status-report=false); there is none"
        return None

    async def _read(self) -> JsonObject | None:
        """Read the status; None where the object does not exist (any more)."""
        found = await self._request("get", self._writer.get(self._path))
        self._recover()
        if found is None:
            self._there = None
            self.message = NOT_STORED
            return None
        status = found.get("status")
        self._there = status if isinstance(status, dict) else {}
        self._read_at = self._now()
        return self._there

    async def _write(self, content: JsonObject, wanted: JsonObject) -> None:
        await self._request("patch", self._writer.merge(f"{self._path}/status", content))
        self._recover()
        self._there = wanted
        self._ready_at = self._now() + INTERVAL
        self.writes += 1
        self._written()

    async def _request(self, verb: str, request: Awaitable[JsonObject | None]) -> JsonObject | None:
        try:
            return await request
        except Refused as error:
            if error.status == 403:
                what = self._kind.plural + ("/status" if verb == "patch" else "")
                text = f"may not {verb} {what}: {error.message}"
                raise Refused(error.status, text, error.retry_after) from None
            raise

    def _recover(self) -> None:
        self._backoff.reset()
        self.failing = False
        if self._reason:
            self._reason = ""
            log.info("status is written again", event_name="report.recovered")

    def _note(self, error: KubernetesError) -> float:
        retry_after = error.retry_after if isinstance(error, Refused) else 0.0
        pause = max(INTERVAL, self._backoff.next(retry_after))
        self._ready_at = self._now() + pause
        # Whether it was written is not known, or another writer was faster.
        self._there = None
        self._failed()
        reason = str(error)
        if reason != self._reason:
            self._reason = reason
            log.warning(
                "status is not written",
                event_name="report.failed",
                object=str(self._ref),
                reason=reason,
            )
        self.failing = True
        self.message = f"{self._ref}: {reason}; it is retried"
        return pause

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _plain(status: object) -> JsonObject:
    """Encode a status as the API has it."""
    plain: JsonObject = msgspec.json.decode(msgspec.json.encode(status))
    return plain
