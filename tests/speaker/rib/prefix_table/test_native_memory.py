"""The prefix table in C when memory runs out, and what it leaves behind: nothing."""

from __future__ import annotations

import gc
import os
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from speaker.attribute import PathAttributes
from speaker.nlri import NlriFields
from speaker.rib.loc_rib_fast_path import LocRibFastPath
from speaker.rib.path import Path as RoutePath
from speaker.rib.path import Source
from tests.speaker.rib.prefix_table.forms import load, native, native_table

_testcapi = pytest.importorskip("_testcapi")

KEYS = [b"\x18" + number.to_bytes(3, "big") for number in range(40)]
LONG = [b"\x80" + number.to_bytes(16, "big") for number in range(40)]
FIELDS = [b"".join(KEYS[at : at + 5]) for at in range(0, 40, 5)]


OPERATIONS_OF_ROUND = 13
ROUNDS = max(300, int(os.environ.get("TABLE_OPERATIONS", "2000")) // OPERATIONS_OF_ROUND)


def resident_octets() -> int:
    """Return the resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Value:
    """As a path."""


OLD, NEW = Value(), Value()
# Counts of more than 256 are objects that are allocated.
MANY = [b"\x18" + number.to_bytes(3, "big") for number in range(1000, 2000)]
MANY_FIELDS = [b"".join(MANY[at : at + 250]) for at in range(0, 1000, 250)]


def _of_few(table: Any) -> None:  # noqa: ANN401  as below
    table.insert(KEYS[:10], OLD)


def _of_many(table: Any) -> None:  # noqa: ANN401
    table.insert(MANY, OLD)


def _with_gaps(table: Any) -> None:  # noqa: ANN401
    """Its arrays are full: the next new key closes the gaps."""
    _of_many(table)
    table.discard(MANY[:400])


def _about_to_shrink(table: Any) -> None:  # noqa: ANN401
    _of_many(table)
    table.discard(MANY[:532])


VALUE_KEYS = [b"\x20" + number.to_bytes(4, "big") for number in range(4200)]


def _of_many_values(table: Any) -> None:  # noqa: ANN401
    """When they go, so does the memory for them."""
    for key in VALUE_KEYS:
        table[key] = Value()


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Let no other thread run: an allocation fails in whatever thread makes it, pytest-xdist's too."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    # A thread that waits already does so with the interval of before.
    time.sleep(4 * interval)
    yield
    sys.setswitchinterval(interval)


Prepare = Callable[[Any], object]
OPERATIONS: dict[str, tuple[Prepare, Callable[[Any], object]]] = {
    "insert": (_of_few, lambda table: table.insert(KEYS, NEW)),
    "insert-many": (_of_few, lambda table: table.insert(KEYS + MANY, NEW)),
    "insert-longer": (_of_few, lambda table: table.insert(LONG, NEW)),
    "insert-closing-gaps": (_with_gaps, lambda table: table.insert(LONG, NEW)),
    "insert_fields": (
        _of_few,
        lambda table: table.insert_fields(NlriFields(FIELDS[2:], 1), [Value() for _ in FIELDS[2:]]),
    ),
    "insert_fields-many": (
        _of_few,
        lambda table: table.insert_fields(
            NlriFields(MANY_FIELDS, 1), [Value() for _ in MANY_FIELDS]
        ),
    ),
    "insert_fields-known": (
        _of_many,
        lambda table: table.insert_fields(NlriFields([b"".join(KEYS), *MANY_FIELDS], 1), [NEW] * 5),
    ),
    "replace": (_of_few, lambda table: table.replace(KEYS[:10], OLD, NEW)),
    "replace-many": (_of_many, lambda table: table.replace(MANY, OLD, NEW)),
    "remove": (_of_few, lambda table: table.replace(KEYS[:10], OLD, None)),
    "remove-many": (_of_many, lambda table: table.replace(MANY[::-1], OLD, None)),
    "discard": (_of_few, lambda table: table.discard(KEYS[:10])),
    "discard-many": (_of_many, lambda table: table.discard(MANY[:700] * 2)),
    "discard-shrinking": (_about_to_shrink, lambda table: table.discard(MANY[532:540])),
    "discard_fields": (
        _of_many,
        lambda table: table.discard_fields(NlriFields(MANY_FIELDS[:2], 1)),
    ),
    "delete": (_about_to_shrink, lambda table: table.__delitem__(MANY[600])),
    "set": (_of_few, lambda table: table.__setitem__(KEYS[20], NEW)),
    "set-longer": (_of_few, lambda table: table.__setitem__(LONG[0], NEW)),
    "values-grow": (
        _of_few,
        lambda table: table.insert_fields(NlriFields(KEYS[10:], 1), [Value() for _ in KEYS[10:]]),
    ),
    "values-shrink": (_of_many_values, lambda table: table.discard(VALUE_KEYS[1:])),
    "pop": (_of_few, lambda table: table.pop(KEYS[0])),
    "popitem": (_of_few, lambda table: table.popitem()),
    "clear": (_of_many, lambda table: table.clear()),
    "items": (_of_few, lambda table: list(table.items())),
    "walk": (_of_few, lambda table: list(table.walk(4, int))),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_allocation_that_fails_anywhere_leaves_the_table_whole(name: str) -> None:
    prepare, act = OPERATIONS[name]
    passed = 0
    for failing in range(200):
        table = native_table()
        prepare(table)
        before = dict(table.items())
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
            passed += 1
            if passed == 20:
                break
            continue
        assert list(after.items()) == list(before.items())
        act(table)
    assert passed == 20


def test_changes_of_a_message_for_which_there_is_no_memory_are_none() -> None:
    path = RoutePath(PathAttributes(), Source("p", address=bytes(4), router_id=1, ebgp=True))
    some = NlriFields(MANY_FIELDS, 1)
    paths, outcomes = [path] * len(MANY_FIELDS), set()
    for failing in range(40):
        table: Any = native_table()
        fast = LocRibFastPath(table)
        failed = False
        _testcapi.set_nomemory(failing, failing + 1)
        try:
            fast.announce_fields(paths, some)
        except MemoryError:
            failed = True
        finally:
            _testcapi.remove_mem_hooks()
        outcomes.add(failed)
        assert sum(len(prefixes) for _, _, prefixes in fast.take()) == len(table)
        assert len(table) == (0 if failed else len(MANY))
    assert outcomes == {True, False}


def test_references_and_memory_stay_level() -> None:
    def run(rounds: int) -> None:
        for _ in range(rounds):
            table = native_table()
            values = [Value() for _ in FIELDS]
            table.insert_fields(fields, values)
            table.insert_fields(fields, values)
            table.replace(KEYS[:5], values[0], NEW)
            table.replace(KEYS[:5], NEW, None)
            table.insert(LONG, OLD)
            table.discard(KEYS[7:])
            table[KEYS[0]] = NEW
            list(table.items())
            table.popitem()
            table.pop(LONG[0], None)
            table.discard_fields(fields.part(0, 1))
            walk = table.walk(3, int)
            next(walk)

    fields = NlriFields(FIELDS, 1)
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


@pytest.mark.skipif(
    "NATIVE_FLAGS" in os.environ, reason="the debug allocator has octets of its own"
)
def test_the_size_of_a_table_is_what_was_allocated() -> None:
    native_table()
    values = [Value() for _ in range(400)]
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        table = native_table()
        for start, value in enumerate(values):
            table.insert(MANY[start::400], value)
            table.insert(LONG[start::400], value)
            if start % 100 == 0:
                allocated = tracemalloc.get_traced_memory()[0] - before
                assert abs(allocated - sys.getsizeof(table)) < 200  # of numbers and the loop
        table.discard(MANY)
        allocated = tracemalloc.get_traced_memory()[0] - before
        assert abs(allocated - sys.getsizeof(table)) < 200
    finally:
        tracemalloc.stop()


def test_the_prefixes_of_fields_take_as_much_as_keys() -> None:
    table, same = native_table(), native_table()
    prefixes = [b"\x30" + number.to_bytes(6, "big") for number in range(1000)]
    table.insert_fields(NlriFields([b"".join(prefixes)], 2), [OLD])
    same.insert(prefixes, OLD)
    assert sys.getsizeof(table) == sys.getsizeof(same)


def test_what_is_no_key_is_an_error() -> None:
    table = native().PrefixTable()
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
