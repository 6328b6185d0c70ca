"""Sessions side by side: demultiplexing, discards and their counters, discriminators."""

from __future__ import annotations

import pytest

from speaker.bfd.engine import Engine, Origin
from speaker.bfd.packet import encode
from speaker.bfd.session_values import Diagnostic, Discard, Key, Settings, State
from tests.speaker.bfd.build import LEFT, MS, RIGHT, SECOND, Pair, key_of, new_engine, variables_of
from tests.speaker.bfd.test_packet import PACKET

FAST = Settings(desired_min_tx=50 * MS, required_min_rx=50 * MS)
ORIGIN = Origin(RIGHT, LEFT, "", multihop=False, ttl=255)


def up() -> Pair:
    pair = Pair(FAST, FAST)
    pair.run(5 * SECOND)
    assert pair.up()
    return pair


class TestForgedPackets:
    """Packets of others change no state, and each has its counter."""

    @pytest.mark.parametrize(
        ("origin", "discard"),
        [
            (ORIGIN._replace(ttl=254), Discard.TTL),
            (ORIGIN._replace(ttl=1), Discard.TTL),
            (ORIGIN._replace(multihop=True), Discard.YOUR_DISCRIMINATOR),
            (ORIGIN._replace(peer="192.0.2.9"), Discard.YOUR_DISCRIMINATOR),
            (ORIGIN._replace(local="192.0.2.8"), Discard.YOUR_DISCRIMINATOR),
        ],
        ids=["ttl-254", "ttl-1", "port-4784", "another-source", "another-destination"],
    )
    @pytest.mark.parametrize("state", list(State), ids=str)
    def test_a_packet_from_elsewhere(self, origin: Origin, discard: Discard, state: State) -> None:
        pair = up()
        engine, session = pair.left.engine, pair.left.session
        deadline, before = session.detection_deadline, variables_of(session)
        packet = PACKET._replace(
            state=state,
            my_discriminator=session.neighbor.discriminator,
            your_discriminator=session.local_discriminator,
        )
        engine.receive(encode(packet), origin, pair.now)
        assert engine.discarded == {discard: 1}
        assert session.detection_deadline == deadline
        assert variables_of(session) == before

    def test_the_packet_before_again_from_elsewhere(self) -> None:
        pair = up()
        octets = pair.left.session._last_octets
        assert octets
        deadline = pair.left.session.detection_deadline
        for origin in (
            ORIGIN._replace(ttl=254),
            ORIGIN._replace(peer="192.0.2.9"),
            ORIGIN._replace(device="eth1", peer="192.0.2.9"),
        ):
            pair.left.engine.receive(octets, origin, pair.now + 1)
        assert pair.left.session.detection_deadline == deadline

    def test_a_discriminator_of_no_session(self) -> None:
        pair = up()
        packet = PACKET._replace(your_discriminator=12345)
        pair.left.engine.receive(encode(packet), ORIGIN, pair.now)
        assert pair.left.engine.discarded == {Discard.YOUR_DISCRIMINATOR: 1}

    def test_a_first_packet_of_a_stranger(self) -> None:
        engine = new_engine(1)
        packet = PACKET._replace(state=State.DOWN, your_discriminator=0)
        engine.receive(encode(packet), ORIGIN, 0)
        assert engine.discarded == {Discard.NO_SESSION: 1}
        assert not engine.sessions

    def test_authentication_that_is_missing_or_not_configured(self) -> None:
        for settings, authenticated, discard in (
            (Settings(key=Key(1, b"x")), False, Discard.AUTHENTICATION_MISSING),
            (Settings(), True, Discard.AUTHENTICATION_UNEXPECTED),
        ):
            engine = new_engine(1)
            engine.set_session(key_of(LEFT, RIGHT), settings, 0)
            packet = PACKET._replace(
                state=State.DOWN, your_discriminator=0, authenticated=authenticated
            )
            engine.receive(encode(packet) + b"\1\5\0xx" + bytes(40), ORIGIN, 0)
            assert engine.discarded == {discard: 1}

    @pytest.mark.parametrize(("ttl", "accepted"), [(255, True), (250, True), (249, False)])
    def test_a_multihop_session_has_a_minimum_ttl(self, ttl: int, *, accepted: bool) -> None:
        engine = new_engine(1)
        key = key_of(LEFT, RIGHT, multihop=True)
        engine.set_session(key, Settings(minimum_ttl=250), 0)
        packet = PACKET._replace(state=State.DOWN, your_discriminator=0)
        engine.receive(encode(packet), ORIGIN._replace(multihop=True, ttl=ttl), 0)
        assert (engine.sessions[key].state is State.INIT) is accepted
        assert engine.discarded == ({} if accepted else {Discard.TTL: 1})

    def test_a_stranger_ends_no_multihop_session_by_two_addresses(self) -> None:
        pair = Pair(Settings(minimum_ttl=200), Settings(minimum_ttl=200), multihop=True)
        pair.run(5 * SECOND)
        packet = PACKET._replace(state=State.DOWN, my_discriminator=666, your_discriminator=0)
        pair.left.engine.receive(encode(packet), ORIGIN._replace(multihop=True), pair.now)
        assert pair.left.state is State.UP
        assert pair.left.engine.discarded == {Discard.STATE: 1}

    def test_a_neighbor_whose_detection_time_has_passed_ends_a_multihop_session_at_once(
        self,
    ) -> None:
        """It has forgotten our discriminator (6.8.1), and is known by its own."""
        pair = Pair(Settings(minimum_ttl=200), Settings(minimum_ttl=200), multihop=True)
        pair.run(5 * SECOND)
        receive = pair.right.engine.receive
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pair.right.engine, "receive", lambda *_: None)
            pair.run(pair.right.session.detection_time + MS * 10)
        assert pair.right.engine.receive == receive
        (change,) = [each for each in pair.left.changes if each.before is State.UP]
        assert change.diagnostic is Diagnostic.NEIGHBOR_SIGNALED_SESSION_DOWN
        assert change.remote_diagnostic == Diagnostic.CONTROL_DETECTION_TIME_EXPIRED
        assert pair.right.sent[-1][1].your_discriminator == 0


class TestDemultiplexing:
    def test_one_address_in_three_devices_is_three_sessions(self) -> None:
        engine = new_engine(1)
        devices = ("red", "blue", "")
        for device in devices:
            engine.set_session(key_of(LEFT, RIGHT, device=device), FAST, 0)
        packet = PACKET._replace(state=State.DOWN, your_discriminator=0)
        engine.receive(encode(packet), ORIGIN._replace(device="blue"), 0)
        states = {key.device: session.state for key, session in engine.sessions.items()}
        assert states == {"red": State.DOWN, "blue": State.INIT, "": State.DOWN}

    def test_a_session_without_a_local_address_takes_any(self) -> None:
        engine = new_engine(1)
        engine.set_session(key_of("", RIGHT), FAST, 0)
        packet = PACKET._replace(state=State.DOWN, your_discriminator=0)
        engine.receive(encode(packet), ORIGIN._replace(device="eth0"), 0)
        assert [session.state for session in engine.sessions.values()] == [State.INIT]

    def test_discriminators_are_not_zero_and_unique(self) -> None:
        numbers = iter([0.0, 0.5, 0.1, 0.1, 0.5, 0.0, 0.25, 0.1, 0.1])
        engine = Engine(lambda: next(numbers, 0.75))
        engine.set_session(key_of(LEFT, RIGHT), FAST, 0)
        engine.set_session(key_of(LEFT, "192.0.2.3"), FAST, 0)
        found = [session.local_discriminator for session in engine.sessions.values()]
        assert len(set(found)) == 2
        assert 0 not in found

    def test_two_thousand_sessions_begin_at_once(self) -> None:
        engine = new_engine(1)
        for number in range(2000):
            engine.set_session(key_of(LEFT, f"10.0.{number >> 8}.{number & 255}"), FAST, 0)
        engine.due(0)
        assert len(engine.sent) == 2000
        assert engine.next_deadline() is not None
        assert engine.next_deadline() > 0  # type: ignore[operator]


def test_equal_settings_change_nothing() -> None:
    pair = up()
    before = dict(vars(pair.left.session))
    pair.configure(pair.left, Settings(desired_min_tx=50 * MS, required_min_rx=50 * MS))
    assert vars(pair.left.session) == before
    assert not pair.left.engine.sent


def test_what_waits_in_a_socket_is_taken_before_a_deadline() -> None:
    """A process that stood still for 0.6 s reads first: the session stays."""
    pair = up()
    waiting = pair.left.session._last_octets
    pair.left.engine.receive(waiting, ORIGIN, pair.now + 600 * MS)
    pair.left.engine.due(pair.now + 600 * MS)
    assert pair.left.state is State.UP
