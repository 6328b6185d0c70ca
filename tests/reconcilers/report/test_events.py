"""Events are few, once each, and bounded, whatever happens and for however long nobody listens."""

from __future__ import annotations

from typing import Any

from reconcilers.model import ObjectRef
from reconcilers.report.events import (
    BURST,
    INTERVAL,
    LONGEST_NOTE,
    MOST,
    REFILL,
    SERIES,
    STALE,
    EventLog,
    EventWrite,
    Occurrence,
    Regarding,
)

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


class Writer:
    """Writes what is due at a time, and remembers it."""

    def __init__(self) -> None:
        self.log = EventLog("n1")
        self.now = 100.0
        self.written: list[EventWrite] = []

    def note(self, occurrence: Occurrence) -> None:
        self.log.note(occurrence, self.now, WALL + self.now)

    def run(self) -> list[EventWrite]:
        """Write all that is due now."""
        before = len(self.written)
        while (write := self.log.due(self.now, WALL + self.now)) is not None:
            self.written.append(write)
            self.log.done(write, self.now)
        return self.written[before:]


def test_an_event_is_spelt_as_kubernetes_has_it() -> None:
    writer = Writer()
    writer.note(down())
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
    assert writer.log.next(writer.now) is None


def test_the_same_again_is_a_count_and_no_sooner_than_after_an_interval() -> None:
    writer = Writer()
    writer.note(down())
    writer.run()
    for _ in range(100):
        writer.now += 0.01
        writer.note(down())
        assert writer.run() == []
    assert writer.log.next(writer.now) == 100.0 + INTERVAL - writer.now
    writer.now = 100.0 + INTERVAL
    (again,) = writer.run()
    assert not again.new
    assert again.name == writer.written[0].name
    assert again.content == {
        "series": {"count": 101, "lastObservedTime": "2026-01-01T00:01:41.250000Z"}
    }
    assert writer.log.next(writer.now) is None


def test_after_a_while_the_same_is_another_event() -> None:
    writer = Writer()
    writer.note(down())
    writer.run()
    writer.now += SERIES + 1
    writer.note(down())
    (again,) = writer.run()
    assert again.new
    assert again.name != writer.written[0].name


def test_f15_a_thousand_sessions_at_once_tell_of_some_and_then_slowly_of_more() -> None:
    writer = Writer()
    for number in range(100):
        writer.note(down(f"p{number}"))
    assert len(writer.run()) == BURST
    assert writer.log.next(writer.now) == REFILL
    for _ in range(10):
        writer.now += REFILL
        assert len(writer.run()) == 1


def test_what_waits_is_bounded_and_forgotten_when_it_is_old() -> None:
    writer = Writer()
    for number in range(MOST + 7):
        writer.note(down(f"p{number}"))
    assert writer.log.dropped == 7
    writer.now += STALE + 1
    writer.note(down("last"))
    (write,) = writer.run()
    assert write.content["note"] == "peer last is down"
    assert writer.log.dropped == MOST + 7
    assert writer.log.next(writer.now) is None


def test_what_all_agents_see_has_one_name_and_is_told_once() -> None:
    names = set()
    for node, wall in (("n1", WALL), ("n2", WALL + 77)):
        log = EventLog(node)
        occurrence = down(shared=True)
        for _ in range(3):
            log.note(occurrence, 1.0, wall)
        write = log.due(1.0, wall)
        assert write is not None
        names.add(write.name)
        log.done(write, 1.0)
        assert log.next(1.0) is None
        log.note(occurrence, 50.0, wall + 50)
        assert log.due(50.0, wall + 50) is None
        # Once it has been put right, it is told when it comes again.
        log.forget(occurrence)
        log.note(occurrence, 60.0, wall + 60)
        assert log.due(60.0, wall + 60) is not None
    assert len(names) == 1


def test_what_comes_and_goes_on_one_node_is_a_series() -> None:
    writer = Writer()
    writer.note(down())
    writer.run()
    writer.log.forget(down())
    writer.now += INTERVAL
    writer.note(down())
    (again,) = writer.run()
    assert not again.new


def test_a_series_whose_event_is_gone_begins_anew() -> None:
    writer = Writer()
    writer.note(down())
    writer.run()
    writer.note(down())
    writer.now += INTERVAL
    write = writer.log.due(writer.now, WALL + writer.now)
    assert write is not None
    assert not write.new
    writer.log.gone(write, writer.now)
    writer.now += INTERVAL
    (again,) = writer.run()
    assert again.new
    assert again.content["series"]["count"] == 2


def test_what_is_refused_is_not_tried_again() -> None:
    writer = Writer()
    writer.note(down())
    write = writer.log.due(writer.now, WALL)
    assert write is not None
    writer.log.refused(write, writer.now)
    writer.now += 100
    assert writer.run() == []
    assert writer.log.dropped == 1


def test_a_note_that_is_too_long_is_cut() -> None:
    writer = Writer()
    writer.note(down(note="ä" * 2000))
    (write,) = writer.run()
    note = write.content["note"]
    assert len(note.encode()) <= LONGEST_NOTE
    assert note.endswith("ä…")


def test_names_are_valid_and_objects_of_a_namespace_have_theirs_there() -> None:
    writer = Writer()
    regarding = Regarding(ObjectRef("Service", "shop", "a." * 126 + "a"), "v1")
    writer.note(down(regarding=regarding))
    (write,) = writer.run()
    assert write.namespace == write.content["regarding"]["namespace"] == "shop"
    assert len(write.name) <= 253
    assert ".." not in write.name
    assert "uid" not in write.content["regarding"]
