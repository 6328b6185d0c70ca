"""Correlates occurrences to Kubernetes Events: deduplicated, counted as series and rate-limited.

Pure: occurrences and times in, objects to write out. An occurrence that repeats within
`SERIES_SECONDS` raises the count of the same Event, which is written at most once per
`WRITE_INTERVAL_SECONDS`. All Events share one token bucket, so that a node with a thousand flapping
sessions writes few. Occurrences that wait for the API server are bounded and expire.

Source: Kubernetes API, events.k8s.io/v1: all fields but ``series`` are immutable.
"""

from __future__ import annotations

import hashlib
import time
from typing import Any, Final, Literal, NamedTuple, final

import msgspec

from reconcilers.model import ObjectRef
from reconcilers.target.fleet import WriteSpread

JsonObject = dict[str, Any]

API_VERSION: Final = "events.k8s.io/v1"
CONTROLLER: Final = "waggle.dev/agent"
DEFAULT_NAMESPACE: Final = "default"
"""Namespace of the Events of objects without a namespace."""

WRITE_INTERVAL_SECONDS: Final = 5.0
"""Between two writes of one Event, at the least."""
SERIES_SECONDS: Final = 600.0
"""Within which a repeated occurrence is the same Event."""
BURST: Final = 25
"""Size of the token bucket: Events written at once."""
SECONDS_PER_TOKEN: Final = 5.0
MAX_OCCURRENCES: Final = 500
"""Distinct occurrences kept; the oldest are dropped first."""
EXPIRY_SECONDS: Final = 3600.0
"""After which an unwritten occurrence is dropped; an API server keeps Events as long by default."""
MAX_NOTE_OCTETS: Final = 1024
WARNING_SECONDS: Final = 3600.0
"""Between two warnings of dropped occurrences, at the least."""


class Regarding(msgspec.Struct, frozen=True):
    """The object that an Event regards."""

    ref: ObjectRef
    api_version: str
    uid: str = ""


class Occurrence(msgspec.Struct, frozen=True):
    """Something that happened to an object."""

    regarding: Regarding
    type: Literal["Normal", "Warning"]
    reason: str
    """A machine-readable word, such as SessionDown."""
    action: str
    """What was done or attempted."""
    note: str
    """Human-readable."""
    shared: bool = False
    """True if every agent observes it: all agents then use one name, and one Event is created."""


class EventWrite(msgspec.Struct, frozen=True):
    """One Event to create, or to patch with the new count of its series."""

    occurrence: Occurrence
    namespace: str
    name: str
    new: bool
    content: JsonObject


class _Record(msgspec.Struct):
    """The state of one occurrence."""

    first: float
    """Unix time of the first one; part of the Event's name."""
    last: float
    count: int
    written: int = 0
    """The count that the written Event has."""
    due: float = 0.0
    """Monotonic time before which it is not written again."""


class Recorded(NamedTuple):
    """An occurrence with its times, as Unix time, and how often it was observed."""

    occurrence: Occurrence
    first: float
    last: float
    times: int


@final
class EventCorrelator:
    """Collects occurrences and returns the Events to write."""

    def __init__(self, instance: str, spread: WriteSpread, controller: str = CONTROLLER) -> None:
        """``instance`` reports: the node of an agent, the host of an operator.

        ``spread``: the pauses before the count of an Event is written again.
        """
        self._instance = instance
        self._controller = controller
        self._spread = spread
        self._records: dict[Occurrence, _Record] = {}
        self._tokens = float(BURST)
        self._refilled_at = 0.0
        self.dropped = 0
        """Occurrences that no Event reports."""
        self._warned = 0
        """Dropped occurrences that were in a warning."""
        self._warning_due = float("-inf")

    def record(self, occurrence: Occurrence, now: float, wall: float) -> None:
        """Add an occurrence; ``now`` is monotonic, ``wall`` Unix time, both in seconds."""
        record = self._records.pop(occurrence, None)
        if record is not None and (occurrence.shared or wall - record.first < SERIES_SECONDS):
            record.count += 1
            record.last = wall
        else:
            due = record.due if record is not None else now
            record = _Record(wall, wall, 1, due=due)
        self._records[occurrence] = record
        while len(self._records) > MAX_OCCURRENCES:
            oldest = self._records.pop(next(iter(self._records)))
            self.dropped += oldest.count - oldest.written

    def dropped_to_warn_of(self, now: float) -> int:
        """Return the dropped occurrences since the last warning; 0 where none is due."""
        dropped = self.dropped - self._warned
        if not dropped or now < self._warning_due:
            return 0
        self._warned, self._warning_due = self.dropped, now + WARNING_SECONDS
        return dropped

    def resolve(self, occurrence: Occurrence) -> None:
        """Mark a condition as over: when it recurs it is reported again.

        A shared one as a new Event, one of this node alone as the same Event with a higher count.
        """
        if occurrence.shared:
            self._records.pop(occurrence, None)

    def recorded(self) -> list[Recorded]:
        """Return the occurrences that are kept, the last observed one last."""
        records = self._records.items()
        listed = [Recorded(of, record.first, record.last, record.count) for of, record in records]
        return sorted(listed, key=lambda recorded: recorded.last)

    def next_write(self, now: float, wall: float) -> EventWrite | None:
        """Return the next due Event, or None; report the result with `written` or `rejected`."""
        if self._token_pause(now) > 0:
            return None
        for occurrence, record in list(self._records.items()):
            if wall - record.last > EXPIRY_SECONDS and record.written < record.count:
                self.dropped += record.count - record.written
                del self._records[occurrence]
            elif _is_pending(occurrence, record) and record.due <= now:
                return self._write(occurrence, record)
        return None

    def pause(self, now: float) -> float | None:
        """Return the seconds until an Event may be due; None if only a new occurrence makes one due."""
        pending = [
            record.due
            for occurrence, record in self._records.items()
            if _is_pending(occurrence, record)
        ]
        return max(0.0, self._token_pause(now), min(pending) - now) if pending else None

    def written(self, write: EventWrite, now: float) -> None:
        """Mark an Event as written, or as present in the API server."""
        self._tokens -= 1.0
        record = self._records.get(write.occurrence)
        if record is not None:
            record.written = max(record.written, _count(write))
            record.due = self._spread.due(now, now)

    def expired(self, write: EventWrite, now: float) -> None:
        """Start a new Event, as the API server has deleted the Event of the series."""
        record = self._records.get(write.occurrence)
        if record is not None:
            record.first, record.written = record.last, 0
            record.due = now + WRITE_INTERVAL_SECONDS

    def rejected(self, write: EventWrite, now: float) -> None:
        """Drop an Event that the API server has rejected."""
        self._tokens -= 1.0
        record = self._records.get(write.occurrence)
        if record is not None:
            self.dropped += record.count - record.written
            record.written = record.count
            record.due = now + WRITE_INTERVAL_SECONDS

    def _token_pause(self, now: float) -> float:
        """Refill the token bucket; the seconds until it has a token."""
        elapsed = max(0.0, now - self._refilled_at)
        self._tokens = min(float(BURST), self._tokens + elapsed / SECONDS_PER_TOKEN)
        self._refilled_at = now
        return max(0.0, (1.0 - self._tokens) * SECONDS_PER_TOKEN)

    def _write(self, occurrence: Occurrence, record: _Record) -> EventWrite:
        regarding = occurrence.regarding
        namespace = regarding.ref.namespace or DEFAULT_NAMESPACE
        name = _name(occurrence, record)
        new = record.written == 0
        content: JsonObject = {}
        if record.count > 1 and not occurrence.shared:
            content["series"] = {"count": record.count, "lastObservedTime": _micro(record.last)}
        if new:
            content = {**self._event(occurrence, record, namespace, name), **content}
        return EventWrite(occurrence, namespace, name, new, content)

    def _event(
        self, occurrence: Occurrence, record: _Record, namespace: str, name: str
    ) -> JsonObject:
        """Return an Event without its series."""
        regarding = occurrence.regarding
        object_namespace = {"namespace": namespace} if regarding.ref.namespace else {}
        uid = {"uid": regarding.uid} if regarding.uid else {}
        return {
            "apiVersion": API_VERSION,
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": _micro(record.first),
            "reportingController": self._controller,
            "reportingInstance": self._instance[:128],
            "type": occurrence.type,
            "reason": occurrence.reason,
            "action": occurrence.action,
            "note": _truncate(occurrence.note),
            "regarding": {
                "apiVersion": regarding.api_version,
                "kind": regarding.ref.kind,
                "name": regarding.ref.name,
                **object_namespace,
                **uid,
            },
        }


def _is_pending(occurrence: Occurrence, record: _Record) -> bool:
    # A shared Event has no series: the count would be the sum of what all agents observe.
    return record.written < (1 if occurrence.shared else record.count)


def _count(write: EventWrite) -> int:
    series = write.content.get("series")
    return int(series["count"]) if series else 1


def _name(occurrence: Occurrence, record: _Record) -> str:
    """Return the object's name with a hash; the hash has the first time unless it is shared."""
    regarding = occurrence.regarding
    content = msgspec.json.encode(
        (
            regarding,
            occurrence.reason,
            occurrence.note,
            0 if occurrence.shared else int(record.first * 1e6),
        )
    )
    return f"{regarding.ref.name[:200].rstrip('.-')}.{hashlib.sha256(content).hexdigest()[:16]}"


def _micro(seconds: float) -> str:
    """Format Unix time as metav1.MicroTime."""
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1e6):06d}Z"


def _truncate(note: str) -> str:
    octets = note.encode()
    if len(octets) <= MAX_NOTE_OCTETS:
        return note
    return octets[: MAX_NOTE_OCTETS - 3].decode(errors="ignore") + "…"
