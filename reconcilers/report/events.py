"""What has happened, as Kubernetes Events: few, once each, and bounded whatever happens.

Pure: occurrences and the time in, objects to be written out. The same thing again within `SERIES`
is the same Event with a higher count, told no sooner than `INTERVAL` after it was told before. All
Events together have a budget, so that a node with a thousand sessions that come and go tells of some.
What waits while the API server is away is joined, bounded, and forgotten when it is old.

Source: Kubernetes API, events.k8s.io/v1: all but ``series`` is fixed once it is written.
"""

from __future__ import annotations

import hashlib
import time
from typing import Any, Final, Literal, final

import msgspec

from reconcilers.model import ObjectRef

JsonObject = dict[str, Any]

API_VERSION: Final = "events.k8s.io/v1"
CONTROLLER: Final = "waggle.dev/agent"
DEFAULT_NAMESPACE: Final = "default"
"""Where Events of objects without a namespace are."""

INTERVAL: Final = 5.0
"""Seconds between two writes of one Event at the least."""
SERIES: Final = 600.0
"""Seconds within which the same thing is the same Event."""
BURST: Final = 25
REFILL: Final = 5.0
"""The budget: so many at once, and one more each so many seconds."""
MOST: Final = 500
"""Kinds of occurrences that are remembered; the oldest go first."""
STALE: Final = 3600.0
"""Seconds after which nobody needs to hear of it any more; an API server forgets Events then."""
LONGEST_NOTE: Final = 1024


class Regarding(msgspec.Struct, frozen=True):
    """The object that an Event is of."""

    ref: ObjectRef
    api_version: str
    uid: str = ""


class Occurrence(msgspec.Struct, frozen=True):
    """Something that happened to an object."""

    regarding: Regarding
    type: Literal["Normal", "Warning"]
    reason: str
    """One word for programs, such as SessionDown."""
    action: str
    """What was done, or tried."""
    note: str
    """For people."""
    shared: bool = False
    """Whether every agent says the same: then they all name the Event alike, and it is there once."""


class EventWrite(msgspec.Struct, frozen=True):
    """One Event to be created, or whose series goes on."""

    occurrence: Occurrence
    namespace: str
    name: str
    new: bool
    content: JsonObject


class _Record(msgspec.Struct):
    """What is known of one kind of occurrence."""

    first: float
    """When it first came, as Unix time; it makes the name."""
    last: float
    count: int
    told: int = 0
    """How often the Event that was written says that it came."""
    due: float = 0.0


@final
class EventLog:
    """Collects occurrences and says what is to be written."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._records: dict[Occurrence, _Record] = {}
        self._budget = float(BURST)
        """How many may be written now."""
        self._counted = 0.0
        """When that was so."""
        self.dropped = 0
        """Occurrences that nobody was told of."""

    def note(self, occurrence: Occurrence, now: float, wall: float) -> None:
        """Take an occurrence; ``now`` is a monotonic time, ``wall`` Unix time, both in seconds."""
        record = self._records.pop(occurrence, None)
        if record is not None and (occurrence.shared or wall - record.first < SERIES):
            record.count += 1
            record.last = wall
        else:
            due = record.due if record is not None else now
            record = _Record(wall, wall, 1, due=due)
        self._records[occurrence] = record
        while len(self._records) > MOST:
            oldest = next(iter(self._records))
            gone = self._records.pop(oldest)
            self.dropped += gone.count - gone.told

    def forget(self, occurrence: Occurrence) -> None:
        """Take back what is not so any more: when it comes again it is told again.

        By all agents as a new Event, by one alone as the same with a higher count.
        """
        if occurrence.shared:
            self._records.pop(occurrence, None)

    def due(self, now: float, wall: float) -> EventWrite | None:
        """Return the next Event to be written, or None; then `done` or `failed` has to be called."""
        if self._wait(now) > 0:
            return None
        for occurrence, record in list(self._records.items()):
            if wall - record.last > STALE and record.told < record.count:
                self.dropped += record.count - record.told
                del self._records[occurrence]
            elif _pending(occurrence, record) and record.due <= now:
                return self._write(occurrence, record)
        return None

    def next(self, now: float) -> float | None:
        """Return in how many seconds something may be due; None is not before the next `note`."""
        waiting = [
            record.due
            for occurrence, record in self._records.items()
            if _pending(occurrence, record)
        ]
        return max(0.0, self._wait(now), min(waiting) - now) if waiting else None

    def done(self, write: EventWrite, now: float) -> None:
        """Note that it has been written, or that it is there already."""
        self._budget -= 1.0
        record = self._records.get(write.occurrence)
        if record is not None:
            record.told = max(record.told, self._count(write))
            record.due = now + INTERVAL

    def gone(self, write: EventWrite, now: float) -> None:
        """Note that the Event whose series should go on is no more: another one begins."""
        record = self._records.get(write.occurrence)
        if record is not None:
            record.first, record.told = record.last, 0
            record.due = now + INTERVAL

    def refused(self, write: EventWrite, now: float) -> None:
        """Note that the API server does not want this one: it is not tried again."""
        self._budget -= 1.0
        record = self._records.get(write.occurrence)
        if record is not None:
            self.dropped += record.count - record.told
            record.told = record.count
            record.due = now + INTERVAL

    def _count(self, write: EventWrite) -> int:
        series = write.content.get("series")
        return int(series["count"]) if series else 1

    def _wait(self, now: float) -> float:
        """Return for how long the budget is used up."""
        self._budget = min(float(BURST), self._budget + max(0.0, now - self._counted) / REFILL)
        self._counted = now
        return max(0.0, (1.0 - self._budget) * REFILL)

    def _write(self, occurrence: Occurrence, record: _Record) -> EventWrite:
        regarding = occurrence.regarding
        namespace = regarding.ref.namespace or DEFAULT_NAMESPACE
        name = _name(occurrence, record)
        new = record.told == 0
        content: JsonObject = {}
        if record.count > 1 and not occurrence.shared:
            content["series"] = {"count": record.count, "lastObservedTime": _micro(record.last)}
        if new:
            where = {"namespace": regarding.ref.namespace} if regarding.ref.namespace else {}
            uid = {"uid": regarding.uid} if regarding.uid else {}
            content = {
                "apiVersion": API_VERSION,
                "kind": "Event",
                "metadata": {"name": name, "namespace": namespace},
                "eventTime": _micro(record.first),
                "reportingController": CONTROLLER,
                "reportingInstance": self._node[:128],
                "type": occurrence.type,
                "reason": occurrence.reason,
                "action": occurrence.action,
                "note": _cut(occurrence.note),
                "regarding": {
                    "apiVersion": regarding.api_version,
                    "kind": regarding.ref.kind,
                    "name": regarding.ref.name,
                    **where,
                    **uid,
                },
                **content,
            }
        return EventWrite(occurrence, namespace, name, new, content)


def _pending(occurrence: Occurrence, record: _Record) -> bool:
    # All agents see what they share: how often is nobody's to count.
    return record.told < (1 if occurrence.shared else record.count)


def _name(occurrence: Occurrence, record: _Record) -> str:
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
    """Spell Unix time as metav1.MicroTime."""
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1e6):06d}Z"


def _cut(note: str) -> str:
    octets = note.encode()
    if len(octets) <= LONGEST_NOTE:
        return note
    return octets[: LONGEST_NOTE - 3].decode(errors="ignore") + "…"
