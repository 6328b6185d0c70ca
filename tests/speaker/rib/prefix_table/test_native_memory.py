"""The prefix table in C when memory runs out, and what it leaves behind: nothing."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.speaker.rib.prefix_table.forms import load, native_table

_testcapi = pytest.importorskip("_testcapi")

KEYS = [b"\x18" + number.to_bytes(3, "big") for number in range(40)]
LONG = [b"\x80" + number.to_bytes(16, "big") for number in range(40)]
FIELDS = [b"".join(KEYS[at : at + 5]) for at in range(0, 40, 5)]


OPERATIONS_OF_ROUND = 12
ROUNDS = max(300, int(os.environ.get("TABLE_OPERATIONS", "2000")) // OPERATIONS_OF_ROUND)


def resident_octets() -> int:
    """Return the resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Value:
    """As a path."""


OLD, NEW = Value(), Value()
OPERATIONS: dict[str, Callable[[Any], object]] = {
    "insert": lambda table: table.insert(KEYS, NEW),
    "insert-longer": lambda table: table.insert(LONG, NEW),
    "insert_fields": lambda table: table.insert_fields(
        FIELDS[2:], [Value() for _ in FIELDS[2:]], 1
    ),
    "replace": lambda table: table.replace(KEYS[:10], OLD, NEW),
    "remove": lambda table: table.replace(KEYS[:10], OLD, None),
    "discard": lambda table: table.discard(KEYS[:10]),
    "set": lambda table: table.__setitem__(KEYS[20], NEW),
    "set-longer": lambda table: table.__setitem__(LONG[0], NEW),
    "pop": lambda table: table.pop(KEYS[0]),
    "popitem": lambda table: table.popitem(),
    "items": lambda table: list(table.items()),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_allocation_that_fails_anywhere_leaves_the_table_whole(name: str) -> None:
    for failing in range(200):
        table = native_table()
        table.insert(KEYS[:10], OLD)
        before = dict(table.items())
        act = OPERATIONS[name]
        failed = False
        _testcapi.set_nomemory(failing, failing + 1)
        try:
            act(table)
        except MemoryError:
            failed = True
        finally:
            _testcapi.remove_mem_hooks()
        after = dict(table.items())
        assert len(table) == len(after)
        assert all(table[key] is value for key, value in after.items())
        if not failed:
            # Nothing failed, or what did is not needed: giving memory back, for one.
            if failing > 60:
                return
            continue
        assert after == before
        act(table)


def test_references_and_memory_stay_level() -> None:
    def run(rounds: int) -> None:
        for _ in range(rounds):
            table = native_table()
            values = [Value() for _ in FIELDS]
            table.insert_fields(FIELDS, values, 1)
            table.insert_fields(FIELDS, values, 1)
            table.replace(KEYS[:5], values[0], NEW)
            table.replace(KEYS[:5], NEW, None)
            table.insert(LONG, OLD)
            table.discard(KEYS[7:])
            table[KEYS[0]] = NEW
            list(table.items())
            table.popitem()
            table.pop(LONG[0], None)
            table.discard_fields(FIELDS[:1], 1)

    run(30)
    gc.collect()
    blocks, references = sys.getallocatedblocks(), [sys.getrefcount(OLD), sys.getrefcount(NEW)]
    resident = resident_octets()
    run(ROUNDS)
    gc.collect()
    assert [sys.getrefcount(OLD), sys.getrefcount(NEW)] == references
    assert abs(sys.getallocatedblocks() - blocks) < 200
    # Sanitizers keep what was freed for a while.
    if not os.environ.get("NATIVE_FLAGS"):
        assert resident_octets() - resident < 1 << 21


def test_a_module_that_is_imported_again_leaves_the_tables_whole() -> None:
    table = native_table()
    table.insert(KEYS, OLD)
    again = load().PrefixTable()
    again.insert(KEYS, NEW)
    assert [table.get(key) for key in KEYS] == [OLD] * len(KEYS)
    assert table.discard(KEYS) == len(KEYS)


def test_the_prefixes_of_fields_take_as_much_as_keys() -> None:
    table, same = native_table(), native_table()
    prefixes = [b"\x30" + number.to_bytes(6, "big") for number in range(1000)]
    table.insert_fields([b"".join(prefixes)], [OLD], 2)
    same.insert(prefixes, OLD)
    assert table.memory() == same.memory()


def test_what_is_no_key_is_an_error() -> None:
    table = native_table()
    act: Callable[..., object]
    for wrong, error in (("10.0.0.0/8", TypeError), (bytes(256), ValueError)):
        for act in (
            lambda key=wrong: table.insert([b"\x00", key], OLD),
            lambda key=wrong: table.isdisjoint([key]),
            lambda key=wrong: table.get(key),
            lambda key=wrong: table.__setitem__(key, OLD),
        ):
            with pytest.raises(error):
                act()
    for act in (
        lambda: table.insert_fields([b"\x00"], [], 1),
        lambda: table.insert_fields([b"\x00"], [OLD], 25),
        lambda: table.discard_fields([b"\x18\x00"], 1),
    ):
        with pytest.raises(ValueError, match=r"field|AFI"):
            act()
    with pytest.raises(TypeError):
        table.insert([b"\x00"])
    with pytest.raises(TypeError):
        type(table)(1)
    assert len(table) == 0
