"""The prefix table: what both forms promise."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest

from speaker.errors import Truncated
from speaker.nlri import NlriFields, prefix_to_wire
from tests.speaker.rib.prefix_table.forms import FORMS

Make = Callable[[], Any]
IPV4 = 1

pytestmark = pytest.mark.parametrize("make", FORMS)


class Value:
    """As a path: compared by identity."""


A, B = Value(), Value()


def keys(*prefixes: str) -> list[bytes]:
    return [prefix_to_wire(prefix)[1] for prefix in prefixes]


def count(table: Any, fields: list[bytes], values: list[Value]) -> int:  # noqa: ANN401
    result: int = table.insert_fields(NlriFields(fields, IPV4), values)
    return result


def test_keys_stay_in_the_order_of_insertion(make: Make) -> None:
    table = make()
    some = keys("10.0.0.0/8", "0.0.0.0/0", "192.0.2.0/24", "2001:db8::/32", "2001:db8::1/128")
    table.insert(some, A)
    table[some[0]] = B
    assert list(table.items()) == [(some[0], B), *((key, A) for key in some[1:])]
    del table[some[1]]
    table[some[1]] = A
    assert list(table) == [some[0], *some[2:], some[1]]
    assert table.popitem() == (some[1], A)
    assert len(table) == 4
    assert some[1] not in table


def test_a_run_is_inserted_with_one_value_and_new_keys_are_counted(make: Make) -> None:
    table = make()
    first, second = keys("10.0.0.0/8", "10.1.0.0/16")
    assert table.insert([first, first], A) == 1
    assert table.insert([first, second], B) == 1
    assert [table[first], table.get(second), table.get(b"\x00")] == [B, B, None]
    assert not table.isdisjoint([b"\x00", second])
    assert table.isdisjoint([b"\x00"])


def test_fields_are_inserted_whole_or_not_at_all(make: Make) -> None:
    table = make()
    field = b"\x08\x0a" + b"\x14\xc0\x00\x2f"
    assert count(table, [field, b"\x10\x0a\x01"], [A, B]) == 3
    # Bits behind the length are no part of a prefix (RFC 4271 section 4.3).
    expected = [(b"\x08\x0a", A), (b"\x14\xc0\x00\x20", A), (b"\x10\x0a\x01", B)]
    assert list(table.items()) == expected
    for known in (
        [b"\x18\xcb\x00\x71", b"\x08\x0a"],  # known
        [b"\x18\xcb\x00\x71\x18\xcb\x00\x71"],  # twice
        [b"\x18\xcb\x00\x71", b"\x18\xcb\x00"],  # cut off
        [b"\x18\xcb\x00\x71", b"\x21\x00\x00\x00\x00\x00"],  # more bits than an address
    ):
        assert count(table, known, [B] * len(known)) == 0
        assert list(table.items()) == expected


def test_a_value_is_replaced_where_all_keys_have_it(make: Make) -> None:
    table = make()
    first, second, third = keys("10.0.0.0/8", "10.1.0.0/16", "10.2.0.0/16")
    table.insert([first, second], A)
    table[third] = B
    assert table.replace([first, third], A, B) == 0
    assert table.replace([first, b"\x00"], A, B) == 0
    assert [table[first], table[second], table[third]] == [A, A, B]
    assert table.replace([first, second, first], A, B) == 2
    assert table.replace([first, second, third, third], B, None) == 3
    assert len(table) == 0
    assert table.replace([first], B, None) == 0


def test_keys_and_the_prefixes_of_fields_are_discarded(make: Make) -> None:
    table = make()
    some = keys("10.0.0.0/8", "10.1.0.0/16", "10.2.0.0/16")
    table.insert(some, A)
    assert table.discard([some[1], some[1], b"\x00"]) == 1
    assert table.discard_fields(NlriFields([b"\x08\x0a\x08\x0b", b"\x0f\x0a\x03"], IPV4)) == 1
    assert list(table) == some[2:]
    with pytest.raises(Truncated):
        table.discard_fields(NlriFields([some[2], b"\x18\x0a"], IPV4))
    assert list(table) == some[2:]
    assert table.discard_fields(NlriFields([], IPV4)) == 0
    assert table.pop(some[2]) is A
    assert table.pop(some[2], None) is None


def test_what_is_not_there_is_a_key_error(make: Make) -> None:
    table = make()
    for act in (
        lambda: table[b"\x00"],
        lambda: table.pop(b"\x00"),
        lambda: table.__delitem__(b"\x00"),
        table.popitem,
    ):
        with pytest.raises(KeyError):
            act()


def test_a_table_that_changes_ends_its_iterators(make: Make) -> None:
    table = make()
    table.insert(keys("10.0.0.0/8", "10.1.0.0/16"), A)
    iterator = iter(table)
    next(iterator)
    table[keys("10.1.0.0/16")[0]] = B
    next(iterator)
    with pytest.raises(StopIteration):
        next(iterator)
    iterator = table.items() if hasattr(table.items(), "__next__") else iter(table.items())
    next(iterator)
    table[b"\x00"] = A
    with pytest.raises(RuntimeError):
        next(iterator)


def numbered(*numbers: int) -> list[bytes]:
    return [b"\x18" + number.to_bytes(3, "big") for number in numbers]


def test_a_walk_gives_lists_of_all_keys_in_order(make: Make) -> None:
    table = make()
    table.insert(numbered(*range(25)), A)
    lists = list(table.walk(10, int))
    assert [len(keys) for keys in lists] == [10, 10, 5]
    assert list(chain.from_iterable(lists)) == list(table)
    assert list(make().walk(10, int)) == []


def test_a_walk_goes_on_while_the_table_changes(make: Make) -> None:
    table = make()
    table.insert(numbered(*range(10_000)), A)
    stays = set(numbered(*range(0, 10_000, 10)))
    found: list[bytes] = []
    for number, keys in enumerate(table.walk(100, found.__len__)):
        found += keys
        # Gaps that are closed, a table that grows, and a first key that is at the end now.
        table.discard([key for key in list(table)[::3] if key not in stays])
        table.insert(numbered(*range(20_000 + 90 * number, 20_000 + 90 * number + 90)), B)
        assert number < 1000
    assert len(found) == len(set(found))
    assert stays <= set(found)
    assert [key for key in found if key in stays] == sorted(stays)


def test_a_walk_of_a_table_that_is_cleared_ends(make: Make) -> None:
    table = make()
    table.insert(numbered(*range(30)), A)
    walks = [table.walk(10, int) for _ in range(3)]
    assert [len(next(walk)) for walk in walks[:2]] == [10, 10]
    del walks[1]
    table.clear()
    table.insert(numbered(*range(3)), A)
    assert all(key not in table or len(key) == 4 for walk in walks for keys in walk for key in keys)
    assert len(table) == 3


def test_a_walk_is_of_one_key_at_least(make: Make) -> None:
    table = make()
    table[b"\x00"] = A
    with pytest.raises(ValueError, match=r"zero|at least one key"):
        list(table.walk(0, int))


def test_a_value_goes_with_its_last_key(make: Make) -> None:
    table = make()
    some = keys("10.0.0.0/8", "10.1.0.0/16", "10.2.0.0/16")
    value = Value()
    gone = weakref.ref(value)
    table.insert(some, value)
    del value
    table.discard(some[:2])
    assert gone() is not None
    table[some[2]] = A
    assert gone() is None
    value = Value()
    gone = weakref.ref(value)
    table.insert(some, value)
    del value
    table.clear()
    assert gone() is None
    assert len(table) == 0


def test_the_collector_finds_a_table_that_has_itself(make: Make) -> None:
    table, value = make(), Value()
    value.table = table  # type: ignore[attr-defined]
    table[b"\x00"] = value
    gone = weakref.ref(value)
    del table, value
    gc.collect()
    assert gone() is None


def test_what_runs_when_a_value_goes_may_use_the_table(make: Make) -> None:
    table = make()
    some = [bytes((24, 10, number, 0)) for number in range(200)]

    class Last(Value):
        def __del__(self) -> None:
            table.insert(some, A)
            table.discard(some[50:])

    table.insert(some[:3], Last())
    table.insert(some[:3], B)
    assert [table[key] for key in some[:50]] == [A] * 50
    table.clear()
    table[some[0]] = Last()
    assert table.replace(some[:1], table[some[0]], None) == 1
    assert len(table) == 50


@pytest.mark.parametrize("method", ["items", "popitem"])
def test_what_the_collector_runs_while_an_item_is_made_may_use_the_table(
    make: Make, method: str
) -> None:
    # Up to Python 3.11 it runs within an allocation.
    table = make()
    some = [bytes((24, 10, number, 0)) for number in range(50)]

    class Cycle:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            table.clear()

    def act() -> Any:  # noqa: ANN401  an item
        return next(items) if method == "items" else table.popitem()

    thresholds = gc.get_threshold()
    gc.disable()
    try:
        table.insert(some, Value())
        items = iter(table.items())
        Cycle()
        no_more_kept_tuples = [(number, number) for number in range(5000)]
        gc.set_threshold(1)
        gc.enable()
        try:
            key, value = act()
        except (KeyError, RuntimeError):
            key = value = None
    finally:
        gc.set_threshold(*thresholds)
        gc.enable()
    del no_more_kept_tuples
    assert key is None or (key in some and type(value) is Value)
    gc.collect()
    assert len(table) == 0
    with pytest.raises((KeyError, RuntimeError)):
        act()


def test_memory_follows_the_keys(make: Make) -> None:
    table = make()
    empty = sys.getsizeof(table)
    some = [b"\x18" + number.to_bytes(3, "big") for number in range(20_000)]
    table.insert(some, A)
    full = sys.getsizeof(table)
    assert 10 * len(some) < full - empty < 120 * len(some)
    for start in range(0, len(some) - 10, 100):
        table.discard(some[start : start + 100])
    table.clear()
    assert sys.getsizeof(table) <= empty + 2_000


def test_memory_follows_the_values(make: Make) -> None:
    table = make()
    some = [b"\x18" + number.to_bytes(3, "big") for number in range(40_000)]
    values = {key: Value() for key in some}
    table.insert(some, A)
    shared = sys.getsizeof(table)
    for key, value in values.items():
        table[key] = value
    for start in range(100, len(some), 100):
        table.insert(some[start : start + 100], A)
    assert sys.getsizeof(table) < 1.2 * shared
    assert [table[key] for key in some[:100]] == [values[key] for key in some[:100]]
    assert all(table[key] is A for key in some[100:])
    table.insert(some[:200], B)
    assert [table[key] for key in some[100:300]] == [B] * 100 + [A] * 100


def test_the_environment_chooses_the_form(make: Make) -> None:
    del make
    code = "from speaker.rib import prefix_table as t; print(t.FORM, t.PrefixTable.__mro__[1])"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "WAGGLE_PURE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "Python <class 'dict'>\n"
