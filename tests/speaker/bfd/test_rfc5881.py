"""RFC 5881 and 5883, rule by rule: addresses, ports and TTLs of one hop and of several.

Sockets are on the loopback interface, where a packet keeps the TTL that it was sent with.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from speaker.bfd.echo_socket import ECHO_PORT
from speaker.bfd.engine import Origin
from speaker.bfd.packet import encode
from speaker.bfd.session_values import Discard, Key, SessionKey, Settings, State
from speaker.bfd.transport import (
    MULTIHOP_PORT,
    SINGLE_HOP_PORT,
    SOURCE_PORTS,
    first_source_port,
    sending_socket,
    source_port,
)
from tests.speaker.bfd.build import LEFT, RIGHT, key_of, new_engine
from tests.speaker.bfd.test_packet import PACKET

FIRST = PACKET._replace(state=State.DOWN, your_discriminator=0)
NUMBER = first_source_port(0x1234_5678)
"""The source port that follows from the discriminator of a session."""


@pytest.fixture
def one_hop() -> Iterator[socket.socket]:
    with sending_socket(SessionKey("127.0.0.2", "127.0.0.3"), NUMBER) as sock:
        yield sock


@pytest.fixture
def several_hops() -> Iterator[socket.socket]:
    with sending_socket(SessionKey("127.0.0.2", "127.0.0.3", multihop=True), NUMBER) as sock:
        yield sock


def test_rfc5881_2_ipv4_and_ipv6_have_sessions_of_their_own() -> None:
    engine = new_engine()
    engine.set_session(key_of(LEFT, RIGHT), Settings(), 0)
    engine.set_session(key_of("2001:db8::1", "2001:db8::2"), Settings(), 0)
    engine.receive(encode(FIRST), Origin(RIGHT, LEFT, "", multihop=False, ttl=255), 0)
    states = {key.peer: session.state for key, session in engine.sessions.items()}
    assert states == {RIGHT: State.INIT, "2001:db8::2": State.DOWN}


def test_rfc5881_4_control_packets_are_for_port_3784(one_hop: socket.socket) -> None:
    assert one_hop.getpeername() == ("127.0.0.2", SINGLE_HOP_PORT) == ("127.0.0.2", 3784)


def test_rfc5881_4_a_session_has_one_source_port_from_49152_on(one_hop: socket.socket) -> None:
    port = one_hop.getsockname()[1]
    assert 49152 <= port <= 65535
    assert (SOURCE_PORTS.start, SOURCE_PORTS.stop) == (49152, 65536)
    one_hop.send(b"x")
    assert one_hop.getsockname()[1] == port


def test_rfc5881_4_each_session_has_a_source_port_of_its_own(one_hop: socket.socket) -> None:
    """Also where the first port that is tried is the other session's, and free for this address."""
    taken = {source_port(one_hop)}
    for own in ("127.0.0.3", "127.0.0.5"):
        with sending_socket(SessionKey("127.0.0.4", own), NUMBER, taken) as other:
            assert source_port(other) not in taken


def test_rfc5881_4_the_next_socket_of_a_session_has_the_same_source_port() -> None:
    """Of an interface that was made anew, or of the process that continues the session."""
    key = SessionKey("127.0.0.2", "127.0.0.6")
    with sending_socket(key, NUMBER) as first:
        port = source_port(first)
    with sending_socket(key, NUMBER) as second:
        assert source_port(second) == port
    with sending_socket(key, NUMBER + 1) as of_another_session:
        assert source_port(of_another_session) != port


def test_rfc5881_4_echo_packets_are_for_port_3785() -> None:
    assert ECHO_PORT == 3785


@pytest.mark.parametrize("key", [None, Key(1, b"secret")], ids=["plain", "authenticated"])
@pytest.mark.parametrize("ttl", [0, 1, 64, 254])
def test_rfc5881_5_a_packet_of_another_ttl_than_255_is_discarded(ttl: int, key: Key | None) -> None:
    engine = new_engine()
    engine.set_session(key_of(LEFT, RIGHT), Settings(key=key), 0)
    engine.receive(encode(FIRST), Origin(RIGHT, LEFT, "", multihop=False, ttl=ttl), 0)
    assert engine.discarded == {Discard.TTL: 1}


@pytest.mark.parametrize("address", ["127.0.0.2", "::1"])
def test_rfc5881_5_packets_have_a_ttl_of_255(address: str) -> None:
    own = "127.0.0.3" if ":" not in address else "::1"
    with sending_socket(SessionKey(address, own), NUMBER) as sock:
        if sock.family == socket.AF_INET:
            assert sock.getsockopt(socket.IPPROTO_IP, socket.IP_TTL) == 255
        else:
            assert sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS) == 255


def test_rfc5881_6_packets_are_between_the_addresses_of_the_session(one_hop: socket.socket) -> None:
    assert (one_hop.getsockname()[0], one_hop.getpeername()[0]) == ("127.0.0.3", "127.0.0.2")


def test_rfc5883_5_control_packets_of_several_hops_are_for_port_4784(
    several_hops: socket.socket,
) -> None:
    assert several_hops.getpeername()[1] == MULTIHOP_PORT == 4784
    assert several_hops.getsockname()[1] in SOURCE_PORTS


@pytest.mark.parametrize("multihop", [False, True])
def test_rfc5883_5_a_packet_of_the_other_port_reaches_no_session(*, multihop: bool) -> None:
    engine = new_engine()
    key = key_of(LEFT, RIGHT, multihop=multihop)
    engine.set_session(key, Settings(minimum_ttl=255 if not multihop else 1), 0)
    origin = Origin(RIGHT, LEFT, "", multihop=not multihop, ttl=255)
    engine.receive(encode(FIRST), origin, 0)
    known = PACKET._replace(your_discriminator=engine.sessions[key].local_discriminator)
    engine.receive(encode(known), origin, 0)
    assert engine.discarded == {Discard.NO_SESSION: 1, Discard.YOUR_DISCRIMINATOR: 1}
    assert engine.sessions[key].state is State.DOWN


def test_rfc5883_4_1_sessions_of_two_pairs_of_addresses_are_two() -> None:
    engine = new_engine()
    for peer in (RIGHT, "192.0.2.3"):
        engine.set_session(key_of(LEFT, peer, multihop=True), Settings(minimum_ttl=1), 0)
    engine.receive(encode(FIRST), Origin(RIGHT, LEFT, "", multihop=True, ttl=9), 0)
    states = {key.peer: session.state for key, session in engine.sessions.items()}
    assert states == {RIGHT: State.INIT, "192.0.2.3": State.DOWN}
