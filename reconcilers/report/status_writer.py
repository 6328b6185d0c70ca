"""Writes the statuses of the objects that a node reports on.

A status is written when it changes, at most once in `WRITE_INTERVAL_SECONDS`, and replaces what other
writers put there, except the operator's conditions where the node reports none. A change of nothing but
numbers of routes waits for longer (`WriteSpread`): every Service changes them on every node. A number
that becomes zero or is zero no more, and the numbers after a change of state, wait for less. The
stored status is read before the first write, and again every `READ_INTERVAL_SECONDS`, as an API server
may be restored from an older state. A failed write is retried with backoff.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol, final

import msgspec

from reconcilers import conditions
from reconcilers.dialect import ObjectStatus
from reconcilers.model import ObjectRef
from reconcilers.report.write_spread import COUNT_INTERVAL_SECONDS, WriteSpread
from resources.kind import Kind, Kinds
from resources.kubernetes import Backoff, KubernetesError, StatusError

WRITE_INTERVAL_SECONDS: Final = 5.0
"""Between two writes of one object, at the least."""
READ_INTERVAL_SECONDS: Final = 600.0
"""After which the stored status is read again."""
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 1.0, 60.0
"""Bounds of the pause after a failure."""
NO_OBJECT: Final = "no object of this node to report on is known"
NOT_STORED: Final = "the object of this node to report on is not in the API server"

JsonObject = dict[str, Any]


class StatusClient(Protocol):
    """Requests to an API server; `resources.kubernetes.Writer` implements them."""

    async def get(self, path: str) -> JsonObject | None:
        """Return an object, or None if it does not exist."""

    async def merge(self, path: str, content: JsonObject) -> JsonObject:
        """Send a JSON merge patch (RFC 7386)."""


class StatusOutcome(msgspec.Struct, frozen=True):
    """A write of an object's status, a failure, or the first success after a failure."""

    object: ObjectRef
    written: bool = False
    error: str = ""
    repeated: bool = False
    """True if the attempt before failed with the same error."""
    recovered: bool = False


@final
class StatusWriter:
    """Writes the status of every object that this node reports on."""

    def __init__(
        self,
        client: StatusClient,
        kinds: Kinds,
        rng: random.Random,
        *,
        enabled: bool,
        report: Callable[[StatusOutcome], None],
        now: Callable[[], float],
        nodes: Callable[[], int] = lambda: 1,
    ) -> None:
        """If ``enabled`` is false, a status that was written is removed and none is written.

        ``report`` receives each outcome; ``now`` is a monotonic clock in seconds, ``nodes`` the
        number of nodes of the cluster.
        """
        self._spread = WriteSpread(rng.random, nodes)
        self._client = client
        self._kinds = kinds
        self._rng = rng
        self._enabled = enabled
        self._report = report
        self._now = now
        self._writers: dict[ObjectRef, _ObjectWriter] = {}
        self.failing = False
        """True if the last attempt of some object has failed."""
        self.message = ""
        """The state of the first failing object, or of the first object, for health."""

    async def step(self, rows: Sequence[ObjectStatus]) -> float | None:
        """Write what is due; the seconds until the next step, None if only a change makes it due."""
        stored = {row.object: row for row in rows if row.uid}
        self._writers = {ref: one for ref, one in self._writers.items() if ref in stored}
        if not stored:
            self.failing, self.message = False, NOT_STORED if rows else NO_OBJECT
            return None
        pauses = []
        for ref, row in stored.items():
            writer = self._writers.get(ref)
            if writer is None:
                writer = self._writers[ref] = self._new_writer(ref)
            pauses.append(await writer.step(row))
        shown = max(self._writers.values(), key=lambda writer: writer.failing)
        self.failing, self.message = shown.failing, shown.message
        return min((pause for pause in pauses if pause is not None), default=None)

    def _new_writer(self, ref: ObjectRef) -> _ObjectWriter:
        kind = self._kinds.named(ref.kind)
        if kind is None:
            raise LookupError(f"no table has {ref}")
        backoff = Backoff(self._rng, first=FIRST_RETRY_SECONDS, longest=LONGEST_RETRY_SECONDS)
        return _ObjectWriter(
            self._client,
            kind,
            ref,
            backoff,
            self._spread,
            enabled=self._enabled,
            report=self._report,
            now=self._now,
        )


class _ObjectWriter:
    """Writes the status of one object."""

    def __init__(
        self,
        client: StatusClient,
        kind: Kind[Any],
        ref: ObjectRef,
        backoff: Backoff,
        spread: WriteSpread,
        *,
        enabled: bool,
        report: Callable[[StatusOutcome], None],
        now: Callable[[], float],
    ) -> None:
        self._client = client
        self._kind = kind
        self._ref = ref
        self._path = kind.object_path(ref.name, ref.namespace)
        self._backoff = backoff
        self._spread = spread
        self._counts_written_at = -COUNT_INTERVAL_SECONDS
        self._counts_due: float | None = None
        """When a difference of nothing but numbers is written; None without one."""
        self._counts_are_soon = False
        """True if that is a time for numbers that matter."""
        self._is_settling = False
        """True if a state was written, and no numbers after it: a new session has few routes."""
        self._enabled = enabled
        self._report = report
        self._now = now
        self._uid = ""
        self._stored: JsonObject | None = None
        """The status in the API server; None if unknown."""
        self._read_at = 0.0
        self._due = 0.0
        self._error = ""
        self._writes = 0
        self.failing = False
        """True if the last attempt has failed."""
        self.message = ""

    async def step(self, row: ObjectStatus) -> float | None:
        """Write if due; the seconds until the next step, None if only a change makes it due."""
        if row.uid != self._uid:
            self._uid, self._stored = row.uid, None
        now = self._now()
        if now < self._due:
            return self._due - now
        try:
            return await (self._write(row) if self._enabled else self._remove(row))
        except KubernetesError as error:
            return self._fail(error)

    async def _write(self, row: ObjectStatus) -> float:
        stored = self._stored
        if stored is None or self._now() >= self._read_at + READ_INTERVAL_SECONDS:
            stored = await self._read(row)
            if stored is None:
                return WRITE_INTERVAL_SECONDS
        status = row.status
        if _has_conditions(row):
            status = conditions.with_times(status, conditions.decode({"status": stored}))
        wanted = _to_json(status)
        pause = self._pause_of_counts(row, wanted, stored)
        if pause > 0:
            return pause
        if wanted != stored:
            # A merge patch removes a field by null.
            content = dict.fromkeys(stored.keys() - wanted.keys()) | wanted
            await self._patch({"status": content}, wanted)
        self.message = f"written {self._writes} times"
        if wanted != stored:
            return WRITE_INTERVAL_SECONDS
        return max(WRITE_INTERVAL_SECONDS, self._read_at + READ_INTERVAL_SECONDS - self._now())

    def _pause_of_counts(self, row: ObjectStatus, wanted: JsonObject, stored: JsonObject) -> float:
        """Return the seconds for which a difference of nothing but numbers waits."""
        if wanted == stored:
            self._counts_due = None
            return 0.0
        if _without(wanted, row.counts) != _without(stored, row.counts):
            self._counts_due, self._is_settling = None, True
            return 0.0
        now, last = self._now(), self._counts_written_at
        if self._counts_due is None:
            self._counts_due, self._counts_are_soon = self._spread.counts_due(now, last), False
        matter = self._is_settling or _presence(wanted) != _presence(stored)
        if matter and not self._counts_are_soon:
            self._counts_are_soon = True
            self._counts_due = min(self._counts_due, self._spread.due(now, last))
        if now < self._counts_due:
            return self._counts_due - now
        self._counts_due, self._counts_written_at, self._is_settling = None, now, False
        return 0.0

    async def _remove(self, row: ObjectStatus) -> float | None:
        stored = self._stored if self._stored is not None else await self._read(row)
        if stored is None:
            return WRITE_INTERVAL_SECONDS
        if stored:
            none = None if _has_conditions(row) else dict.fromkeys(stored)
            await self._patch({"status": none}, {})
        self.message = "switched off (--status-report=false); there is none"
        return None

    async def _read(self, row: ObjectStatus) -> JsonObject | None:
        """Read the node's part of the stored status; None if the object does not exist."""
        content = await self._request("get", self._client.get(self._path))
        self._recover()
        if content is None:
            self._stored = None
            self.message = NOT_STORED
            return None
        status = content.get("status")
        self._stored = dict(status) if isinstance(status, dict) else {}
        if not _has_conditions(row):
            self._stored.pop("conditions", None)
        self._read_at = self._now()
        return self._stored

    async def _patch(self, content: JsonObject, wanted: JsonObject) -> None:
        await self._request("patch", self._client.merge(f"{self._path}/status", content))
        self._recover()
        self._stored = wanted
        self._due = self._now() + WRITE_INTERVAL_SECONDS
        self._writes += 1
        self._report(StatusOutcome(self._ref, written=True))

    async def _request(self, verb: str, request: Awaitable[JsonObject | None]) -> JsonObject | None:
        try:
            return await request
        except StatusError as error:
            if error.status == 403:
                resource = self._kind.plural + ("/status" if verb == "patch" else "")
                text = f"may not {verb} {resource}: {error.message}"
                raise StatusError(error.status, text, error.retry_after) from None
            raise

    def _recover(self) -> None:
        self._backoff.reset()
        self.failing = False
        if self._error:
            self._error = ""
            self._report(StatusOutcome(self._ref, recovered=True))

    def _fail(self, error: KubernetesError) -> float:
        retry_after = error.retry_after if isinstance(error, StatusError) else 0.0
        pause = max(WRITE_INTERVAL_SECONDS, self._backoff.next(retry_after))
        self._due = self._now() + pause
        # A request without an answer may have been carried out, and on a conflict another was.
        self._stored = None
        text = str(error)
        self._report(StatusOutcome(self._ref, error=text, repeated=text == self._error))
        self._error = text
        self.failing = True
        self.message = f"{self._ref}: {text}; it is retried"
        return pause


def _has_conditions(row: ObjectStatus) -> bool:
    """True if the node reports the conditions of the object, too; False: they are the operator's."""
    return hasattr(row.status, "conditions")


def _without(value: object, names: frozenset[str]) -> object:
    """Return a JSON value without the members of these names."""
    if isinstance(value, dict):
        return {key: _without(one, names) for key, one in value.items() if key not in names}
    if isinstance(value, list):
        return [_without(one, names) for one in value]
    return value


def _presence(value: object) -> object:
    """Return a JSON value in which numbers are true, or false for zero."""
    if isinstance(value, dict):
        return {key: _presence(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_presence(one) for one in value]
    return bool(value) if isinstance(value, int | float) else value


def _to_json(status: object) -> JsonObject:
    """Encode a status struct as the JSON object of the API."""
    content: JsonObject = msgspec.json.decode(msgspec.json.encode(status))
    return content
