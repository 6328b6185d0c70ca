"""The rows of BFD sessions."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from reconcilers.bfd.process.process_messages import Discarded, ProcessStatus
from reconcilers.bfd.rows import NO_ADDRESS, counters_row, process_row, session_row
from reconcilers.bfd_session import UNKNOWN, BfdCounters, BfdProcess, BfdSession
from reconcilers.model import Peer
from speaker.api import BfdProfile
from speaker.bfd.session_values import Diagnostic, Key, SessionKey, Settings, State
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
    assert process_row(status, connected=True) == BfdProcess(
        connected=True,
        lateness=12,
        discarded=(("TTL", 3),),
        problems=("x",),
    )


def test_each_value_of_a_status_is_in_its_field_of_the_row() -> None:
    key = SessionKey("2001:db8::9", "2001:db8::1", "red", multihop=True)
    settings = Settings(detect_multiplier=5, passive=True, minimum_ttl=250)
    status = status_of(key, State.INIT, settings=settings, discriminator=21)._replace(
        diagnostic=Diagnostic.ECHO_FUNCTION_FAILED,
        since=7.0,
        ups=4,
        remote_discriminator=22,
        remote_state=State.DOWN,
        remote_diagnostic=Diagnostic.PATH_DOWN,
        desired_min_tx=31,
        required_min_rx=32,
        remote_min_tx=33,
        remote_min_rx=34,
        remote_detect_multiplier=35,
        transmit_interval=36,
        detection_time=37,
        echo_problem="no echo packets",
    )
    assert session_row(PEER, key, status, holds=True, connected=True, problem="x") == BfdSession(
        instance="i",
        peer="p",
        address="2001:db8::9",
        local_address="2001:db8::1",
        device="red",
        multihop=True,
        profile="quick",
        strict=True,
        holds_bgp=True,
        state="Init",
        diagnostic="Echo Function Failed",
        since=7.0,
        ups=4,
        remote_state="Down",
        remote_diagnostic="Path Down",
        remote_independent=True,
        local_discriminator=21,
        remote_discriminator=22,
        desired_min_tx=31,
        required_min_rx=32,
        detect_multiplier=5,
        remote_min_tx=33,
        remote_min_rx=34,
        remote_detect_multiplier=35,
        transmit_interval=36,
        detection_time=37,
        passive=True,
        minimum_ttl=250,
        problem="x",
        echo_problem="no echo packets",
    )


def test_a_session_is_named_while_nothing_else_is_known_of_it() -> None:
    key = SessionKey("2001:db8::9", "2001:db8::1", "red", multihop=True)
    row = session_row(PEER, key, None, holds=False, connected=True)
    named = (row.address, row.local_address, row.device, row.multihop)
    assert named == ("2001:db8::9", "2001:db8::1", "red", True)
    assert row.state == UNKNOWN
