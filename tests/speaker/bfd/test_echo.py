"""When echo packets are lost: by their number and by their time (RFC 5880 section 6.8.5)."""

from __future__ import annotations

from speaker.bfd.echo import EchoFunction
from speaker.bfd.schedule import NEVER

INTERVAL, JITTERED, MULTIPLIER = 20, 15, 3


def sent(*times: int) -> EchoFunction:
    """Return a function whose packets of these times have not returned."""
    function = EchoFunction(7, 8)
    for now in times:
        function.send(now, INTERVAL, JITTERED, MULTIPLIER)
    return function


def test_enough_packets_are_lost_once_their_time_has_passed() -> None:
    function = sent(0, 15, 30)
    assert not function.failed(59, MULTIPLIER)
    assert function.failed(60, MULTIPLIER)


def test_the_time_alone_is_no_loss() -> None:
    """The process has stood still, and has sent no packets meanwhile."""
    function = sent(0, 15)
    assert not function.failed(1000, MULTIPLIER)
    assert function.due(MULTIPLIER) == 30, "the next packet, and no deadline"


def test_a_packet_that_returns_begins_the_time_anew() -> None:
    function = sent(0)
    second = function.send(15, INTERVAL, JITTERED, MULTIPLIER)
    function.send(30, INTERVAL, JITTERED, MULTIPLIER)
    assert function.returned(second, 50, INTERVAL, MULTIPLIER)
    assert function.deadline == 50 + MULTIPLIER * INTERVAL
    function.send(45, INTERVAL, JITTERED, MULTIPLIER)
    assert function.deadline == 50 + MULTIPLIER * INTERVAL
    assert not function.failed(200, MULTIPLIER), "two are missing"


def test_without_a_missing_packet_there_is_no_deadline() -> None:
    function = EchoFunction(7, 8)
    payload = function.send(0, INTERVAL, JITTERED, MULTIPLIER)
    assert function.returned(payload, 5, INTERVAL, MULTIPLIER)
    assert function.deadline == NEVER
    assert not function.returned(payload, 6, INTERVAL, MULTIPLIER), "again"
