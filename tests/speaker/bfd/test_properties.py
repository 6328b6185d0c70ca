"""Two engines and any line between them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from speaker.bfd import engine
from speaker.bfd.engine import Engine, Origin
from speaker.bfd.packet import encode
from speaker.bfd.session import Session
from speaker.bfd.session_values import Key, Settings, State
from tests.speaker.bfd.build import (
    LEFT,
    MS,
    RIGHT,
    SECOND,
    Delivery,
    Pair,
    good,
    key_of,
    new_engine,
    variables_of,
)
from tests.speaker.bfd.test_packet import PACKET
from tests.support.examples import examples

intervals = st.sampled_from([10 * MS, 50 * MS, 300 * MS, 1500 * MS])


@st.composite
def settings_of(draw: st.DrawFn) -> Settings:
    return Settings(
        desired_min_tx=draw(intervals),
        required_min_rx=draw(intervals),
        detect_multiplier=draw(st.integers(2, 5)),
    )


@st.composite
def pairs_of_settings(draw: st.DrawFn) -> tuple[Settings, Settings]:
    left, right = draw(settings_of()), draw(settings_of())
    key = draw(st.sampled_from([None, Key(1, b"k"), Key(1, b"k", meticulous=False)]))
    return replace(left, key=key), replace(right, key=key)


def bad_line(seed: int, loss: float, most: int) -> Callable[[int], Delivery]:
    random = Random(seed)  # noqa: S311  no secret is made of it

    def line(_: int) -> Delivery:
        if random.random() < loss:
            return Delivery(())
        copies = 2 if random.random() < 0.2 else 1
        return Delivery(tuple(random.randrange(MS, most) for _ in range(copies)))

    return line


@settings(max_examples=examples(25), deadline=None)
@given(
    pairs_of_settings(),
    st.integers(0, 1 << 30),
    st.floats(0, 0.9),
    st.sampled_from([2 * MS, 100 * MS, 900 * MS]),
)
def test_both_are_up_again_when_the_line_is_good(
    both: tuple[Settings, Settings], seed: int, loss: float, most: int
) -> None:
    pair = Pair(*both, seed=seed)
    pair.line = bad_line(seed, loss, most)
    pair.run(20 * SECOND)
    pair.line = good
    # Old packets, one detection time, the window of sequence numbers, and a slow handshake.
    pair.run(60 * SECOND)
    assert pair.up()
    for end in pair.ends:
        assert not end.session.poll.active
        end.changes.clear()
    pair.run(20 * SECOND)
    assert not pair.left.changes
    assert not pair.right.changes


@settings(max_examples=examples(25), deadline=None)
@given(
    pairs_of_settings(),
    st.integers(0, 1 << 30),
    st.floats(0, 0.9),
    st.sampled_from([2 * MS, 30 * MS, 100 * MS, 900 * MS]),
)
def test_no_end_is_up_for_longer_than_its_detection_time_while_the_other_is_not(
    both: tuple[Settings, Settings], seed: int, loss: float, delay: int
) -> None:
    pair = Pair(*both, seed=seed)
    pair.line = bad_line(seed, loss, delay)
    since: dict[str, int] = {}
    for _ in range(2000):
        pair.run(10 * MS)
        for end, other in ((pair.left, pair.right), (pair.right, pair.left)):
            if end.state is State.UP and other.state in {State.DOWN, State.ADMIN_DOWN}:
                began = since.setdefault(end.address, pair.now)
                most = end.session.detection_time + delay + 20 * MS
                assert pair.now - began <= most
            else:
                since.pop(end.address, None)


class Slow(Session):
    """A session that decodes and encodes every packet."""

    def transmit(self, now: int) -> bytes | None:
        self._renew()
        return super().transmit(now)

    def receive_unchanged(self, octets: bytes, now: int) -> bool:
        del octets, now
        return False


ACTIONS = ("settings", "echo", "remove", "restart", "wait")


@settings(max_examples=examples(40), deadline=None)
@given(
    pairs_of_settings(),
    st.integers(0, 1 << 30),
    st.sampled_from([0, 0.1, 0.5]),
    st.lists(
        st.tuples(
            st.sampled_from(ACTIONS),
            st.booleans(),
            settings_of(),
            st.sampled_from([10 * MS, 300 * MS, 2 * SECOND]),
        ),
        max_size=8,
    ),
)
def test_repeated_packets_take_effect_like_any_packet(
    both: tuple[Settings, Settings],
    seed: int,
    loss: float,
    actions: list[tuple[str, bool, Settings, int]],
) -> None:
    """Of the neighbor, and our own: what is kept of them is forgotten with each change."""
    seen = []
    for kind in (Session, Slow):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(engine, "Session", kind)
            pair = Pair(*both, seed=seed)
            pair.line = bad_line(seed, loss, 5 * MS)
            pair.run(5 * SECOND)
            for action, flag, other, wait in actions:
                end = pair.ends[flag]
                here = both[flag]
                match action:
                    case "settings":
                        echo = 20 * MS if other.detect_multiplier % 2 else 0
                        passive = other.detect_multiplier == 2
                        key = here.key if other.desired_min_tx < SECOND else Key(2, b"new")
                        with_echo = replace(other, echo_interval=echo, required_min_echo_rx=echo)
                        pair.configure(end, replace(with_echo, key=key, passive=passive))
                    case "echo":
                        possible = end.key in end.engine.sessions and not end.session.echo_possible
                        end.engine.set_echo_possible(end.key, pair.now, possible=possible)
                    case "remove":
                        end.engine.remove_session(end.key, pair.now)
                        pair.run(wait)
                        pair.configure(end, here)
                    case "restart":
                        saved = end.engine.saved()
                        end.engine = new_engine(seed + 7)
                        end.engine.restore([(one, here) for one in saved], pair.now)
                pair.run(wait)
            seen.append([(end.changes, end.sent, _kept(end.engine, pair.now)) for end in pair.ends])
    assert seen[0] == seen[1]


def _kept(of: Engine, now: int) -> list[tuple[int, ...]]:
    return [
        (s.detection_deadline, s.next_transmission, s.longest_gap(now))
        for s in of.sessions.values()
    ]


@settings(max_examples=examples(40), deadline=None)
@given(
    yours=st.integers(0, (1 << 32) - 1),
    mine=st.integers(1, (1 << 32) - 1),
    state=st.sampled_from(list(State)),
    poll=st.booleans(),
    final=st.booleans(),
    source=st.sampled_from(["192.0.2.77", RIGHT]),
    multihop=st.booleans(),
)
def test_no_packet_of_another_session_changes_a_state(
    *, yours: int, mine: int, state: State, poll: bool, final: bool, source: str, multihop: bool
) -> None:
    fast = Settings(50 * MS, 50 * MS)
    pair = Pair(fast, fast)
    pair.run(5 * SECOND)
    if source == RIGHT and not multihop and yours in {0, pair.left.session.local_discriminator}:
        return
    before = variables_of(pair.left.session)
    packet = PACKET._replace(
        your_discriminator=yours, my_discriminator=mine, state=state, poll=poll, final=final
    )
    origin = Origin(source, LEFT, "", multihop, 255)
    pair.left.engine.receive(encode(packet), origin, pair.now)
    assert variables_of(pair.left.session) == before
    assert not pair.left.engine.sent


NEIGHBOR = "192.0.2.3"
"""Another neighbor of the left end, with a session of its own."""


@settings(max_examples=examples(40), deadline=None)
@given(
    yours=st.sampled_from(["its own", "the first one's", "zero", "unknown"]),
    mine=st.sampled_from(["its own", "the first one's", "unknown"]),
    state=st.sampled_from(list(State)),
    poll=st.booleans(),
    final=st.booleans(),
)
def test_no_packet_of_a_configured_neighbor_changes_the_session_of_another(
    *, yours: str, mine: str, state: State, poll: bool, final: bool
) -> None:
    """Whose discriminators it sends: it is a neighbor, and no stranger."""
    fast = Settings(50 * MS, 50 * MS)
    pair = Pair(fast, fast)
    engine = pair.left.engine
    second = key_of(LEFT, NEIGHBOR)
    engine.set_session(second, fast, pair.now)
    pair.run(5 * SECOND)
    first, other = pair.left.session, engine.sessions[second]
    origin = Origin(NEIGHBOR, LEFT, "", multihop=False, ttl=255)
    unknown = first.local_discriminator ^ 1
    packet = PACKET._replace(your_discriminator=0, my_discriminator=77, state=State.DOWN)
    engine.receive(encode(packet), origin, pair.now)
    assert (first.state, other.state) == (State.UP, State.INIT)
    engine.sent.clear()
    engine.changes.clear()
    before = variables_of(first)
    numbers = {
        "its own": (other.local_discriminator, 77),
        "the first one's": (first.local_discriminator, first.neighbor.discriminator),
        "zero": (0, 0),
        "unknown": (unknown, unknown),
    }
    packet = packet._replace(
        your_discriminator=numbers[yours][0],
        my_discriminator=numbers[mine][1],
        state=state,
        poll=poll,
        final=final,
    )
    copied = encode(pair.right.sent[-1][1])
    for octets in (copied, encode(packet)):
        engine.receive(octets, origin, pair.now)
    assert variables_of(first) == before
    assert first.key not in {sent.key for sent in engine.sent}
    assert first.key not in {change.key for change in engine.changes}
    if yours in {"the first one's", "unknown"}:
        assert (other.state, engine.sent) == (State.INIT, [])
