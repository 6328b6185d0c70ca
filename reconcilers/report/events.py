"""Correlates occurrences to Kubernetes Events: deduplicated, counted as series and rate-limited.

Pure: occurrences and times in, objects to write out. An occurrence that repeats within
`SERIES_SECONDS` raises the count of the same Event, which is written at most once per
`WRITE_INTERVAL_SECONDS`. All Events share one token bucket, so that a node with a thousand flapping
sessions writes few. Occurrences that wait for the API server are bounded and expire. Events of objects
that users of a namespace make leave the others a part of the bucket, and are dropped before them.

Source: Kubernetes API, events.k8s.io/v1: all fields but ``series`` are immutable.
"""

from __future__ import annotations

import hashlib
import time
from typing import Any, Final, Literal, NamedTuple, final

import msgspec

from reconcilers.model import ObjectRef
from reconcilers.target.reconciler import ObjectKey
from reconcilers.target.write_spread import WriteSpread
from reconcilers.token_bucket import TokenBucket

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
RESERVED_TOKENS: Final = 15
"""Tokens that Events of tenants' objects leave: of these there may be any number at any time."""
MAX_OCCURRENCES: Final = 500
"""Distinct occurrences kept; the oldest are dropped first, of tenants' objects before the others."""
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
    """The action, done or attempted."""
    note: str
    """Human-readable."""
    shared: bool = False
    """True if every agent observes it: all agents then use one name, and one Event is created."""
    of_tenant: bool = False
    """True if users of a namespace make the object."""


class EventWrite(msgspec.Struct, frozen=True):
    """One Event to create, or to patch with the new count of its series."""

    occurrence: Occurrence
    namespace: str
    name: str
    new: bool
    count: int
    """The count that the Event has when it is written."""
    content: JsonObject


class _Record(msgspec.Struct):
    """The state of one occurrence."""

    key: ObjectKey
    """The Event: kind, namespace, name."""
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
        self._events: dict[ObjectKey, Occurrence] = {}
        """The occurrence of each Event."""
        self._changed: dict[ObjectKey, None] = {}
        """Events that may have to be written, or that are dropped, since `take_changed`."""
        self._bucket = TokenBucket(BURST, 1 / SECONDS_PER_TOKEN)
        self.dropped = 0
        """Occurrences that no Event reports."""
        self._warned = 0
        """Dropped occurrences that were in a warning."""
        self._warning_due = float("-inf")

    def record(self, occurrence: Occurrence, now: float, wall: float) -> None:
        """Add an occurrence to its Event; ``now`` is monotonic, ``wall`` Unix time, in seconds."""
        record = self._records.get(occurrence)
        if record is not None and (occurrence.shared or wall - record.first < SERIES_SECONDS):
            self._forget(occurrence)
            record.count += 1
            record.last = wall
        else:
            due = now
            if record is not None:
                due = record.due
                self._forget(occurrence)
            record = _Record(_key(occurrence, wall), wall, wall, 1, due=due)
        self._keep(occurrence, record)
        while len(self._records) > MAX_OCCURRENCES:
            of_tenants = (known for known in self._records if known.of_tenant)
            oldest = self._forget(next(of_tenants, next(iter(self._records))))
            self.dropped += oldest.count - oldest.written

    def _keep(self, occurrence: Occurrence, record: _Record) -> None:
        self._records[occurrence] = record
        self._events[record.key] = occurrence
        self._changed[record.key] = None

    def _forget(self, occurrence: Occurrence) -> _Record:
        record = self._records.pop(occurrence)
        self._events.pop(record.key, None)
        self._changed[record.key] = None
        return record

    def dropped_to_warn_of(self, now: float) -> int:
        """Return how many occurrences no Event has since the last warning; 0: none due."""
        dropped = self.dropped - self._warned
        if not dropped or now < self._warning_due:
            return 0
        self._warned, self._warning_due = self.dropped, now + WARNING_SECONDS
        return dropped

    def resolve(self, occurrence: Occurrence) -> None:
        """Mark an Event's condition as over: when it recurs it is reported again.

        A shared one as a new Event, one of this node alone as the same Event with a higher count.
        """
        if occurrence.shared and occurrence in self._records:
            self._forget(occurrence)

    def recorded(self) -> list[Recorded]:
        """Return the occurrences that Events are kept of, the last observed one last."""
        records = self._records.items()
        listed = [Recorded(of, record.first, record.last, record.count) for of, record in records]
        return sorted(listed, key=lambda recorded: recorded.last)

    def take_changed(self) -> list[ObjectKey]:
        """Return the Events that may have to be written, or are dropped, since the last call."""
        changed, self._changed = self._changed, {}
        return list(changed)

    def all_events(self) -> list[ObjectKey]:
        """Return all correlated Events."""
        return list(self._events)

    def is_kept(self, key: ObjectKey, wall: float) -> bool:
        """True if an Event is neither dropped nor over; drops it if it has expired."""
        occurrence = self._events.get(key)
        if occurrence is None:
            return False
        record = self._records[occurrence]
        if wall - record.last <= EXPIRY_SECONDS or record.written >= record.count:
            return True
        self.dropped += record.count - record.written
        self._forget(occurrence)
        return False

    def regarding(self, key: ObjectKey) -> ObjectRef:
        """Return the object that a kept Event regards."""
        return self._events[key].regarding.ref

    def count(self, key: ObjectKey) -> int:
        """Return the count that a kept Event is to have."""
        occurrence = self._events[key]
        # A shared Event has no series: the count would be the sum of what all agents observe.
        return 1 if occurrence.shared else self._records[occurrence].count

    def written_count(self, key: ObjectKey) -> int:
        """Return the count that a kept Event has in the API server; 0 if it is not there."""
        return self._records[self._events[key]].written

    def pause(self, key: ObjectKey, now: float) -> float:
        """Return the seconds until a kept Event may be written."""
        return max(0.0, self._records[self._events[key]].due - now)

    def write(self, key: ObjectKey) -> EventWrite:
        """Return the request for a kept Event; its result goes to `written` or `rejected`."""
        occurrence = self._events[key]
        return self._write(occurrence, self._records[occurrence])

    def written(self, write: EventWrite, now: float) -> None:
        """Mark an Event as written, or as present in the API server."""
        self._bucket.take()
        record = self._records.get(write.occurrence)
        if record is not None:
            record.written = max(record.written, write.count)
            record.due = self._spread.due(now, now)

    def expired(self, write: EventWrite, now: float) -> None:
        """Start a new Event, as the API server has deleted the Event of the series."""
        record = self._records.get(write.occurrence)
        if record is not None:
            self._forget(write.occurrence)
            record.key = _key(write.occurrence, record.last)
            record.first, record.written = record.last, 0
            record.due = now + WRITE_INTERVAL_SECONDS
            self._keep(write.occurrence, record)

    def rejected(self, write: EventWrite, now: float) -> None:
        """Drop an Event that the API server has rejected."""
        self._bucket.take()
        record = self._records.get(write.occurrence)
        if record is not None:
            self.dropped += record.count - record.written
            record.written = record.count
            record.due = now + WRITE_INTERVAL_SECONDS

    def is_of_tenant(self, key: ObjectKey) -> bool:
        """True if a kept Event is of an object that users of a namespace make."""
        return self._events[key].of_tenant

    def token_pause(self, now: float, *, of_tenant: bool = False) -> float:
        """Return the seconds until the token bucket of Events permits one."""
        return self._bucket.pause(now, 1 + (RESERVED_TOKENS if of_tenant else 0))

    def _write(self, occurrence: Occurrence, record: _Record) -> EventWrite:
        _, namespace, name = record.key
        new = record.written == 0
        count = 1 if occurrence.shared else record.count
        content: JsonObject = {}
        if count > 1:
            content["series"] = {"count": count, "lastObservedTime": _micro(record.last)}
        if new:
            content = {**self._event(occurrence, record, namespace, name), **content}
        return EventWrite(occurrence, namespace, name, new, count, content)

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


def _key(occurrence: Occurrence, first: float) -> ObjectKey:
    """Return the Event of an occurrence: its name is that of the object, with a hash.

    The hash has the time of the first occurrence unless all agents share the Event.
    """
    regarding = occurrence.regarding
    content = msgspec.json.encode(
        (
            regarding,
            occurrence.reason,
            occurrence.note,
            0 if occurrence.shared else int(first * 1e6),
        )
    )
    name = f"{regarding.ref.name[:200].rstrip('.-')}.{hashlib.sha256(content).hexdigest()[:16]}"
    return ("Event", regarding.ref.namespace or DEFAULT_NAMESPACE, name)


def _micro(seconds: float) -> str:
    """Format Unix time as metav1.MicroTime."""
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1e6):06d}Z"


def _truncate(note: str) -> str:
    octets = note.encode()
    if len(octets) <= MAX_NOTE_OCTETS:
        return note
    return octets[: MAX_NOTE_OCTETS - 3].decode(errors="ignore") + "…"
