"""Reconciles the statuses of the objects that a node reports on with the API server.

A status is written when it changes, at most once in `WRITE_INTERVAL_SECONDS`, and replaces what other
writers put there, except the operator's conditions where the node reports none. A change of nothing but
numbers of routes waits for longer (`CountDelay`): every Service changes them on every node. The stored
status is read before the first write, and again every `READ_INTERVAL_SECONDS`, as an API server may be
restored from an older state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, final

import msgspec

from reconcilers import conditions
from reconcilers.api_server import key_of, kind_of, path_of, reconcile_error
from reconcilers.dialect import ObjectStatus
from reconcilers.report.count_delay import CountDelay
from reconcilers.sliced_work import Slices
from reconcilers.target import Description, NotNow, Pace, ReconcileError
from reconcilers.target.given import GivenObjects
from reconcilers.target.reconciler import ObjectKey, Parts
from reconcilers.target.single_value import SingleValue
from reconcilers.target.write_spread import WriteSpread
from resources.enumeration import counted
from resources.kind import Kinds
from resources.kubernetes import KubernetesError, StatusError
from statedb import Database, Snapshot, Table

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
        """Return an object whose status is reported, or None if it does not exist."""

    async def merge(self, path: str, content: JsonObject) -> JsonObject:
        """Patch the status of an object by a JSON merge patch (RFC 7386)."""


class _Object(msgspec.Struct):
    """An object that this node reports on."""

    row: ObjectStatus
    counts: CountDelay
    stored: JsonObject | None = None
    """This node's part of the status in the API server; None if unknown."""
    read_at: float = 0.0
    writes: int = 0
    message: str = ""
    """For health."""

    @property
    def has_conditions(self) -> bool:
        """True if the node reports the conditions, too; False: they are the operator's."""
        return hasattr(self.row.status, "conditions")


@final
class Statuses(GivenObjects[ObjectStatus], SingleValue):
    """Objects are ``(kind, namespace, name)``, values statuses as JSON."""

    def __init__(
        self,
        db: Database,
        table: Table[ObjectStatus],
        client: StatusClient,
        kinds: Kinds,
        spread: WriteSpread,
        *,
        enabled: bool,
        now: Callable[[], float],
    ) -> None:
        """If ``enabled`` is false, a status that was written is removed and none is written.

        ``now`` is a monotonic clock in seconds.
        """
        super().__init__(
            Description(
                name="status",
                order=10,
                tables=(table.name,),
                target="API server",
                summary="statuses of the objects that this node reports on",
                pace=Pace(
                    interval=WRITE_INTERVAL_SECONDS,
                    first_retry=FIRST_RETRY_SECONDS,
                    last_retry=LONGEST_RETRY_SECONDS,
                    jitter=(0.5, 1.0),
                    retry_changed=False,
                    compare=READ_INTERVAL_SECONDS,
                ),
            )
        )
        self._client = client
        self._kinds = kinds
        self._spread = spread
        self._enabled = enabled
        self._now = now
        self._rows = table.changes(db)
        self._objects: dict[ObjectKey, _Object] = {}

    @property
    def message(self) -> str:
        """The state of the first reported status, for health."""
        first = next(iter(self._objects.values()), None)
        if first is None:
            return NO_OBJECT
        return first.message if first.row.uid else NOT_STORED

    def changes(self, snapshot: Snapshot) -> Slices[Mapping[ObjectKey, Parts]]:
        """Return the objects whose statuses have changed rows; without a UID none is written."""
        for change in self._rows.next(snapshot):
            row, key = change.row, key_of(change.row.object)
            known = self._objects.get(key)
            self.give(key, row if row.uid and not change.deleted else None)
            if change.deleted:
                self._objects.pop(key, None)
            elif known is None or known.row.uid != row.uid:
                self._objects[key] = _Object(row, CountDelay(self._spread))
            else:
                known.row = row
        return super().changes(snapshot)

    def wanted(self, snapshot: Snapshot, key: ObjectKey) -> bool:
        """True if the status of the object is to be reported, and reports are enabled."""
        return self._enabled and super().wanted(snapshot, key)

    def desired_value(self, snapshot: Snapshot, key: ObjectKey) -> JsonObject:
        """Return the status of an object that this node is to report, as JSON."""
        del snapshot
        known = self._objects[key]
        status = known.row.status
        if known.has_conditions:
            status = conditions.with_times(status, conditions.decode({"status": known.stored}))
        content: JsonObject = msgspec.json.decode(msgspec.json.encode(status))
        if content == known.stored:
            known.counts.reset()
        return content

    async def actual_value(self, key: ObjectKey) -> JsonObject | None:
        """Return the stored status. Raises `NotNow` if the object does not exist."""
        known = self._objects.get(key)
        if known is None or not known.row.uid:
            return None
        if known.stored is None or self._now() >= known.read_at + READ_INTERVAL_SECONDS:
            await self._read(key, known)
        if self._enabled:
            known.message = f"written {counted(known.writes, 'time')}"
            return known.stored
        known.message = "switched off (--status-report=false); there is none"
        return known.stored or None

    async def _read(self, key: ObjectKey, known: _Object) -> None:
        known.stored = None
        try:
            content = await self._client.get(path_of(self._kinds, key))
        except KubernetesError as error:
            raise self._failure("get", key, error) from None
        if content is None:
            known.message = NOT_STORED
            raise NotNow(WRITE_INTERVAL_SECONDS)
        status = content.get("status")
        known.stored = dict(status) if isinstance(status, dict) else {}
        if not known.has_conditions:
            known.stored.pop("conditions", None)
        known.read_at = self._now()

    async def set_value(self, key: ObjectKey, value: JsonObject) -> None:
        """Patch the status of an object. Raises `NotNow` for a difference of counts that waits."""
        known = self._objects[key]
        stored = known.stored or {}
        pause = known.counts.pause(value, stored, known.row.counts, self._now())
        if pause > 0:
            raise NotNow(pause)
        # A merge patch removes a field by null.
        await self._patch(key, known, dict.fromkeys(stored.keys() - value.keys()) | value)
        known.stored = value
        known.message = f"written {counted(known.writes, 'time')}"

    async def delete(self, key: ObjectKey) -> None:
        """Remove the status that was written to an object."""
        known = self._objects[key]
        await self._patch(
            key, known, None if known.has_conditions else dict.fromkeys(known.stored or ())
        )
        known.stored = {}

    async def _patch(self, key: ObjectKey, known: _Object, status: JsonObject | None) -> None:
        # A request without an answer may have been carried out, and on a conflict another was.
        known.stored = None
        try:
            await self._client.merge(f"{path_of(self._kinds, key)}/status", {"status": status})
        except KubernetesError as error:
            raise self._failure("patch", key, error) from None
        known.writes += 1

    def _failure(self, verb: str, key: ObjectKey, error: KubernetesError) -> ReconcileError:
        reason = ""
        if isinstance(error, StatusError) and error.status == 403:
            resource = kind_of(self._kinds, key).plural + ("/status" if verb == "patch" else "")
            reason = f"may not {verb} {resource}: {error.message}"
        return reconcile_error(error, reason=reason)
