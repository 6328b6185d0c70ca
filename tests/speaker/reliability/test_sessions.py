"""Connections and OPENs (H02 to H27) beside a session that must not notice.

What a single session answers to each of them is in ``tests/speaker/peer/session``.
"""

from __future__ import annotations

import pytest

from speaker.api import GracefulRestart, StateChanged
from speaker.capability import FourOctetAs, Multiprotocol
from speaker.engine.inputs import TimersDue, TransportAccepted
from speaker.iana import IPV4_UNICAST
from speaker.message import HEADER_SIZE, KEEPALIVE, Notification, decode_open, frame_message
from speaker.peer.actions import Connect, SetTtl
from tests.speaker.hostile import (
    ATTACKER,
    BASIC,
    INSTANCE,
    LOCAL,
    PROFILES,
    RICH,
    SEEDS,
    STATES,
    Arena,
    open_of,
)


def test_h02_ttl_security_is_requested_from_the_kernel_in_both_directions() -> None:
    """RFC 5082: what comes from further away never gets here."""
    arena = Arena(ttl_security=1)
    actions = arena.engine.handle(
        TransportAccepted(-50, INSTANCE, (LOCAL, 179), (ATTACKER, 40000)), 0.0
    )
    assert SetTtl(-50, 255, 255) in actions
    active = Arena(ttl_security=3, passive=False, connect_retry_time=1)
    active.answer(refused=True)
    actions = []
    for _ in range(20):
        active.now += 1
        actions += active.engine.handle(TimersDue(), active.now)
    (connect, *_) = (action for action in actions if isinstance(action, Connect))
    assert (connect.ttl, connect.min_ttl) == (255, 253)


def test_h03_an_address_has_at_most_two_half_open_connections() -> None:
    arena = Arena()
    for _ in range(50):
        arena.accept()
        arena.send(open_of()[:5])
        arena.wait(1)
        assert len(arena.engine._context.connections) <= 3
    arena.wait(70)
    assert len(arena.engine._context.connections) == 1
    arena.check()


def test_h04_a_thousand_connections_leave_no_state() -> None:
    arena = Arena()
    for _ in range(1_000):
        arena.accept()
        arena.wait(0.01)
    assert len(arena.engine._context.connections) <= 3
    assert len(arena.engine._context.timers._heap) < 200
    arena.check()


def test_h04_an_established_session_is_not_hurt_by_connections_of_the_same_address() -> None:
    arena = Arena().reach("Established")
    good = arena.connection
    for _ in range(100):
        arena.accept()
        arena.send(open_of() + KEEPALIVE)
        arena.drop()
    arena.turn_to(0)
    assert arena.connection == good
    assert arena.status().established
    assert arena.status().flaps == 0
    arena.check()


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("state", STATES)
def test_h10_an_end_in_every_state_and_within_a_message(profile: str, state: str) -> None:
    for part in (b"", KEEPALIVE[:1], KEEPALIVE[:18], SEEDS["update-rich"][:30]):
        offered = RICH if profile == "rich" else BASIC
        arena = Arena(profile, passive=state != "Connect").reach(state, offered)
        arena.send(part)
        arena.drop()
        arena.answer(refused=True)
        arena.check()
        arena.wait(700)
        arena.check()
        while arena.status().state not in ("Active", "Connect"):
            arena.wait(1)
        arena.accept()
        arena.send(open_of(offered) + KEEPALIVE)
        assert arena.status().established
        arena.check()


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", SEEDS)
def test_h13_every_message_in_every_state(state: str, kind: str) -> None:
    """It is handled, or answered as the FSM has it; the referee knows the order."""
    for profile in PROFILES:
        arena = Arena(profile, passive=state != "Connect").reach(state)
        arena.send(SEEDS[kind])
        arena.check()
        arena.send(SEEDS[kind] * 2)
        arena.wait(1)
        arena.check()


def _capability(code: int, value: bytes) -> bytes:
    return bytes((code, len(value))) + value


FOUR = _capability(65, b"\0\0\xfd\xea")
IPV4 = _capability(1, b"\0\1\0\1")


def _with(capabilities: bytes, *, extended: bool = False) -> Arena:
    arena = Arena(graceful_restart=GracefulRestart(60, long_lived_time=60), add_path="both")
    arena.reach("OpenSent")
    if extended:
        body = b"\x02" + len(capabilities).to_bytes(2, "big") + capabilities
        parameters = b"\xff\xff" + len(body).to_bytes(2, "big") + body
    else:
        body = b"".join(b"\x02" + bytes((len(one),)) + one for one in _cut(capabilities) if one)
        parameters = bytes((len(body),)) + body
    arena.send(frame_message(1, open_of(())[19:28] + parameters) + KEEPALIVE)
    arena.check()
    return arena


def _cut(capabilities: bytes) -> list[bytes]:
    """One parameter a capability, as old speakers do it."""
    found = []
    while capabilities:
        size = 2 + capabilities[1]
        found.append(capabilities[:size])
        capabilities = capabilities[size:]
    return found


KNOWN = (1, 2, 3, 5, 6, 9, 64, 65, 69, 70, 71, 73, 75)


@pytest.mark.parametrize("code", [*KNOWN, 67, 128, 200, 255])
def test_h25_a_capability_of_any_length_is_used_or_ignored(code: int) -> None:
    for size in (0, 1, 2, 3, 4, 5, 6, 7, 8, 64, 65, 200):
        for fill in (b"\0", b"\xff"):
            arena = _with(IPV4 + FOUR + _capability(code, fill * size), extended=True)
            four = code == 65 and size == 4
            assert arena.status().established != four, (size, fill)


def test_h25_a_capability_twice_and_with_other_values() -> None:
    arena = _with((IPV4 + FOUR + _capability(2, b"")) * 4)
    assert arena.status().established
    arena = _with(IPV4 + FOUR + _capability(64, b"\0\x0a") + _capability(64, b"\0\x14\0\1\1\x80"))
    assert arena.status().established
    # Of two AS numbers the last counts, and it is another.
    arena = _with(IPV4 + FOUR + _capability(65, b"\0\0\0\1"))
    assert arena.notification is not None
    assert arena.notification[:2] == (2, 2)


@pytest.mark.parametrize("extended", [False, True])
def test_h25_sixty_capabilities(extended: bool) -> None:
    many = IPV4 + FOUR + b"".join(_capability(140 + n, b"") for n in range(58))
    if extended:
        many += _capability(200, bytes(255)) * 10
    arena = _with(many, extended=extended)
    assert arena.status().established
    assert len(arena.status().capabilities) == (70 if extended else 60)


@pytest.mark.parametrize(
    "value",
    [b"\0\1\1\0", b"\0\1\1\4", b"\0\1\1\xff", b"\xff\xff\xff\3", b"\0\1\1\3\0\1\1\0"],
)
def test_h25_a_mode_of_add_path_that_is_undefined(value: bytes) -> None:
    """RFC 7911 section 4."""
    arena = _with(IPV4 + FOUR + _capability(69, value))
    assert arena.status().established
    (member,) = (
        m for m in arena.engine.instance(INSTANCE).established.values() if m.peer.name == "attacker"
    )
    assert bool(member.negotiated.add_path_receive) == value.startswith(b"\0\1\1\3")


def test_h26_after_unsupported_capability_the_open_is_repeated_without() -> None:
    arena = Arena().reach("OpenSent")
    arena.send(Notification(2, 7, b"\x46\0").encode())
    assert "Unsupported Capability" in arena.status().reason
    arena.wait(5)
    arena.accept()
    (kind, body), *_ = arena.messages()
    assert kind == 1
    assert {type(one) for one in decode_open(body).capabilities} == {Multiprotocol, FourOctetAs}
    arena.send(open_of((Multiprotocol(IPV4_UNICAST), FourOctetAs(65002))) + KEEPALIVE)
    assert arena.status().established
    arena.check()


def test_h27_crossing_opens_with_graceful_restart_make_no_flap() -> None:
    """RFC 4724 section 5 lets a new connection replace an old one: not the rest of a collision."""
    arena = Arena("internal", passive=False)
    arena.accept()
    arena.answer()
    ours, theirs = arena.connections[1], arena.connections[0]
    for connection in (ours, theirs, ours, theirs):
        octets = (
            open_of() if not arena.written.get(connection, b"").endswith(KEEPALIVE) else KEEPALIVE
        )
        arena.send(octets, connection)
    arena.send(KEEPALIVE, ours)
    arena.send(KEEPALIVE, theirs)
    arena.wait(10)
    arena.check()
    open_ones = [one for one in arena.connections if one not in arena.closed]
    assert len(open_ones) == 1
    ups = [e for e in arena.events if isinstance(e, StateChanged) and e.peer == "attacker"]
    assert [e.new for e in ups].count("Established") == 1
    assert arena.status().flaps == 0


def test_octets_before_a_connection_or_after_its_end_are_ignored() -> None:
    arena = Arena()
    for connection in (0, 1, 77, -77):
        arena.send(SEEDS["update-rich"] * 3, connection)
    arena.reach("Established")
    arena.send(b"\0" * HEADER_SIZE)
    before = arena.messages()
    arena.closed.discard(arena.connection)
    arena.send(open_of() + KEEPALIVE)
    arena.closed.add(arena.connection)
    assert arena.messages() == before
    arena.check()
