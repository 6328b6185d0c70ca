"""One session with a neighbor: RFC 5880 sections 6.2 to 6.8, in virtual time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

import pytest
from msgspec.structs import replace

from speaker.bfd.engine import Engine, Origin
from speaker.bfd.packet import encode
from speaker.bfd.recent import WINDOW
from speaker.bfd.session_values import Diagnostic, Key, Settings, State
from tests.speaker.bfd.build import LEFT, MS, RIGHT, SECOND, Delivery, Pair, good, lost, new_engine

FAST = Settings(desired_min_tx=50 * MS, required_min_rx=50 * MS)


def established(
    left: Settings = FAST, right: Settings = FAST, *, multihop: bool = False, seed: int = 1
) -> Pair:
    pair = Pair(left, right, multihop=multihop, seed=seed)
    pair.run(5 * SECOND)
    assert pair.up()
    for end in pair.ends:
        end.changes.clear()
        end.sent.clear()
    return pair


def gaps(pair: Pair) -> list[int]:
    times = [time for time, packet in pair.left.sent if not packet.final]
    return [after - before for before, after in pairwise(times)]


class Behind:
    """An engine whose clock has stood still for a while."""

    def __init__(self, engine: Engine, by: int) -> None:
        self._engine, self._by = engine, by

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._engine, name)

    def next_deadline(self) -> int | None:
        deadline = self._engine.next_deadline()
        return None if deadline is None else deadline + self._by

    def receive(self, octets: bytes, origin: Origin, now: int) -> None:
        self._engine.receive(octets, origin, now - self._by)

    def due(self, now: int) -> None:
        self._engine.due(now - self._by)


def suspend(pair: Pair, microseconds: int) -> None:
    """Have the left end's machine suspended: packets to it are lost, and its clock stands still."""
    engine, pair.left.engine = pair.left.engine, new_engine()
    pair.run(microseconds)
    pair.left.engine = cast("Engine", Behind(engine, microseconds))


class TestStateMachine:
    def test_a_session_comes_up_by_a_three_way_handshake(self) -> None:
        pair = Pair(FAST, FAST)
        pair.run(5 * SECOND)
        assert pair.up()
        for end in pair.ends:
            states = [change.after for change in end.changes]
            assert states in ([State.INIT, State.UP], [State.UP])

    def test_the_slow_interval_applies_until_the_session_is_up(self) -> None:
        pair = Pair(FAST, None)
        pair.run(20 * SECOND)
        assert min(gaps(pair)) >= 750 * MS
        assert all(packet.desired_min_tx == SECOND for _, packet in pair.left.sent)

    def test_the_configured_interval_applies_once_it_is_up(self) -> None:
        pair = established()
        pair.run(10 * SECOND)
        assert 37 * MS <= min(gaps(pair)) <= max(gaps(pair)) <= 51 * MS

    def test_a_lost_neighbor_is_down_after_the_detection_time(self) -> None:
        pair = established()
        pair.line = lost
        began = pair.now
        pair.run(SECOND)
        change = pair.left.changes[0]
        assert change.after is State.DOWN
        assert change.diagnostic is Diagnostic.CONTROL_DETECTION_TIME_EXPIRED
        assert 100 * MS <= change.time - began <= 151 * MS
        assert pair.left.session.neighbor.discriminator == 0

    def test_both_are_up_again_when_the_line_is(self) -> None:
        pair = established()
        pair.line = lost
        pair.run(SECOND)
        pair.line = good
        pair.run(5 * SECOND)
        assert pair.up()

    def test_a_suspend_shorter_than_the_neighbors_detection_time_changes_nothing(self) -> None:
        pair = established()
        suspend(pair, 90 * MS)
        pair.run(10 * SECOND)
        assert pair.up()
        assert [end.changes for end in pair.ends] == [[], []]

    def test_a_longer_suspend_is_a_loss_at_both_ends_and_both_are_up_again(self) -> None:
        pair = established()
        suspend(pair, 3600 * SECOND)
        assert (pair.left.state, pair.right.state) == (State.UP, State.DOWN)
        pair.run(5 * SECOND)
        assert [change.after for change in pair.left.changes] == [State.DOWN, State.UP]
        assert pair.up()

    def test_a_neighbor_that_is_down_is_signaled(self) -> None:
        pair = established()
        # Packets to the left alone are lost: it notices by itself, the right one by its packet.
        left = pair.left.engine
        arrived = left.receive
        left.receive = lambda *_: None  # type: ignore[method-assign]
        pair.run(SECOND)
        left.receive = arrived  # type: ignore[method-assign]
        change = pair.right.changes[0]
        assert change.after is State.DOWN
        assert change.diagnostic is Diagnostic.NEIGHBOR_SIGNALED_SESSION_DOWN

    def test_admin_down_takes_the_neighbor_down_with_a_diagnostic(self) -> None:
        pair = established()
        pair.configure(pair.left, Settings(admin_down=True))
        pair.run(SECOND)
        assert pair.left.state is State.ADMIN_DOWN
        assert pair.left.session.diagnostic is Diagnostic.ADMINISTRATIVELY_DOWN
        (change,) = pair.right.changes
        assert change.remote_state is State.ADMIN_DOWN
        assert change.diagnostic is Diagnostic.NEIGHBOR_SIGNALED_SESSION_DOWN
        pair.configure(pair.left, FAST)
        pair.run(5 * SECOND)
        assert pair.up()

    def test_a_removed_session_is_announced_and_then_forgotten(self) -> None:
        pair = established()
        pair.left.engine.remove_session(pair.left.key, pair.now)
        pair.run(10 * MS)
        assert pair.right.state is State.DOWN
        assert pair.right.changes[-1].remote_state is State.ADMIN_DOWN
        pair.run(10 * SECOND)
        assert not pair.left.engine.sessions

    def test_a_removed_session_that_returns_comes_up(self) -> None:
        pair = established()
        pair.left.engine.remove_session(pair.left.key, pair.now)
        pair.run(MS)
        pair.configure(pair.left, FAST)
        pair.run(10 * SECOND)
        assert pair.up()

    @pytest.mark.parametrize("multihop", [False, True])
    def test_a_restarted_neighbor_comes_up_again(self, *, multihop: bool) -> None:
        pair = established(multihop=multihop)
        pair.restart(pair.right, FAST)
        began = pair.now
        pair.run(5 * SECOND)
        assert pair.up()
        took = pair.left.changes[0].time - began
        # Its first Down ends a single-hop session; a multihop one waits for the detection time.
        assert took <= 2 * MS if not multihop else took >= 100 * MS

    def test_two_passive_ends_send_nothing(self) -> None:
        pair = Pair(Settings(passive=True), Settings(passive=True))
        pair.run(10 * SECOND)
        assert not pair.left.sent
        assert not pair.right.sent

    def test_a_passive_end_answers_an_active_one(self) -> None:
        established(Settings(passive=True), FAST)


class TestTimers:
    def test_the_longer_interval_of_both_ends_is_used(self) -> None:
        pair = established(FAST, Settings(desired_min_tx=100 * MS, required_min_rx=400 * MS))
        pair.run(20 * SECOND)
        assert 300 * MS <= min(gaps(pair)) <= max(gaps(pair)) <= 401 * MS
        assert pair.left.session.detection_time == 300 * MS
        assert pair.right.session.detection_time == 1200 * MS

    def test_a_longer_interval_of_the_neighbor_is_used_from_the_next_packet(self) -> None:
        """Packets of a steady session are sent as they are: until something changes."""
        pair = established()
        pair.run(SECOND)
        pair.configure(pair.right, Settings(desired_min_tx=50 * MS, required_min_rx=SECOND))
        pair.run(2 * SECOND)
        pair.left.sent.clear()
        pair.run(20 * SECOND)
        assert 750 * MS <= min(gaps(pair)) <= max(gaps(pair)) <= SECOND
        pair.configure(pair.right, FAST)
        pair.run(2 * SECOND)
        pair.left.sent.clear()
        pair.run(2 * SECOND)
        assert max(gaps(pair)) <= 50 * MS

    def test_a_multiplier_of_one_has_jitter_of_at_least_a_tenth(self) -> None:
        one = Settings(desired_min_tx=100 * MS, required_min_rx=100 * MS, detect_multiplier=1)
        pair = established(one, one)
        pair.run(20 * SECOND)
        assert 75 * MS <= min(gaps(pair)) <= max(gaps(pair)) <= 90 * MS

    @pytest.mark.parametrize("interval", [20 * MS, 200 * MS, 2 * SECOND])
    def test_intervals_change_without_a_change_of_state(self, interval: int) -> None:
        pair = established()
        for end in pair.ends:
            pair.configure(end, Settings(desired_min_tx=interval, required_min_rx=interval))
            pair.run(10 * SECOND)
        assert not pair.left.changes
        assert not pair.right.changes
        assert pair.left.session.detection_time == 3 * interval
        assert not pair.left.session.poll.active

    def test_a_longer_interval_waits_for_the_final(self) -> None:
        pair = established()
        pair.line = lost
        pair.configure(pair.left, Settings(desired_min_tx=SECOND, required_min_rx=50 * MS))
        pair.run(95 * MS)
        assert max(gaps(pair)) <= 51 * MS
        assert all(packet.poll for _, packet in pair.left.sent[1:])

    def test_a_shorter_receive_interval_waits_for_the_final(self) -> None:
        pair = established(Settings(50 * MS, 300 * MS))
        assert pair.left.session.detection_time == 900 * MS
        pair.configure(pair.left, FAST)
        assert pair.left.session.detection_time == 900 * MS
        pair.run(2 * SECOND)
        assert pair.left.session.detection_time == 150 * MS

    def test_an_interval_that_changes_during_a_poll_is_polled_again(self) -> None:
        pair = established()
        pair.line = lambda _: Delivery((40 * MS,))
        pair.run(SECOND)
        pair.configure(pair.left, Settings(100 * MS, 50 * MS))
        pair.run(10 * MS)
        pair.configure(pair.left, Settings(200 * MS, 50 * MS))
        pair.left.sent.clear()
        pair.run(3 * SECOND)
        polls = [packet.poll for _, packet in pair.left.sent if not packet.final]
        runs = "".join("P" if poll else "-" for poll in polls).strip("-")
        assert "-" in runs
        assert not pair.left.session.poll.active
        assert not pair.left.changes

    def test_a_poll_is_answered_at_once_without_p(self) -> None:
        pair = established(FAST, Settings(desired_min_tx=SECOND, required_min_rx=50 * MS))
        pair.configure(pair.left, Settings(40 * MS, 60 * MS))
        asked = pair.now
        pair.run(SECOND)
        finals = [(time, packet) for time, packet in pair.right.sent if packet.final]
        assert finals[0][0] - asked <= 52 * MS
        assert not any(packet.poll for _, packet in finals)

    def test_without_a_receive_interval_nothing_periodic_is_sent(self) -> None:
        silent = Settings(desired_min_tx=50 * MS, required_min_rx=0)
        pair = Pair(FAST, silent)
        pair.run(5 * SECOND)
        pair.left.sent.clear()
        pair.run(5 * SECOND)
        assert not [packet for _, packet in pair.left.sent if not packet.final]

    def test_a_pause_sends_no_burst(self) -> None:
        pair = established()
        pair.now += 10 * SECOND
        pair.left.engine.due(pair.now)
        # The change to Down and one periodic packet.
        assert len(pair.left.engine.sent) <= 3
        pair.left.engine.sent.clear()
        pair.left.engine.due(pair.now + 1)
        assert not pair.left.engine.sent


class TestAuthentication:
    @pytest.mark.parametrize("meticulous", [False, True])
    def test_equal_keys_establish_and_stay(self, *, meticulous: bool) -> None:
        key = Key(7, b"secret", meticulous)
        settings = Settings(50 * MS, 50 * MS, key=key)
        pair = established(settings, settings)
        pair.run(20 * SECOND)
        assert not pair.left.changes

    def test_sequence_numbers_pass_their_end(self) -> None:
        settings = Settings(50 * MS, 50 * MS, key=Key(7, b"secret"))
        pair = established(settings, settings)
        for end in pair.ends:
            end.session.transmit_sequence = (1 << 32) - 5
        for end in pair.ends:
            end.session.received_sequence.number = (1 << 32) - 6
        pair.run(5 * SECOND)
        assert not pair.left.changes

    @pytest.mark.parametrize(
        "other",
        [None, Key(7, b"Secret"), Key(8, b"secret"), Key(7, b"secret", meticulous=False)],
        ids=["none", "secret", "id", "type"],
    )
    def test_other_keys_do_not(self, other: Key | None) -> None:
        left = Settings(50 * MS, 50 * MS, key=Key(7, b"secret"))
        pair = Pair(left, Settings(50 * MS, 50 * MS, key=other))
        pair.run(10 * SECOND)
        assert not pair.left.changes
        assert not pair.right.changes

    def test_packets_missed_within_the_detection_time_end_no_session(self) -> None:
        """The neighbor's multiplier, not our own, decides how many of its packets may be missing."""
        key = Key(7, b"secret")
        pair = established(
            Settings(50 * MS, 50 * MS, 3, key=key), Settings(50 * MS, 50 * MS, 20, key=key)
        )
        receive = pair.left.engine.receive
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pair.left.engine, "receive", lambda *_: None)
            pair.run(900 * MS)
        assert pair.left.engine.receive == receive
        pair.run(5 * SECOND)
        assert pair.left.session.detection_time == 1000 * MS
        assert not pair.left.changes
        assert not pair.left.engine.discarded


class TestLongestGap:
    def test_it_is_of_the_detection_time_in_use(self) -> None:
        slow, fast = Settings(1000 * MS, 1000 * MS), Settings(50 * MS, 50 * MS)
        pair = established(slow, slow)
        pair.run(20 * SECOND)
        assert pair.left.session.longest_gap(pair.now) > 700 * MS
        for end in pair.ends:
            pair.configure(end, fast)
        pair.run(10 * SECOND)
        for end in pair.ends:
            assert 0 < end.session.longest_gap(pair.now) <= 51 * MS

    def test_a_late_packet_is_forgotten_after_minutes(self) -> None:
        patient = Settings(200 * MS, 200 * MS, 10)
        pair = established(patient, patient)
        pair.run(10 * SECOND)
        pair.line = lost
        pair.run(500 * MS)
        pair.line = good
        pair.run(SECOND)
        assert pair.left.session.longest_gap(pair.now) > 500 * MS
        pair.run(2 * WINDOW)
        assert pair.left.session.longest_gap(pair.now) <= 201 * MS


FAST_RETURNING = replace(FAST, required_min_echo_rx=10 * MS)


class TestEcho:
    def settings(self, interval: int = 20 * MS) -> Settings:
        return Settings(50 * MS, 50 * MS, echo_interval=interval, required_min_echo_rx=10 * MS)

    def run(self, pair: Pair, microseconds: int, *, returned: bool) -> int:
        count = 0
        until = pair.now + microseconds
        while pair.now < until:
            pair.run(MS)
            for end in pair.ends:
                echoes = list(end.engine.echoes)
                end.engine.echoes.clear()
                count += len(echoes)
                if returned:
                    for echo in echoes:
                        end.engine.echo_received(echo.payload, pair.now)
        return count

    def pair(self, right: Settings | None = None) -> Pair:
        pair = Pair(self.settings(), right or self.settings())
        for end in pair.ends:
            end.engine.set_echo_possible(end.key, 0, possible=True)
        return pair

    def test_echo_packets_are_sent_while_up_and_control_packets_become_slow(self) -> None:
        pair = self.pair()
        self.run(pair, 6 * SECOND, returned=True)
        assert pair.up()
        assert self.run(pair, SECOND, returned=True) >= 90
        assert pair.left.sent[-1][1].required_min_rx == SECOND
        assert len([c for c in pair.left.changes if c.after is State.DOWN]) == 0
        session = pair.left.session
        assert session.echoes_received == session.echoes_sent > 200

    def test_echo_packets_that_do_not_return_take_the_session_down(self) -> None:
        pair = self.pair()
        self.run(pair, 6 * SECOND, returned=True)
        began = pair.now
        pair.left.changes.clear()
        self.run(pair, 200 * MS, returned=False)
        change = pair.left.changes[0]
        assert change.diagnostic in {
            Diagnostic.ECHO_FUNCTION_FAILED,
            Diagnostic.NEIGHBOR_SIGNALED_SESSION_DOWN,
        }
        assert 40 * MS <= change.time - began <= 80 * MS

    def test_two_lost_of_three_end_nothing(self) -> None:
        pair = self.pair(FAST_RETURNING)
        self.run(pair, 6 * SECOND, returned=True)
        engine, count = pair.left.engine, 0
        for _ in range(1000):
            pair.run(MS)
            for echo in engine.echoes:
                count += 1
                if count % 3 == 0:
                    engine.echo_received(echo.payload, pair.now)
            engine.echoes.clear()
        assert count > 40
        assert pair.up()
        assert pair.left.session.ups == 1

    def test_a_neighbor_that_wants_no_echo_is_sent_none(self) -> None:
        pair = self.pair(FAST)
        assert not self.run(pair, 6 * SECOND, returned=False)
        assert pair.up()

    def test_a_neighbor_that_never_returns_one_keeps_its_session(self) -> None:
        """Its packets promise what its forwarding does not do: a session would flap for ever."""
        pair = self.pair(FAST_RETURNING)
        self.run(pair, 6 * SECOND, returned=False)
        session = pair.left.session
        assert pair.up()
        assert (session.ups, session.echo_unanswered) == (1, True)
        assert session.echoes_sent < 6
        assert pair.left.sent[-1][1].required_min_rx == 50 * MS

    def test_without_a_way_to_send_them_control_packets_stay_quick(self) -> None:
        pair = self.pair(FAST_RETURNING)
        self.run(pair, 6 * SECOND, returned=True)
        engine = pair.left.engine
        engine.set_echo_possible(pair.left.key, pair.now, possible=False)
        self.run(pair, 100 * MS, returned=True)
        assert not self.run(pair, 6 * SECOND, returned=False)
        assert pair.up()
        assert pair.left.session.ups == 1
        assert pair.left.sent[-1][1].required_min_rx == 50 * MS

    def test_control_packets_that_become_slow_are_awaited_for_longer_at_once(self) -> None:
        """The neighbor is slow from the first packet that has the longer interval."""
        pair = Pair(replace(FAST, echo_interval=20 * MS), FAST_RETURNING)
        pair.run(6 * SECOND)
        pair.left.engine.set_echo_possible(pair.left.key, pair.now, possible=True)
        session = pair.left.session
        pair.run(MS)
        plain = encode(pair.right.sent[-1][1]._replace(poll=False, final=False))
        for _ in range(2):
            pair.left.engine.receive(
                plain, Origin(RIGHT, LEFT, "", multihop=False, ttl=255), pair.now
            )
            assert session.detection_deadline - pair.now == 3 * SECOND

    def test_another_process_awaits_control_packets_that_are_slow(self) -> None:
        """The neighbor sends them once a second, as the echo packets before let it."""
        pair = self.pair(FAST_RETURNING)
        self.run(pair, 6 * SECOND, returned=True)
        saved = pair.left.engine.saved()
        pair.left.engine = new_engine(5)
        pair.left.engine.restore([(one, self.settings()) for one in saved], pair.now)
        assert pair.left.session.detection_deadline - pair.now == 3 * SECOND
        self.run(pair, 6 * SECOND, returned=True)
        assert pair.up()
        assert pair.left.session.ups == 0
        assert pair.left.session.detection_time == 150 * MS, "no neighbor of echo packets is known"

    def test_a_pause_of_the_process_is_no_loss(self) -> None:
        """No echo packet was sent meanwhile; the control packets wait in the socket."""
        pair = self.pair(FAST_RETURNING)
        self.run(pair, 6 * SECOND, returned=True)
        engine = pair.left.engine
        pair.now += 100 * MS
        engine.due(pair.now)
        self.run(pair, SECOND, returned=True)
        assert pair.left.session.ups == 1
        assert pair.up()

    def test_packets_of_strangers_and_of_former_times_do_not_count(self) -> None:
        pair = self.pair(FAST_RETURNING)
        self.run(pair, 6 * SECOND, returned=True)
        engine = pair.left.engine
        pair.run(20 * MS)
        (former, *_) = [echo.payload for echo in engine.echoes]
        engine.echo_received(former, pair.now)
        before = pair.left.session.echoes_received
        guessed = former[:4] + bytes(8) + former[12:]
        for payload in (former, guessed, former[:4], b"", former + b"\0", bytes(16)):
            engine.echo_received(payload, pair.now)
        assert pair.left.session.echoes_received == before


class TestAnotherProcess:
    @pytest.mark.parametrize("key", [None, Key(3, b"secret")], ids=["plain", "sha1"])
    def test_a_session_continues_in_another_process(self, key: Key | None) -> None:
        settings = Settings(50 * MS, 50 * MS, key=key)
        pair = established(settings, settings)
        saved = pair.left.engine.saved()
        pair.run(60 * MS)
        pair.left.engine = new_engine(5)
        pair.left.engine.restore([(one, settings) for one in saved], pair.now)
        pair.run(10 * SECOND)
        assert pair.up()
        assert not pair.right.changes
        assert not pair.left.changes

    def test_a_session_that_was_admin_down_as_the_process_ended_comes_up(self) -> None:
        """The process ended before the neighbor had the time to notice."""
        pair = established()
        pair.left.engine.remove_session(pair.left.key, pair.now)
        saved = pair.left.session.saved()
        assert saved.state is State.ADMIN_DOWN
        pair.left.engine = new_engine(5)
        pair.left.engine.restore([(saved, FAST)], pair.now)
        pair.run(10 * SECOND)
        assert pair.up()

    def test_a_neighbor_that_is_gone_meanwhile_is_lost(self) -> None:
        pair = established()
        saved = pair.left.engine.saved()
        pair.line = lost
        pair.run(SECOND)
        pair.left.changes.clear()
        pair.left.engine.sessions.clear()
        pair.left.engine = new_engine(5)
        pair.left.engine.restore([(one, FAST) for one in saved], pair.now)
        pair.run(SECOND)
        assert [change.after for change in pair.left.changes] == [State.DOWN]
