"""Copies of keys, and their slices."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Sequence

import pytest

from speaker.rib.key_slices import ATTEMPTS, STEP_KEYS, copied_in_steps, in_turns, key_slices


def test_a_long_table_is_copied_in_steps_that_the_collector_looks_at_once() -> None:
    table = {number.to_bytes(4): None for number in range(3 * STEP_KEYS)}
    lists = list(in_turns(copied_in_steps(table, int)))
    assert [len(keys) for keys in lists] == [0, 0, 0, STEP_KEYS, STEP_KEYS, STEP_KEYS, 0]
    assert tuple(itertools.chain.from_iterable(lists)) == tuple(table)
    assert not any(map(gc.is_tracked, lists))


def test_a_start_that_collects_nothing_does_not_do_so_for_a_long_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All rows that it has read are young objects."""
    collections: list[int] = []
    monkeypatch.setattr(gc, "collect", collections.append)
    table = {number.to_bytes(4): None for number in range(STEP_KEYS + 1)}
    for enabled in (True, False):
        monkeypatch.setattr(gc, "isenabled", lambda enabled=enabled: enabled)
        list(in_turns(copied_in_steps(table, int)))
    assert collections == [0]


def test_a_short_table_is_copied_in_one_step() -> None:
    assert list(in_turns(copied_in_steps({b"1": None}, int))) == [(b"1",)]


def read_beside_changes(changes: int) -> tuple[list[bytes], dict[bytes, None]]:
    """Copy a table of which a key is replaced by another one after each of the first steps."""
    table = {number.to_bytes(4): None for number in range(2 * STEP_KEYS)}
    made: list[bytes] = []
    found: list[Sequence[bytes]] = []
    for keys in in_turns(copied_in_steps(table, made.__len__)):
        found.append(keys)
        if not keys and len(made) < changes:
            made.append(b"new" + len(made).to_bytes(4))
            del table[next(iter(table))]
            table[made[-1]] = None
    return list(itertools.chain.from_iterable(found)), table


def test_a_copy_begins_again_when_the_table_has_changed() -> None:
    found, table = read_beside_changes(3)
    assert found == list(table)


def test_keys_of_an_ended_session_leave_the_table_while_it_is_copied() -> None:
    table = {number.to_bytes(4): None for number in range(2 * STEP_KEYS)}
    steps = in_turns(copied_in_steps(table, int))
    found = list(next(steps))
    for _ in range(5):
        table.popitem()
        found += next(steps)
    found += itertools.chain.from_iterable(steps)
    assert found == list(table)


def test_a_table_that_changes_all_the_time_is_copied_at_once() -> None:
    found, table = read_beside_changes(ATTEMPTS + 5)
    assert len(found) == len(set(found)) == 2 * STEP_KEYS
    assert len(set(found) - table.keys()) <= 5


def test_slices_split_long_lists_and_join_short_ones() -> None:
    keys = [number.to_bytes(1) for number in range(10)]
    slices = list(key_slices((keys[:1], keys[1:2], keys[2:9], keys[9:]), 3))
    assert list(itertools.chain.from_iterable(slices)) == keys
    assert [len(found) for found in slices] == [5, 3, 2]
