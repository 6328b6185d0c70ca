"""The log has every prefix while it is held, at a bounded cost for each addition."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from speaker.iana import Afi
from speaker.nlri import NlriFields
from speaker.rib.adj_in.prefix_log import CHECKS_PER_PREFIX, SLACK_PREFIXES, ReceivedPrefixLog


def prefix(number: int) -> bytes:
    return b"\x20" + number.to_bytes(4, "big")


class Source:
    """A source's held prefixes, and the largest number that the log checked at once."""

    def __init__(self) -> None:
        self.held: set[bytes] = set()
        self.most = 0
        self.log = ReceivedPrefixLog(self.still_held)

    def still_held(self, nlri: Sequence[bytes]) -> list[bytes]:
        self.most = max(self.most, len(nlri))
        return [one for one in nlri if one in self.held]

    def announce(self, numbers: Sequence[int], *, field: bool) -> None:
        nlri = [prefix(number) for number in numbers]
        self.held.update(nlri)
        if field:
            fields = NlriFields([b"".join(nlri)], Afi.IPV4)
            self.log.add_fields(fields, len(nlri), len(self.held))
        else:
            self.log.add(nlri, len(self.held))

    @property
    def named(self) -> list[bytes]:
        return [one for nlri in self.log.lists() for one in nlri]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["list", "field", "withdraw"]),
        st.lists(st.integers(0, 300), min_size=1, max_size=150, unique=True),
    ),
    max_size=40,
)


@given(STEPS)
def test_the_log_has_every_held_prefix_and_few_others(
    steps: list[tuple[str, list[int]]],
) -> None:
    source = Source()
    for what, numbers in steps:
        if what == "withdraw":
            source.held.difference_update(map(prefix, numbers))
            continue
        named = len(source.named)
        source.most = 0
        source.announce(numbers, field=what == "field")
        assert source.most <= CHECKS_PER_PREFIX * len(numbers)
        assert source.held <= set(source.named)
        # At most five times the prefixes that were held at the last compaction.
        assert len(source.named) <= max(named, 5 * 301 + 2 * SLACK_PREFIXES) + len(numbers)


def test_a_table_that_is_received_repeatedly_takes_bounded_memory() -> None:
    source = Source()
    for _ in range(50):
        for start in range(0, 5000, 500):
            source.announce(range(start, start + 500), field=True)
        assert source.most <= CHECKS_PER_PREFIX * 500
        source.held.clear()
        source.announce([1], field=False)
    assert len(source.named) <= 5 * 5000 + 2 * SLACK_PREFIXES


def test_a_cleared_log_is_empty() -> None:
    source = Source()
    for _ in range(4):
        source.announce(range(400), field=True)
    source.log.clear()
    assert source.named == []
    source.announce([7], field=False)
    assert source.named == [prefix(7)]
