"""RFC 5880, rule by rule: a test of each MUST that is not of demand mode, MD5 or simple passwords.

Names have the section. Layouts and the random line between two ends have files of their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import pairwise
from random import Random

import pytest
from msgspec.structs import replace

from speaker.bfd.authentication import sign
from speaker.bfd.engine import Engine, Origin
from speaker.bfd.packet import SHA1_SECTION, Packet, decode, encode
from speaker.bfd.session import Session
from speaker.bfd.session_values import Diagnostic, Discard, Key, Settings, State
from tests.speaker.bfd.build import (
    LEFT,
    MS,
    RIGHT,
    SECOND,
    Delivery,
    End,
    Pair,
    key_of,
    lost,
    new_engine,
)
from tests.speaker.bfd.test_packet import PACKET

FAST = Settings(desired_min_tx=50 * MS, required_min_rx=50 * MS)
PATIENT = replace(FAST, detect_multiplier=100)
ECHOES = replace(FAST, echo_interval=20 * MS, required_min_echo_rx=10 * MS)
KEY = Key(7, b"secret")
ORIGIN = Origin(RIGHT, LEFT, "", multihop=False, ttl=255)
FIRST = PACKET._replace(state=State.DOWN, your_discriminator=0)
"""The first packet of a neighbor."""


class Alone:
    """One end, whose neighbor is the test."""

    def __init__(self, settings: Settings = FAST) -> None:
        self.now = 0
        self.engine = new_engine()
        self.key = key_of(LEFT, RIGHT)
        self.engine.set_session(self.key, settings, 0)

    @property
    def session(self) -> Session:
        return self.engine.sessions[self.key]

    def receive(self, packet: Packet, key: Key | None = None, sequence: int = 0) -> list[Packet]:
        """Return what is sent at once."""
        octets = encode(packet._replace(authenticated=key is not None))
        self.engine.sent.clear()
        self.engine.receive(
            octets if key is None else sign(octets, key, sequence), ORIGIN, self.now
        )
        return self.sent()

    def to_us(self, **fields: object) -> Packet:
        """Return a packet of the neighbor that knows our discriminator."""
        mine = PACKET._replace(your_discriminator=self.session.local_discriminator)
        return mine._replace(**fields)  # type: ignore[arg-type]

    def sent(self) -> list[Packet]:
        packets = [decode(sent.octets) for sent in self.engine.sent]
        self.engine.sent.clear()
        assert all(isinstance(packet, Packet) for packet in packets)
        return [packet for packet in packets if isinstance(packet, Packet)]

    def until(self, time: int) -> Iterator[tuple[int, Packet]]:
        """Let time pass; yields what is sent."""
        while (due := self.engine.next_deadline()) is not None and due <= time:
            self.now = max(self.now, due)
            self.engine.due(self.now)
            for packet in self.sent():
                yield self.now, packet
        self.now = time

    def come_up(self, **fields: object) -> None:
        self.receive(FIRST)
        self.receive(self.to_us(**fields))
        assert self.session.state is State.UP

    def settle(self, **fields: object) -> None:
        """Come Up with a neighbor that is lost late, and end the first Poll Sequence."""
        fields.setdefault("detect_multiplier", 200)
        self.come_up(**fields)
        list(self.until(self.now + 50 * MS))
        self.receive(self.to_us(final=True, **fields))
        assert not self.session.poll.active


def established(left: Settings = FAST, right: Settings = FAST) -> Pair:
    pair = Pair(left, right)
    pair.run(5 * SECOND)
    assert pair.up()
    for end in pair.ends:
        end.sent.clear()
        end.changes.clear()
    return pair


def gaps(end: End) -> list[int]:
    times = [time for time, packet in end.sent if not packet.final]
    return [after - before for before, after in pairwise(times)]


def test_rfc5880_4_1_the_multipoint_bit_is_zero_and_its_packets_are_discarded() -> None:
    alone = Alone()
    octets = bytearray(encode(FIRST))
    octets[1] |= 0x01
    alone.engine.receive(bytes(octets), ORIGIN, 0)
    assert alone.engine.discarded == {Discard.MULTIPOINT: 1}
    alone.engine.due(0)
    (sent,) = alone.engine.sent
    assert not sent.octets[1] & 0x01


def test_rfc5880_4_4_the_reserved_octet_is_zero_and_ignored() -> None:
    alone = Alone(replace(FAST, key=KEY))
    alone.engine.due(0)
    (sent,) = alone.engine.sent
    assert sent.octets[27] == 0
    # The digest covers it: a neighbor that sets it signs it, too.
    whole = encode(FIRST._replace(authenticated=True))
    whole += SHA1_SECTION.pack(5, 28, KEY.key_id, 0xFF, 1, KEY.secret.ljust(20, b"\0"))
    digest = hashlib.sha1(whole, usedforsecurity=False).digest()
    alone.engine.receive(whole[:-20] + digest, ORIGIN, 0)
    assert alone.session.state is State.INIT


def test_rfc5880_6_1_an_active_end_sends_whether_it_has_received_or_not() -> None:
    assert [packet.state for _, packet in Alone().until(3 * SECOND)] == [State.DOWN] * 4


def test_rfc5880_6_1_a_passive_end_sends_nothing_before_it_has_received() -> None:
    alone = Alone(replace(FAST, passive=True))
    assert not list(alone.until(10 * SECOND))
    assert alone.receive(FIRST)


def test_rfc5880_6_2_a_session_that_is_admin_down_takes_no_packet_and_sends_its_state() -> None:
    alone = Alone(replace(FAST, admin_down=True))
    assert not alone.receive(FIRST)
    assert alone.session.state is State.ADMIN_DOWN
    assert {packet.state for _, packet in alone.until(SECOND)} == {State.ADMIN_DOWN}


@pytest.mark.parametrize(
    ("ours", "theirs", "after"),
    [
        ("down", State.ADMIN_DOWN, State.DOWN),
        ("down", State.DOWN, State.INIT),
        ("down", State.INIT, State.UP),
        ("down", State.UP, State.DOWN),
        ("init", State.ADMIN_DOWN, State.DOWN),
        ("init", State.DOWN, State.INIT),
        ("init", State.INIT, State.UP),
        ("init", State.UP, State.UP),
        ("up", State.ADMIN_DOWN, State.DOWN),
        ("up", State.DOWN, State.DOWN),
        ("up", State.INIT, State.UP),
        ("up", State.UP, State.UP),
    ],
)
def test_rfc5880_6_2_each_arrow_of_the_state_machine(
    ours: str, theirs: State, after: State
) -> None:
    alone = Alone()
    if ours == "init":
        alone.receive(FIRST)
    elif ours == "up":
        alone.come_up()
    alone.receive(alone.to_us(state=theirs))
    assert alone.session.state is after
    signaled = theirs is State.ADMIN_DOWN or ours == "up"
    if after is State.DOWN and ours != "down" and signaled:
        assert alone.session.diagnostic is Diagnostic.NEIGHBOR_SIGNALED_SESSION_DOWN


def test_rfc5880_6_3_the_received_discriminator_is_returned() -> None:
    alone = Alone()
    (answer,) = alone.receive(FIRST._replace(my_discriminator=4711))
    assert answer.your_discriminator == 4711


def test_rfc5880_6_5_no_packet_has_both_p_and_f() -> None:
    pair = established()
    for settings in (replace(FAST, desired_min_tx=80 * MS), replace(FAST, required_min_rx=90 * MS)):
        pair.configure(pair.left, settings)
        pair.configure(pair.right, settings)
        pair.run(SECOND)
    packets = [packet for end in pair.ends for _, packet in end.sent]
    assert any(packet.poll for packet in packets)
    assert any(packet.final for packet in packets)
    assert not any(packet.poll and packet.final for packet in packets)


def test_rfc5880_6_5_each_packet_of_a_poll_sequence_has_p_until_f_is_received() -> None:
    pair = established(PATIENT, PATIENT)
    pair.line = lost
    pair.configure(pair.left, replace(PATIENT, desired_min_tx=60 * MS))
    pair.run(SECOND // 2)
    polls = [packet.poll for _, packet in pair.left.sent]
    assert polls[1:] == [True] * (len(polls) - 1)
    pair.line = lambda _: Delivery((MS,))
    pair.run(SECOND)
    assert not pair.left.session.poll.active
    assert not pair.left.sent[-1][1].poll


def test_rfc5880_6_7_1_both_types_of_sha1_are_supported() -> None:
    for meticulous in (False, True):
        settings = replace(FAST, key=Key(7, b"secret", meticulous))
        assert established(settings, settings).up()


@pytest.mark.parametrize(
    ("octet", "value"),
    [(24, 1), (24, 2), (24, 4), (26, 8), (25, 27), (25, 29), (51, 0)],
    ids=["password", "md5", "keyed", "key-id", "short", "long", "digest"],
)
def test_rfc5880_6_7_4_another_type_key_length_or_digest_is_discarded(
    octet: int, value: int
) -> None:
    alone = Alone(replace(FAST, key=KEY))
    octets = bytearray(sign(encode(FIRST._replace(authenticated=True)), KEY, 1))
    octets[octet] = value if octet < 51 else octets[octet] ^ 1
    alone.engine.receive(bytes(octets), ORIGIN, 0)
    assert alone.engine.discarded == {Discard.AUTHENTICATION_FAILED: 1}
    assert alone.session.state is State.DOWN


@pytest.mark.parametrize("meticulous", [False, True])
def test_rfc5880_6_7_4_a_sequence_number_out_of_range_is_discarded(*, meticulous: bool) -> None:
    key = Key(7, b"secret", meticulous)
    alone = Alone(replace(FAST, key=key))
    alone.receive(FIRST, key, 100)
    for sequence in (99, 110, *([100] if meticulous else [])):
        alone.receive(alone.to_us(), key, sequence)
    assert alone.session.state is State.INIT
    alone.receive(alone.to_us(), key, 109)
    assert alone.session.ups == 1


def test_rfc5880_6_7_4_each_meticulous_packet_has_the_next_sequence_number() -> None:
    alone = Alone(replace(FAST, key=KEY))
    alone.session.transmit_sequence = (1 << 32) - 2
    numbers = [int.from_bytes(packet.octets[28:32]) for _, packet in alone.until(3 * SECOND)]
    assert numbers == [(1 << 32) - 2, (1 << 32) - 1, 0, 1]


def test_rfc5880_6_8_1_variables_begin_as_the_rfc_demands() -> None:
    session = Alone(replace(FAST, key=KEY)).session
    assert session.local_discriminator
    assert (session.state, session.neighbor.state) == (State.DOWN, State.DOWN)
    assert (session.neighbor.discriminator, session.diagnostic) == (0, Diagnostic.NONE)
    assert (session.neighbor.min_rx, session.neighbor.demand) == (1, False)
    assert session.received_sequence.number is None
    assert session._desired_tx() >= SECOND


def test_rfc5880_6_8_1_the_first_sequence_number_is_random() -> None:
    def first(seed: int) -> int:
        engine = Engine(Random(seed).random)  # noqa: S311  no secret is made of it
        engine.set_session(key_of(LEFT, RIGHT), replace(FAST, key=KEY), 0)
        (session,) = engine.sessions.values()
        return session.transmit_sequence

    assert len({first(seed) for seed in range(9)}) == 9


def test_rfc5880_6_8_1_the_neighbors_discriminator_is_forgotten_after_the_detection_time() -> None:
    alone = Alone()
    alone.come_up()
    list(alone.until(alone.now + SECOND))
    assert alone.session.neighbor.discriminator == 0


@pytest.mark.parametrize("required", [50 * MS, 0], ids=["watched", "not-watched"])
def test_rfc5880_6_8_1_any_sequence_number_is_taken_after_twice_the_detection_time(
    required: int,
) -> None:
    """Also where the neighbor shall send nothing periodic, and is never lost."""
    alone = Alone(replace(FAST, key=KEY, required_min_rx=required))
    alone.receive(FIRST, KEY, 100)
    alone.receive(alone.to_us(), KEY, 101)
    assert alone.session.state is State.UP
    list(alone.until(alone.now + 299 * MS))
    alone.receive(FIRST, KEY, 7)
    assert alone.engine.discarded == {Discard.AUTHENTICATION_FAILED: 1}
    list(alone.until(alone.now + 2 * MS))
    alone.receive(FIRST, KEY, 7)
    assert alone.engine.discarded.total() == 1
    assert alone.session.neighbor.state is State.DOWN


def test_rfc5880_6_8_2_no_packet_is_sent_sooner_than_the_longer_interval_less_jitter() -> None:
    pair = established(FAST, replace(FAST, required_min_rx=200 * MS))
    pair.run(20 * SECOND)
    assert 150 * MS <= min(gaps(pair.left)) <= max(gaps(pair.left)) <= 200 * MS


@pytest.mark.parametrize("change", [{"desired_min_tx": 80 * MS}, {"required_min_rx": 40 * MS}])
def test_rfc5880_6_8_3_a_changed_interval_begins_a_poll_sequence(change: dict[str, int]) -> None:
    alone = Alone()
    alone.come_up()
    alone.receive(alone.to_us(final=True))
    alone.engine.set_session(alone.key, replace(FAST, **change), alone.now)
    (_, packet), *_ = alone.until(alone.now + 50 * MS)
    assert packet.poll


def test_rfc5880_6_8_3_a_longer_transmit_interval_waits_for_the_end_of_the_poll_sequence() -> None:
    pair = established(PATIENT, PATIENT)
    pair.line = lost
    pair.configure(pair.left, replace(PATIENT, desired_min_tx=SECOND))
    pair.run(SECOND // 2)
    assert max(gaps(pair.left)) <= 50 * MS


def test_rfc5880_6_8_3_a_shorter_receive_interval_waits_for_the_end_of_the_poll_sequence() -> None:
    pair = established(replace(FAST, required_min_rx=300 * MS))
    pair.configure(pair.left, FAST)
    assert pair.left.session.detection_time == 900 * MS
    pair.run(2 * SECOND)
    assert pair.left.session.detection_time == 150 * MS


@pytest.mark.parametrize("state", [State.DOWN, State.INIT])
def test_rfc5880_6_8_3_an_interval_of_a_second_until_the_session_is_up(state: State) -> None:
    alone = Alone()
    if state is State.INIT:
        alone.receive(FIRST._replace(detect_multiplier=100))
    packets = list(alone.until(alone.now + 4 * SECOND))
    assert {packet.desired_min_tx for _, packet in packets} == {SECOND}
    assert min(after - before for (before, _), (after, _) in pairwise(packets)) >= 750 * MS


def test_rfc5880_6_8_3_a_shorter_interval_of_the_neighbor_is_in_use_at_once() -> None:
    pair = established(FAST, replace(FAST, required_min_rx=10 * SECOND))
    pair.configure(pair.right, FAST)
    asked = pair.now
    pair.left.sent.clear()
    pair.run(2 * SECOND)
    periodic = [time for time, packet in pair.left.sent if not packet.final]
    # The neighbor's next packet has it, and the last one was sent longer ago than that.
    assert periodic[0] - asked <= 50 * MS + MS


@pytest.mark.parametrize(
    ("settings", "fields", "interval", "detection"),
    [
        ({"desired_min_tx": 40 * MS}, {}, 40, 150),
        ({"required_min_rx": 80 * MS}, {}, 50, 240),
        ({}, {"required_min_rx": 90 * MS}, 90, 150),
        ({}, {"desired_min_tx": 70 * MS}, 50, 210),
        ({}, {"detect_multiplier": 5}, 50, 250),
    ],
    ids=["shorter-tx", "longer-rx", "their-rx", "their-tx", "their-multiplier"],
)
def test_rfc5880_6_8_3_any_other_change_is_in_use_at_once(
    settings: dict[str, int], fields: dict[str, int], interval: int, detection: int
) -> None:
    alone = Alone()
    before = {"required_min_rx": 10 * MS, "detect_multiplier": 3}
    alone.settle(**before)
    session = alone.session
    assert (session.transmit_interval, session.detection_time) == (50 * MS, 150 * MS)
    if settings:
        alone.engine.set_session(alone.key, replace(FAST, **settings), alone.now)
    else:
        alone.receive(alone.to_us(**before | fields))
    assert (session.transmit_interval, session.detection_time) == (interval * MS, detection * MS)
    assert session.detection_deadline == alone.now + detection * MS


def test_rfc5880_6_8_3_a_packet_without_f_parts_two_poll_sequences() -> None:
    """A Final that comes late may answer a packet of the first one."""
    alone = Alone()
    alone.settle()
    for interval in (80 * MS, 90 * MS):
        alone.engine.set_session(alone.key, replace(FAST, desired_min_tx=interval), alone.now)
        assert [packet.poll for _, packet in alone.until(alone.now + 50 * MS)] == [True]
    for _ in range(3):
        alone.receive(alone.to_us(final=True, detect_multiplier=200))
        polls = [packet.poll for _, packet in alone.until(alone.now + 200 * MS)]
        assert polls
        assert not any(polls)
    alone.receive(alone.to_us(detect_multiplier=200))
    assert {packet.poll for _, packet in alone.until(alone.now + 200 * MS)} == {True}
    assert alone.session.transmit_interval == 50 * MS
    alone.receive(alone.to_us(final=True, detect_multiplier=200))
    assert alone.session.transmit_interval == 90 * MS


def test_rfc5880_6_8_3_a_change_during_a_pause_of_two_poll_sequences_is_in_the_second() -> None:
    alone = Alone()
    alone.settle()
    for interval in (80 * MS, 90 * MS):
        alone.engine.set_session(alone.key, replace(FAST, desired_min_tx=interval), alone.now)
        list(alone.until(alone.now + 50 * MS))
    alone.receive(alone.to_us(final=True, detect_multiplier=200))
    alone.engine.set_session(alone.key, replace(FAST, desired_min_tx=100 * MS), alone.now)
    assert {packet.poll for _, packet in alone.until(alone.now + 200 * MS)} == {False}


def test_rfc5880_6_8_3_two_poll_sequences_need_no_packet_of_a_neighbor_that_shall_send_none() -> (
    None
):
    alone = Alone(replace(FAST, required_min_rx=0))
    alone.settle()
    for interval in (80 * MS, 90 * MS):
        settings = replace(FAST, required_min_rx=0, desired_min_tx=interval)
        alone.engine.set_session(alone.key, settings, alone.now)
        list(alone.until(alone.now + 50 * MS))
    alone.receive(alone.to_us(final=True, detect_multiplier=200))
    polls = [packet.poll for _, packet in alone.until(alone.now + 200 * MS)]
    assert polls == [False] + [True] * (len(polls) - 1)
    assert len(polls) > 1


def test_rfc5880_6_8_3_an_interval_that_has_passed_already_is_followed_by_a_packet_at_once() -> (
    None
):
    alone = Alone()
    alone.settle(required_min_rx=10 * SECOND)
    for since, expected in ((2 * SECOND, 1), (20 * MS, 0)):
        alone.receive(alone.to_us(required_min_rx=10 * SECOND, detect_multiplier=200))
        list(alone.until(alone.now + since))
        alone.receive(alone.to_us(detect_multiplier=200))
        assert len(list(alone.until(alone.now))) == expected, "after the last packet"
    assert len(list(alone.until(alone.now + 30 * MS))) == 1


@pytest.mark.parametrize("state", [State.INIT, State.UP])
def test_rfc5880_6_8_4_without_a_packet_in_the_detection_time_the_session_is_down(
    state: State,
) -> None:
    alone = Alone()
    alone.receive(FIRST)
    if state is State.UP:
        alone.receive(alone.to_us())
    time = alone.session.detection_time
    assert time == (3 * 50 * MS)
    list(alone.until(alone.now + time - 1))
    assert alone.session.state is state
    list(alone.until(alone.now + 1))
    assert alone.session.state is State.DOWN
    assert alone.session.diagnostic is Diagnostic.CONTROL_DETECTION_TIME_EXPIRED


def test_rfc5880_6_8_5_without_echo_packets_the_session_is_down() -> None:
    alone = Alone(ECHOES)
    alone.engine.set_echo_possible(alone.key, 0, possible=True)
    alone.come_up(required_min_echo_rx=10 * MS, detect_multiplier=200)
    list(alone.until(alone.now))
    (echo,) = alone.engine.echoes
    alone.engine.echo_received(echo.payload, alone.now)
    list(alone.until(alone.now + SECOND))
    assert alone.session.state is State.DOWN
    assert alone.session.diagnostic is Diagnostic.ECHO_FUNCTION_FAILED


def test_rfc5880_6_8_6_no_echo_required_ends_the_sending_of_echo_packets() -> None:
    alone = Alone(ECHOES)
    alone.engine.set_echo_possible(alone.key, 0, possible=True)
    alone.come_up(required_min_echo_rx=10 * MS, detect_multiplier=200)
    alone.receive(alone.to_us(required_min_echo_rx=0, detect_multiplier=200))
    alone.engine.echoes.clear()
    list(alone.until(alone.now + SECOND))
    assert not alone.engine.echoes


def test_rfc5880_6_8_6_a_final_ends_the_poll_sequence() -> None:
    alone = Alone()
    alone.come_up()
    assert alone.session.poll.active
    list(alone.until(alone.now + 50 * MS))
    alone.receive(alone.to_us(final=True))
    assert not alone.session.poll.active


def test_rfc5880_6_8_6_a_discarded_packet_does_not_move_the_detection_time() -> None:
    alone = Alone()
    alone.come_up()
    deadline = alone.session.detection_deadline
    alone.now += 100 * MS
    for packet in (alone.to_us(detect_multiplier=0), alone.to_us(my_discriminator=0)):
        alone.receive(packet)
    assert alone.engine.discarded.total() == 2
    assert alone.session.detection_deadline == deadline


@pytest.mark.parametrize("state", [State.DOWN, State.INIT, State.UP])
def test_rfc5880_6_8_7_a_poll_is_answered_at_once_in_each_state(state: State) -> None:
    alone = Alone()
    if state is State.DOWN:
        poll = alone.to_us(state=State.UP, poll=True)
    else:
        alone.receive(FIRST)
        poll = alone.to_us(state=State.DOWN if state is State.INIT else State.UP, poll=True)
    answers = alone.receive(poll)
    assert alone.session.state is state
    assert [(answer.poll, answer.final) for answer in answers] == [(False, True)]


def test_rfc5880_6_8_7_intervals_have_jitter_of_up_to_a_quarter() -> None:
    pair = established()
    pair.run(20 * SECOND)
    found = gaps(pair.left)
    assert 37 * MS <= min(found) < 39 * MS
    assert 49 * MS < max(found) <= 50 * MS


def test_rfc5880_6_8_7_with_a_multiplier_of_one_jitter_is_a_tenth_at_least() -> None:
    one = replace(FAST, detect_multiplier=1)
    pair = established(one, one)
    pair.run(20 * SECOND)
    assert 37 * MS <= min(gaps(pair.left)) <= max(gaps(pair.left)) <= 45 * MS


def test_rfc5880_6_8_7_nothing_periodic_is_sent_to_a_neighbor_that_requires_none() -> None:
    alone = Alone()
    alone.come_up(required_min_rx=0, detect_multiplier=200)
    assert not list(alone.until(alone.now + SECOND))


def test_rfc5880_6_8_7_nothing_periodic_is_sent_to_a_neighbor_in_demand_mode() -> None:
    alone = Alone()
    alone.come_up(demand=True, detect_multiplier=200)
    assert any(packet.poll for _, packet in alone.until(alone.now + SECOND))
    alone.receive(alone.to_us(demand=True, final=True, detect_multiplier=200))
    assert not list(alone.until(alone.now + SECOND))
    assert alone.receive(alone.to_us(demand=True, poll=True, detect_multiplier=200))


def test_rfc5880_6_8_14_periodic_packets_begin_again_with_the_end_of_demand_mode() -> None:
    alone = Alone()
    alone.come_up(demand=True, detect_multiplier=200)
    alone.receive(alone.to_us(demand=True, final=True, detect_multiplier=200))
    assert not list(alone.until(alone.now + SECOND))
    alone.receive(alone.to_us(detect_multiplier=200))
    times = [time for time, _ in alone.until(alone.now + SECOND)]
    assert len(times) >= 20, "one in 50 ms"


def test_rfc5880_6_8_7_the_fields_of_a_packet_are_the_variables() -> None:
    alone = Alone(replace(FAST, detect_multiplier=5, required_min_echo_rx=70 * MS, key=KEY))
    alone.receive(FIRST._replace(my_discriminator=99), KEY, 1)
    alone.receive(alone.to_us(my_discriminator=99), KEY, 2)
    (_, packet), *_ = alone.until(alone.now + 50 * MS)
    assert packet._replace(octets=b"") == Packet(
        diagnostic=0,
        state=State.UP,
        poll=True,
        final=False,
        independent=True,
        demand=False,
        detect_multiplier=5,
        my_discriminator=alone.session.local_discriminator,
        your_discriminator=99,
        desired_min_tx=50 * MS,
        required_min_rx=50 * MS,
        required_min_echo_rx=70 * MS,
        authenticated=True,
        octets=b"",
    )
    assert len(packet.octets) == packet.octets[3] == 52


@pytest.mark.parametrize("state", [State.DOWN, State.INIT])
def test_rfc5880_6_8_9_no_echo_packet_is_sent_before_the_session_is_up(state: State) -> None:
    alone = Alone(ECHOES)
    alone.engine.set_echo_possible(alone.key, 0, possible=True)
    if state is State.INIT:
        alone.receive(FIRST._replace(required_min_echo_rx=10 * MS, detect_multiplier=200))
    list(alone.until(alone.now + SECOND))
    assert alone.session.state is state
    assert not alone.engine.echoes


def test_rfc5880_6_8_9_echo_packets_have_the_interval_that_the_neighbor_requires() -> None:
    alone = Alone(ECHOES)
    alone.engine.set_echo_possible(alone.key, 0, possible=True)
    alone.come_up(required_min_echo_rx=100 * MS, detect_multiplier=200)
    times = []
    until = alone.now + 5 * SECOND
    while alone.now < until:
        list(alone.until(alone.now + MS))
        for echo in alone.engine.echoes:
            times.append(alone.now)
            alone.engine.echo_received(echo.payload, alone.now)
        alone.engine.echoes.clear()
    assert min(after - before for before, after in pairwise(times)) >= 75 * MS


def test_rfc5880_6_8_16_admin_down_has_its_diagnostic_and_ends_echo_packets() -> None:
    alone = Alone(ECHOES)
    alone.engine.set_echo_possible(alone.key, 0, possible=True)
    alone.come_up(required_min_echo_rx=10 * MS, detect_multiplier=200)
    alone.engine.set_session(alone.key, replace(ECHOES, admin_down=True), alone.now)
    (packet,) = alone.sent()
    assert (packet.state, packet.diagnostic) == (State.ADMIN_DOWN, Diagnostic.ADMINISTRATIVELY_DOWN)
    alone.engine.echoes.clear()
    list(alone.until(alone.now + SECOND))
    assert not alone.engine.echoes


def test_rfc5880_6_8_16_admin_down_is_sent_for_the_detection_time_of_the_neighbor() -> None:
    pair = established()
    pair.left.engine.remove_session(pair.left.key, pair.now)
    pair.run(150 * MS)
    assert {packet.state for _, packet in pair.left.sent} == {State.ADMIN_DOWN}
    assert pair.right.state is State.DOWN


def test_rfc5880_6_3_the_first_packet_is_of_the_session_of_its_addresses() -> None:
    engine = new_engine()
    for peer in (RIGHT, "192.0.2.3"):
        engine.set_session(key_of(LEFT, peer), FAST, 0)
    engine.receive(encode(FIRST), ORIGIN, 0)
    states = {key.peer: session.state for key, session in engine.sessions.items()}
    assert states == {RIGHT: State.INIT, "192.0.2.3": State.DOWN}


def test_rfc5880_6_5_a_poll_sequence_takes_no_packets_of_its_own() -> None:
    """The P bit is set on the periodic packets."""
    pair = established(PATIENT, PATIENT)
    pair.line = lambda _: Delivery(())
    pair.configure(pair.left, replace(PATIENT, required_min_rx=60 * MS))
    pair.run(2 * SECOND)
    assert all(packet.poll for _, packet in pair.left.sent)
    assert min(gaps(pair.left)) >= 0.75 * 50 * MS


@pytest.mark.parametrize("state", [State.DOWN, State.INIT, State.UP])
def test_rfc5880_6_8_1_a_session_is_kept_for_the_detection_time_in_any_state(state: State) -> None:
    alone = Alone()
    alone.receive(FIRST)
    if state is State.UP:
        alone.receive(alone.to_us())
    elif state is State.DOWN:
        alone.receive(alone.to_us(state=State.ADMIN_DOWN))
    assert alone.session.state is state
    alone.engine.remove_session(alone.key, alone.now)
    sent = [packet for _, packet in alone.until(2 * SECOND)]
    assert {packet.state for packet in sent} == {State.ADMIN_DOWN}
    assert alone.key in alone.engine.sessions
    list(alone.until(4 * SECOND))
    assert not alone.engine.sessions


def test_rfc5880_6_8_1_a_session_without_a_neighbor_is_forgotten_at_once() -> None:
    alone = Alone()
    alone.engine.remove_session(alone.key, 0)
    assert not alone.engine.sessions


def test_rfc5880_6_8_8_an_echo_packet_is_of_the_session_that_sent_it() -> None:
    """And a packet with another discriminator or secret is of none."""
    alone = Alone(ECHOES)
    alone.engine.set_echo_possible(alone.key, 0, possible=True)
    alone.come_up(required_min_echo_rx=20 * MS)
    list(alone.until(30 * MS))
    (first, *_) = alone.engine.echoes
    for payload in (b"", bytes(16), first.payload[:4] + bytes(12)):
        alone.engine.echo_received(payload, alone.now)
    assert alone.session.echoes_received == 0
    alone.engine.echo_received(alone.engine.echoes[-1].payload, alone.now)
    assert alone.session.echoes_received == 1


def test_rfc5880_7_after_a_loss_a_packet_is_sent_once_a_second() -> None:
    """Whatever congests the path has less of it; BGP, whose session has ended, sends nothing."""
    alone = Alone()
    alone.come_up()
    list(alone.until(SECOND))
    assert alone.session.state is State.DOWN
    times = [time for time, _ in alone.until(20 * SECOND)]
    assert min(after - before for before, after in pairwise(times)) >= 0.75 * SECOND


def test_rfc5880_6_6_the_demand_bit_is_never_set() -> None:
    """Whatever the neighbor has: this end offers no demand mode."""
    alone = Alone()
    packets = alone.receive(FIRST._replace(demand=True))
    packets += alone.receive(alone.to_us(demand=True, poll=True, detect_multiplier=200))
    packets += [packet for _, packet in alone.until(SECOND)]
    assert alone.session.state is alone.session.neighbor.state is State.UP
    assert {packet.state for packet in packets} >= {State.INIT, State.UP}
    assert not any(packet.demand for packet in packets)


@pytest.mark.parametrize(
    "change", [{"detect_multiplier": 5}, {"required_min_echo_rx": MS}, {"independent": False}]
)
def test_rfc5880_6_6_a_neighbor_in_demand_mode_has_new_contents_by_a_poll_sequence(
    change: dict[str, int],
) -> None:
    alone = Alone()
    alone.settle(demand=True)
    assert not list(alone.until(alone.now + SECOND))
    alone.engine.set_session(alone.key, replace(FAST, **change), alone.now)
    packets = [packet for _, packet in alone.until(alone.now + SECOND)]
    assert len(packets) > 10, "until there is a Final"
    assert all(packet.poll for packet in packets)
    ((name, value),) = change.items()
    assert {getattr(packet, name) for packet in packets} == {value}
    alone.receive(alone.to_us(demand=True, final=True, detect_multiplier=200))
    assert not list(alone.until(alone.now + SECOND))


def test_rfc5880_6_6_a_neighbor_in_demand_mode_has_its_new_discriminator_by_a_poll_sequence() -> (
    None
):
    alone = Alone()
    alone.settle(demand=True)
    alone.receive(alone.to_us(demand=True, my_discriminator=4711, detect_multiplier=200))
    (_, packet), *_ = alone.until(alone.now + 50 * MS)
    assert (packet.poll, packet.your_discriminator) == (True, 4711)


def test_rfc5880_6_6_a_second_poll_sequence_with_a_neighbor_in_demand_mode_is_sent_as_well() -> (
    None
):
    alone = Alone()
    alone.settle(demand=True)
    for multiplier in (4, 5):
        settings = replace(FAST, detect_multiplier=multiplier)
        alone.engine.set_session(alone.key, settings, alone.now)
        list(alone.until(alone.now + 50 * MS))
    alone.receive(alone.to_us(demand=True, final=True, detect_multiplier=200))
    alone.receive(alone.to_us(demand=True, detect_multiplier=200))
    (_, packet), *_ = alone.until(alone.now + 50 * MS)
    assert (packet.poll, packet.detect_multiplier) == (True, 5)


def test_rfc5880_6_8_1_the_detect_multiplier_is_not_zero() -> None:
    with pytest.raises(ValueError, match="detect_multiplier: 0"):
        Settings(detect_multiplier=0)


@pytest.mark.parametrize("state", [State.ADMIN_DOWN, State.DOWN])
def test_rfc5880_6_8_1_a_session_that_is_down_forgets_the_discriminator_as_well(
    state: State,
) -> None:
    alone = Alone()
    alone.come_up()
    alone.receive(alone.to_us(state=state))
    changes = len(alone.engine.changes)
    list(alone.until(alone.now + 150 * MS - 1))
    assert alone.session.neighbor.discriminator == FIRST.my_discriminator
    list(alone.until(alone.now + 1))
    assert alone.session.neighbor.discriminator == 0
    assert (alone.session.state, len(alone.engine.changes)) == (State.DOWN, changes)
    assert alone.session.diagnostic is Diagnostic.NEIGHBOR_SIGNALED_SESSION_DOWN
    (_, packet), *_ = alone.until(alone.now + SECOND)
    assert packet.your_discriminator == 0
    assert alone.key in alone.engine.renewed, "for the next process"


def test_rfc5880_6_8_1_a_passive_neighbor_that_went_down_and_started_again_comes_up() -> None:
    """It knows no discriminator of its process before, and sends nothing of itself."""
    passive = replace(FAST, passive=True)
    pair = established(FAST, passive)
    pair.configure(pair.right, replace(passive, admin_down=True))
    pair.run(SECOND)
    assert pair.left.state is State.DOWN
    pair.restart(pair.right, passive)
    pair.run(20 * SECOND)
    assert pair.up()


def test_rfc5880_6_8_1_a_neighbor_that_goes_while_this_end_is_switched_off_is_forgotten() -> None:
    alone = Alone()
    alone.come_up()
    alone.engine.set_session(alone.key, replace(FAST, admin_down=True), alone.now)
    list(alone.until(alone.now + 10 * SECOND))
    alone.engine.set_session(alone.key, FAST, alone.now)
    list(alone.until(alone.now + 150 * MS))
    assert alone.session.neighbor.discriminator == 0


def test_rfc5880_6_8_1_a_session_is_kept_for_the_detection_time_of_a_patient_neighbor() -> None:
    alone = Alone()
    alone.come_up(detect_multiplier=200)
    alone.engine.remove_session(alone.key, alone.now)
    list(alone.until(alone.now + 200 * 50 * MS - 1))
    assert alone.session.state is State.ADMIN_DOWN
    list(alone.until(alone.now + 1))
    assert not alone.engine.sessions


def test_rfc5880_6_8_6_the_first_check_that_a_packet_does_not_pass_discards_it() -> None:
    alone = Alone(replace(FAST, key=KEY))
    octets = bytearray(encode(FIRST._replace(state=State.UP)))
    good = bytes(octets)
    octets[0], octets[1], octets[2], octets[3] = 0x40, octets[1] | 0x01, 0, 23
    octets[4:8] = bytes(4)
    found = []
    repairs = [slice(0, 1), slice(3, 4), slice(2, 3), slice(1, 2), slice(4, 8)]
    for repaired in [slice(0), *repairs]:
        octets[repaired] = good[repaired]
        alone.engine.receive(bytes(octets), ORIGIN, 0)
        found += [discard for discard in alone.engine.discarded if discard not in found]
    octets[1] = State.DOWN << 6
    alone.engine.receive(bytes(octets), ORIGIN, 0)
    assert list(alone.engine.discarded.values()) == [1] * 7
    assert list(alone.engine.discarded) == [
        Discard.VERSION,
        Discard.LENGTH,
        Discard.DETECT_MULT,
        Discard.MULTIPOINT,
        Discard.MY_DISCRIMINATOR,
        Discard.STATE,
        Discard.AUTHENTICATION_MISSING,
    ]


def test_rfc5880_6_8_6_your_discriminator_selects_among_the_sessions_of_a_neighbor() -> None:
    """A session that its addresses and device would not select."""
    engine = new_engine()
    anywhere, there = key_of(LEFT, RIGHT), key_of(LEFT, RIGHT, device="eth0")
    for key in (anywhere, there):
        engine.set_session(key, FAST, 0)
    origin = ORIGIN._replace(device="eth0")
    yours = engine.sessions[anywhere].local_discriminator
    engine.receive(encode(FIRST._replace(your_discriminator=yours)), origin, 0)
    states = {key: session.state for key, session in engine.sessions.items()}
    assert states == {anywhere: State.INIT, there: State.DOWN}
    engine.receive(encode(FIRST), origin, 0)
    assert engine.sessions[there].state is State.INIT


@pytest.mark.parametrize("state", [State.DOWN, State.INIT])
def test_rfc5880_6_8_6_a_neighbor_in_demand_mode_that_is_not_up_is_sent_periodic_packets(
    state: State,
) -> None:
    alone = Alone()
    fields = {"state": state, "demand": True, "detect_multiplier": 200}
    if state is State.INIT:
        alone.settle(**fields)
        least = 20
    else:
        alone.receive(FIRST._replace(demand=True, detect_multiplier=200))
        least = 1
    assert len(list(alone.until(alone.now + SECOND))) >= least


@pytest.mark.parametrize("signaled", [False, True])
def test_rfc5880_6_8_7_a_passive_end_is_silent_again_without_its_neighbor(
    *, signaled: bool
) -> None:
    alone = Alone(replace(FAST, passive=True))
    alone.come_up()
    if signaled:
        assert alone.receive(alone.to_us(state=State.DOWN))
    list(alone.until(alone.now + 150 * MS))
    assert not list(alone.until(alone.now + 10 * SECOND))


def test_rfc5880_6_8_16_an_end_that_is_switched_on_again_begins_with_down() -> None:
    alone = Alone(replace(FAST, admin_down=True))
    alone.engine.set_session(alone.key, FAST, 0)
    (packet, *_) = alone.sent()
    assert (packet.state, packet.diagnostic) == (State.DOWN, Diagnostic.NONE)
