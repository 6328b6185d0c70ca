"""Copies of keys, and their slices."""

from __future__ import annotations

import gc
import itertools

from speaker.rib.key_slices import MANY, copied, key_slices


def test_a_long_copy_is_nothing_that_the_collector_looks_at_again() -> None:
    table = {number.to_bytes(4): None for number in range(MANY)}
    found = copied(table)
    assert found == tuple(table)
    assert not gc.is_tracked(found)


def test_slices_split_long_lists_and_join_short_ones() -> None:
    keys = [number.to_bytes(1) for number in range(10)]
    slices = list(key_slices((keys[:1], keys[1:2], keys[2:9], keys[9:]), 3))
    assert list(itertools.chain.from_iterable(slices)) == keys
    assert [len(found) for found in slices] == [5, 3, 2]
