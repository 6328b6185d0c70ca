"""The rows of BFD sessions."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcilers.bfd.process.process_messages import Discarded, ProcessStatus
from reconcilers.bfd.rows import NO_ADDRESS, counters_row, process_row, session_row
from reconcilers.bfd_session import UNKNOWN, BfdCounters, BfdProcess
from reconcilers.model import Peer
from speaker.api import BfdProfile
from speaker.bfd.session_values import Key, SessionKey, Settings, State
from tests.reconcilers.bfd.build import status_of

PEER = Peer("i", "p", "192.0.2.9", None, 65010, bfd=BfdProfile(name="quick", strict=True))
KEY = SessionKey("192.0.2.9", "")


def test_a_session_has_both_ends() -> None:
    row = session_row(PEER, KEY, status_of(KEY), holds=False, connected=True)
    assert (row.instance, row.peer, row.address, row.profile) == ("i", "p", "192.0.2.9", "quick")
    assert (row.state, row.remote_state, row.diagnostic) == ("Up", "Up", "")
    assert (row.transmit_interval, row.detection_time) == (300_000, 900_000)
    assert row.strict
    assert not row.holds_bgp
    lost = session_row(PEER, KEY, status_of(KEY, State.DOWN), holds=True, connected=True)
    assert (lost.state, lost.diagnostic) == ("Down", "Control Detection Time Expired")
    assert lost.holds_bgp


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (None, ""),
        (Key(1, b"secret", meticulous=True), "meticulous SHA1"),
        (Key(1, b"secret", meticulous=False), "SHA1"),
    ],
)
def test_a_session_has_the_type_of_its_authentication(key: Key | None, text: str) -> None:
    status = status_of(KEY, settings=Settings(key=key))
    row = session_row(PEER, KEY, status, holds=False, connected=True)
    assert row.authentication == text


def test_what_is_not_known_is_not_claimed() -> None:
    row = session_row(PEER, KEY, status_of(KEY), holds=False, connected=False, problem="no process")
    assert (row.state, row.since, row.problem) == (UNKNOWN, 0.0, "no process")
    nowhere = session_row(PEER, None, None, holds=True, connected=True)
    assert (nowhere.state, nowhere.problem) == (UNKNOWN, NO_ADDRESS)


def test_only_strict_peers_are_held() -> None:
    relaxed = replace(PEER, bfd=BfdProfile())
    assert not session_row(relaxed, KEY, None, holds=True, connected=True).holds_bgp


def test_an_error_of_a_socket_is_the_problem_of_its_session() -> None:
    status = status_of(KEY, problem="Address already in use")
    row = session_row(PEER, KEY, status, holds=False, connected=True)
    assert row.problem == "Address already in use"


def test_counters_and_the_process_have_rows_of_their_own() -> None:
    assert counters_row(PEER, status_of(KEY)) == BfdCounters(
        instance="i", peer="p", packets_sent=10, packets_received=11, longest_gap=290_000
    )
    status = ProcessStatus(
        realtime=False,
        memory_locked=True,
        least_interval=300_000,
        lateness=12,
        discarded=(Discarded("TTL", 3),),
        problems=("x",),
    )
    assert process_row("waggle-bfd", status, connected=True) == BfdProcess(
        name="waggle-bfd",
        connected=True,
        memory_locked=True,
        least_interval=300_000,
        lateness=12,
        discarded=(("TTL", 3),),
        problems=("x",),
    )
