"""Two engines and any line between them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from speaker.bfd.engine import Origin
from speaker.bfd.packet import encode
from speaker.bfd.values import Key, Settings, State
from tests.speaker.bfd.build import LEFT, MS, RIGHT, SECOND, Delivery, Pair, good
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
        assert not end.session.polling
        end.changes.clear()
    pair.run(20 * SECOND)
    assert not pair.left.changes
    assert not pair.right.changes


@settings(max_examples=examples(25), deadline=None)
@given(pairs_of_settings(), st.integers(0, 1 << 30), st.floats(0, 0.9))
def test_no_end_is_up_for_longer_than_its_detection_time_while_the_other_is_not(
    both: tuple[Settings, Settings], seed: int, loss: float
) -> None:
    pair = Pair(*both, seed=seed)
    delay = 30 * MS
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
    before = dict(vars(pair.left.session))
    packet = PACKET._replace(
        your_discriminator=yours, my_discriminator=mine, state=state, poll=poll, final=final
    )
    origin = Origin(source, LEFT, "", multihop, 255)
    pair.left.engine.receive(encode(packet), origin, pair.now)
    assert vars(pair.left.session) == before
    assert not pair.left.engine.sent
