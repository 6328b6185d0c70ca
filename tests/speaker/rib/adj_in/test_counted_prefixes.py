"""Prefixes that are counted and not kept: the count is that of a set, in a fraction of its memory."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speaker.rib.adj_in.counted_prefixes import CountedPrefixes, Exact, Fingerprints

KEYS = st.lists(st.integers(0, 40).map(lambda n: bytes((24, 10, 0, n))), max_size=30)


@pytest.mark.parametrize("form", [Exact, Fingerprints])
@given(st.lists(st.tuples(st.booleans(), KEYS), max_size=30))
def test_the_count_is_that_of_a_set(
    form: type[CountedPrefixes], steps: list[tuple[bool, list[bytes]]]
) -> None:
    counted, model = form(), set[bytes]()
    for adds, keys in steps:
        if adds:
            counted.add(keys)
            model.update(keys)
        else:
            counted.remove(keys)
            model.difference_update(keys)
        assert len(counted) == len(model)


def test_a_table_of_25_000_takes_less_than_32_octets_each_and_a_flap_takes_no_more() -> None:
    keys = [bytes((32,)) + number.to_bytes(4, "big") for number in range(25_000)]
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        counted = Fingerprints()
        for _ in range(3):
            counted.add(keys)
            assert len(counted) == len(keys)
            counted.remove(keys[: len(keys) // 2])
            assert len(counted) == len(keys) // 2
            counted.add(keys)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 32 * len(keys)
    counted.remove(keys)
    assert len(counted) == 0
