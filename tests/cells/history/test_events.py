"""The entry of each event of the speaker: which object it is about, and the reason in words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cells.history.events import entry_of
from speaker.api import (
    ESTABLISHED,
    CollectorChanged,
    ConnectionsRefused,
    Event,
    Fault,
    ListenChanged,
    PrefixLimit,
    RecordingEnded,
    RouteLeftOut,
    SessionError,
    StateChanged,
)
from speaker.nlri import IPV4_UNICAST

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def limit(*, ended: bool) -> PrefixLimit:
    return PrefixLimit(
        instance="main", peer="tor-1", family=IPV4_UNICAST, received=12, limit=10, ended=ended
    )


def left_out(count: int) -> RouteLeftOut:
    return RouteLeftOut(
        instance="main",
        peers=tuple(f"tor-{n}" for n in range(count)),
        family=IPV4_UNICAST,
        prefix="192.0.2.0/24",
        count=1,
        reason="too long",
    )


def collector(*, connected: bool) -> CollectorChanged:
    reason = "" if connected else "refused"
    return CollectorChanged(
        name="c", address="192.0.2.5", port=1790, connected=connected, reason=reason
    )


def listen(error: str | None) -> ListenChanged:
    return ListenChanged(instance="main", address="::", port=179, error=error)


@pytest.mark.parametrize(
    ("event", "kind", "name", "message"),
    [
        (
            limit(ended=True),
            "Session",
            "main/tor-1",
            "12 ipv4-unicast prefixes of 10: the session ended",
        ),
        (limit(ended=False), "Session", "main/tor-1", "12 ipv4-unicast prefixes of 10: a warning"),
        (left_out(1), "Route", "192.0.2.0/24", "not advertised to tor-0: too long"),
        (listen("in use"), "Listener", "main/:::179", "in use"),
        (listen(None), "Listener", "main/:::179", "listening"),
        (collector(connected=True), "Collector", "c", "connected"),
        (collector(connected=False), "Collector", "c", "not connected: refused"),
        (
            Fault(instance="main", peer="tor-1", where="import", error="E"),
            "Session",
            "main/tor-1",
            "internal error: import: E",
        ),
        (
            Fault(instance="main", peer=None, where="export", error="E"),
            "Session",
            "main",
            "internal error: export: E",
        ),
        (RecordingEnded(reason="disk full"), "Speaker", "recording", "disk full"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_an_event_is_an_entry_of_what_it_is_about(
    event: Event, kind: str, name: str, message: str
) -> None:
    item = entry_of(event, NOW)
    assert item is not None
    assert (item.type, item.event_time, item.address) == ("OCCURRED", NOW, None)
    assert (item.kind, item.name, item.message) == (kind, name, message)


def test_at_most_eight_peers_are_named() -> None:
    item = entry_of(left_out(20), NOW)
    assert item is not None
    assert item.message is not None
    assert item.message.count("tor-") == 8


def test_a_rejected_connection_has_the_address_that_it_came_from() -> None:
    event = ConnectionsRefused(instance="main", address="192.0.2.66", reason="unknown", count=3)
    item = entry_of(event, NOW)
    assert item is not None
    assert (item.kind, item.name, item.address) == ("Instance", "main", "192.0.2.66")
    assert item.message == "connection rejected: unknown"


@pytest.mark.parametrize(
    ("sent", "survived", "what"),
    [
        (True, False, "NOTIFICATION sent"),
        (False, False, "NOTIFICATION received"),
        (True, True, "malformed UPDATE"),
        (False, True, "malformed UPDATE"),
    ],
)
def test_the_error_of_a_session_has_its_direction_and_the_address_of_the_peer(
    sent: bool, survived: bool, what: str
) -> None:
    event = SessionError(
        instance="main",
        peer="tor-1",
        address="192.0.2.1",
        sent=sent,
        code=6,
        subcode=2,
        text="Cease",
        survived=survived,
    )
    item = entry_of(event, NOW)
    assert item is not None
    assert (item.type, item.kind, item.name) == ("OCCURRED", "Session", "main/tor-1")
    assert (item.event_time, item.address, item.message) == (NOW, "192.0.2.1", f"{what}: Cease")


def state(old: str, new: str, reason: str = "") -> StateChanged:
    return StateChanged(
        instance="main", peer="tor-1", address="192.0.2.1", old=old, new=new, reason=reason
    )


def test_a_session_that_comes_up_or_goes_down_is_a_change_of_its_state() -> None:
    for old, new, reason in ((ESTABLISHED, "Idle", "expired"), ("OpenConfirm", ESTABLISHED, "")):
        item = entry_of(state(old, new, reason), NOW)
        assert item is not None
        assert (item.type, item.kind, item.name) == ("MODIFIED", "Session", "main/tor-1")
        ((field, before, after),) = [(c.field, c.old, c.new) for c in item.changes]
        assert (field, before, after) == ("state", old, new)
        assert (item.event_time, item.address, item.message) == (NOW, "192.0.2.1", reason or None)


def test_a_failed_attempt_has_its_reason_and_a_step_on_the_way_is_no_entry() -> None:
    item = entry_of(state("Connect", "Idle", "refused"), NOW)
    assert item is not None
    assert (item.type, item.kind, item.name) == ("OCCURRED", "Session", "main/tor-1")
    assert (item.event_time, item.address, item.changes) == (NOW, "192.0.2.1", ())
    assert item.message == "not Established: refused"
    assert entry_of(state("Idle", "Connect"), NOW) is None
