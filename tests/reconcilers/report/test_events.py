"""Events are deduplicated, counted and rate-limited, also while the API server is unavailable."""

from __future__ import annotations

from typing import Any

from reconcilers.model import ObjectRef
from reconcilers.report.events import (
    BURST,
    EXPIRY_SECONDS,
    MAX_NOTE_OCTETS,
    MAX_OCCURRENCES,
    RESERVED_TOKENS,
    SECONDS_PER_TOKEN,
    SERIES_SECONDS,
    WARNING_SECONDS,
    WRITE_INTERVAL_SECONDS,
    EventCorrelator,
    EventWrite,
    Occurrence,
    Regarding,
)
from reconcilers.target.reconciler import ObjectKey
from reconcilers.target.write_spread import COUNT_INTERVAL_SECONDS, WriteSpread

WALL = 1_767_225_600.25
"""2026-01-01T00:00:00.25Z."""
NODE_CONFIG = Regarding(ObjectRef("CiliumBGPNodeConfig", "", "n1"), "cilium.io/v2", "uid-1")


def down(peer: str = "p", **fields: Any) -> Occurrence:  # noqa: ANN401
    return Occurrence(
        **{
            "regarding": NODE_CONFIG,
            "type": "Warning",
            "reason": "SessionDown",
            "action": "BGPSession",
            "note": f"peer {peer} is down",
            **fields,
        }
    )


def next_write(events: EventCorrelator, now: float, wall: float) -> EventWrite | None:
    """Return the first Event that may be written."""
    for key in events.all_events():
        if events.token_pause(now, of_tenant=events.is_of_tenant(key)):
            continue
        if events.is_kept(key, wall) and is_pending(events, key) and not events.pause(key, now):
            return events.write(key)
    return None


def is_pending(events: EventCorrelator, key: ObjectKey) -> bool:
    return events.written_count(key) < events.count(key)


def pause(events: EventCorrelator, now: float) -> float | None:
    """Return the seconds until an Event may be written; None if none has to be."""
    pauses = [events.pause(key, now) for key in events.all_events() if is_pending(events, key)]
    return max(events.token_pause(now), min(pauses)) if pauses else None


class Writer:
    """Writes what is due at a time, and keeps what was written."""

    def __init__(self) -> None:
        self.events = EventCorrelator("n1", WriteSpread(lambda: 0.0, lambda: 1))
        self.now = 100.0
        self.written: list[EventWrite] = []

    def record(self, occurrence: Occurrence) -> None:
        self.events.record(occurrence, self.now, WALL + self.now)

    def run(self) -> list[EventWrite]:
        """Write all that is due now."""
        before = len(self.written)
        while (write := next_write(self.events, self.now, WALL + self.now)) is not None:
            self.written.append(write)
            self.events.written(write, self.now)
        return self.written[before:]


def test_an_event_has_the_fields_of_events_v1() -> None:
    writer = Writer()
    writer.record(down())
    (write,) = writer.run()
    name = write.content["metadata"]["name"]
    assert (write.new, write.namespace, write.name) == (True, "default", name)
    assert name.startswith("n1.")
    assert write.content == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "eventTime": "2026-01-01T00:01:40.250000Z",
        "reportingController": "waggle.dev/agent",
        "reportingInstance": "n1",
        "type": "Warning",
        "reason": "SessionDown",
        "action": "BGPSession",
        "note": "peer p is down",
        "regarding": {
            "apiVersion": "cilium.io/v2",
            "kind": "CiliumBGPNodeConfig",
            "name": "n1",
            "uid": "uid-1",
        },
    }
    assert pause(writer.events, writer.now) is None


def test_a_repeated_occurrence_raises_the_count_once_per_write_interval() -> None:
    writer = Writer()
    writer.record(down())
    writer.run()
    for _ in range(100):
        writer.now += 0.01
        writer.record(down())
        assert writer.run() == []
    assert pause(writer.events, writer.now) == 100.0 + COUNT_INTERVAL_SECONDS - writer.now
    writer.now = 100.0 + COUNT_INTERVAL_SECONDS
    (again,) = writer.run()
    assert not again.new
    assert again.name == writer.written[0].name
    assert again.content == {
        "series": {"count": 101, "lastObservedTime": "2026-01-01T00:01:41.250000Z"}
    }
    assert pause(writer.events, writer.now) is None


def test_a_repetition_after_the_series_time_is_a_new_event() -> None:
    writer = Writer()
    writer.record(down())
    writer.run()
    writer.now += SERIES_SECONDS + 1
    writer.record(down())
    (again,) = writer.run()
    assert again.new
    assert again.name != writer.written[0].name


def test_f15_events_of_many_flapping_sessions_are_rate_limited() -> None:
    writer = Writer()
    for number in range(100):
        writer.record(down(f"p{number}"))
    assert len(writer.run()) == BURST
    assert pause(writer.events, writer.now) == SECONDS_PER_TOKEN
    for _ in range(10):
        writer.now += SECONDS_PER_TOKEN
        assert len(writer.run()) == 1


def of_tenant(number: int) -> Occurrence:
    regarding = Regarding(ObjectRef("Service", "shop", f"s{number}"), "v1")
    return down(note="203.0.113.9 is not advertised", regarding=regarding, of_tenant=True)


def test_events_of_tenants_objects_leave_tokens_to_the_others() -> None:
    """A tenant may have thousands of Services: the loss of a session is written at once."""
    writer = Writer()
    for number in range(100):
        writer.record(of_tenant(number))
    assert len(writer.run()) == BURST - RESERVED_TOKENS
    for number in range(RESERVED_TOKENS):
        writer.record(down(f"p{number}"))
    assert [write.occurrence.of_tenant for write in writer.run()] == [False] * RESERVED_TOKENS
    writer.now += RESERVED_TOKENS * SECONDS_PER_TOKEN
    assert writer.run() == []
    writer.now += 2 * SECONDS_PER_TOKEN
    assert [write.occurrence.of_tenant for write in writer.run()] == [True] * 2


def test_events_of_tenants_objects_are_dropped_before_the_others() -> None:
    writer = Writer()
    writer.record(down("first"))
    for number in range(MAX_OCCURRENCES + 7):
        writer.record(of_tenant(number))
    assert writer.events.dropped == 8
    assert "peer first is down" in [write.occurrence.note for write in writer.run()]


def test_waiting_occurrences_are_bounded_and_expire() -> None:
    writer = Writer()
    for number in range(MAX_OCCURRENCES + 7):
        writer.record(down(f"p{number}"))
    assert writer.events.dropped == 7
    writer.now += EXPIRY_SECONDS + 1
    writer.record(down("last"))
    (write,) = writer.run()
    assert write.content["note"] == "peer last is down"
    assert writer.events.dropped == MAX_OCCURRENCES + 7
    assert pause(writer.events, writer.now) is None


def test_a_shared_occurrence_has_one_name_and_is_written_once() -> None:
    names = set()
    for node, wall in (("n1", WALL), ("n2", WALL + 77)):
        events = EventCorrelator(node, WriteSpread(lambda: 0.0, lambda: 1))
        occurrence = down(shared=True)
        for _ in range(3):
            events.record(occurrence, 1.0, wall)
        write = next_write(events, 1.0, wall)
        assert write is not None
        names.add(write.name)
        events.written(write, 1.0)
        assert pause(events, 1.0) is None
        events.record(occurrence, 50.0, wall + 50)
        assert next_write(events, 50.0, wall + 50) is None
        # Once resolved, it is written again when it recurs.
        events.resolve(occurrence)
        events.record(occurrence, 60.0, wall + 60)
        assert next_write(events, 60.0, wall + 60) is not None
    assert len(names) == 1


def test_an_occurrence_that_recurs_on_one_node_is_a_series() -> None:
    writer = Writer()
    writer.record(down())
    writer.run()
    writer.events.resolve(down())
    writer.now += COUNT_INTERVAL_SECONDS
    writer.record(down())
    (again,) = writer.run()
    assert not again.new


def test_a_series_whose_event_has_expired_starts_a_new_event() -> None:
    writer = Writer()
    writer.record(down())
    writer.run()
    writer.record(down())
    writer.now += COUNT_INTERVAL_SECONDS
    write = next_write(writer.events, writer.now, WALL + writer.now)
    assert write is not None
    assert not write.new
    writer.events.expired(write, writer.now)
    writer.now += WRITE_INTERVAL_SECONDS
    (again,) = writer.run()
    assert again.new
    assert again.content["series"]["count"] == 2


def test_a_rejected_event_is_not_retried() -> None:
    writer = Writer()
    writer.record(down())
    write = next_write(writer.events, writer.now, WALL)
    assert write is not None
    writer.events.rejected(write, writer.now)
    writer.now += 100
    assert writer.run() == []
    assert writer.events.dropped == 1


def test_a_long_note_is_truncated() -> None:
    writer = Writer()
    writer.record(down(note="ä" * 2000))
    (write,) = writer.run()
    note = write.content["note"]
    assert len(note.encode()) <= MAX_NOTE_OCTETS
    assert note.endswith("ä…")


def test_names_are_valid_and_an_event_is_in_its_objects_namespace() -> None:
    writer = Writer()
    regarding = Regarding(ObjectRef("Service", "shop", "a." * 126 + "a"), "v1")
    writer.record(down(regarding=regarding))
    (write,) = writer.run()
    assert write.namespace == write.content["regarding"]["namespace"] == "shop"
    assert len(write.name) <= 253
    assert ".." not in write.name
    assert "uid" not in write.content["regarding"]


def test_of_dropped_events_there_is_one_warning_an_hour() -> None:
    writer = Writer()
    for number in range(MAX_OCCURRENCES + 3):
        writer.record(down(f"p{number}"))
    assert writer.events.dropped == 3
    assert writer.events.dropped_to_warn_of(writer.now) == 3
    writer.record(down("q"))
    assert writer.events.dropped_to_warn_of(writer.now + WARNING_SECONDS - 1) == 0
    assert writer.events.dropped_to_warn_of(writer.now + WARNING_SECONDS) == 1
    assert writer.events.dropped_to_warn_of(writer.now + 2 * WARNING_SECONDS) == 0
