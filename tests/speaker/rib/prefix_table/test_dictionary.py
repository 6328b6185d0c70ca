"""The prefix table as a dictionary: a walk copies the keys in steps."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Sequence

import pytest

from speaker.rib.prefix_table.dictionary import ATTEMPTS, STEP_KEYS, PrefixTable


def table_of(size: int) -> PrefixTable[int]:
    table: PrefixTable[int] = PrefixTable()
    table.insert([number.to_bytes(4) for number in range(size)], 1)
    return table


def test_a_long_table_is_copied_in_steps_that_the_collector_looks_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gc, "isenabled", lambda: True)
    table = table_of(3 * STEP_KEYS)
    lists = list(table.walk(STEP_KEYS, int))
    assert [len(keys) for keys in lists] == [0, 0, 0, STEP_KEYS, STEP_KEYS, STEP_KEYS]
    assert tuple(itertools.chain.from_iterable(lists)) == tuple(table)
    assert not any(map(gc.is_tracked, lists))


def test_a_start_that_collects_nothing_does_not_do_so_for_a_long_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All rows that it has read are young objects."""
    collections: list[int] = []
    monkeypatch.setattr(gc, "collect", collections.append)
    table = table_of(STEP_KEYS + 1)
    for enabled in (True, False):
        monkeypatch.setattr(gc, "isenabled", lambda enabled=enabled: enabled)
        list(table.walk(STEP_KEYS, int))
    assert collections == [0]


def test_a_short_table_is_copied_in_one_step() -> None:
    assert list(table_of(1).walk(STEP_KEYS, int)) == [(bytes(4),)]


def read_beside_changes(changes: int) -> tuple[list[bytes], PrefixTable[int]]:
    """Walk through a table of which a key is replaced by another key after each of the first steps."""
    table = table_of(2 * STEP_KEYS)
    made: list[bytes] = []
    found: list[Sequence[bytes]] = []
    for keys in table.walk(STEP_KEYS, made.__len__):
        found.append(keys)
        if not keys and len(made) < changes:
            made.append(b"new" + len(made).to_bytes(4))
            del table[next(iter(table))]
            table[made[-1]] = 1
    return list(itertools.chain.from_iterable(found)), table


def test_a_copy_begins_again_when_the_table_has_changed() -> None:
    found, table = read_beside_changes(3)
    assert found == list(table)


def test_keys_of_an_ended_session_leave_the_table_while_it_is_copied() -> None:
    table = table_of(2 * STEP_KEYS)
    steps = table.walk(STEP_KEYS, int)
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
