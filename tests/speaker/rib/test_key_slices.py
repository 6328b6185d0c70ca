"""Slices of keys."""

from __future__ import annotations

import itertools

from speaker.rib.key_slices import key_slices


def test_slices_split_long_lists_and_join_short_ones() -> None:
    keys = [number.to_bytes(1) for number in range(10)]
    slices = list(key_slices((keys[:1], keys[1:2], keys[2:9], keys[9:]), 3))
    assert list(itertools.chain.from_iterable(slices)) == keys
    assert [len(found) for found in slices] == [5, 3, 2]
