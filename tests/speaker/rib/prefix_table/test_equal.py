"""The two forms of the prefix table are equal after any operations: the forms as they are used.

Keys of more than 255 octets are in the dictionary alone: no key of a message has more than 21.
``make check-native`` runs the same with a million operations, and the C compiled with sanitizers.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from speaker.errors import Truncated
from speaker.nlri import NlriFields
from speaker.rib.prefix_table.dictionary import PrefixTable
from tests.speaker.rib.prefix_table.forms import native_table

OPERATIONS = int(os.environ.get("TABLE_OPERATIONS", "2000"))
STEPS = 50
FEW = 100
FULL_COMPARISONS = 8
"""A table of more keys is compared whole after each of so many changes, and at the end."""


class Value:
    """As a path: compared by identity."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"v{self.number}"


VALUES = [Value(number) for number in range(300)]
# Few of them often, so that runs of one value meet; all of them sometimes.
values = st.one_of(st.sampled_from(VALUES[:6]), st.sampled_from(VALUES))


def _key(bits: int, octets: bytes) -> bytes:
    size = (bits + 7) >> 3
    body = bytearray(octets[:size].ljust(size, b"\x01"))
    if bits & 7:
        body[-1] &= 0xFF << (8 - (bits & 7)) & 0xFF
    return bytes((bits, *body))


# Few different ones, so that runs meet what is there; long ones, so that tables grow wider.
prefixes = st.builds(_key, st.sampled_from((0, 1, 8, 15, 24, 32, 48, 128)), st.binary(max_size=1))
runs = st.lists(prefixes, max_size=12)
fields = st.lists(
    st.one_of(
        st.lists(prefixes, min_size=1, max_size=6).map(b"".join), st.binary(min_size=1, max_size=9)
    ),
    min_size=1,
    max_size=3,
)
afis = st.sampled_from((1, 2))


def _numbered(start: int, count: int) -> list[bytes]:
    return [b"\x18" + number.to_bytes(3, "big") for number in range(start, start + count)]


class Tables(RuleBasedStateMachine):
    """One table of each form, to which the same happens."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: tuple[Any, Any] = (PrefixTable(), native_table())
        self.revision = 0
        self.iterators: list[tuple[Any, Any]] = []
        self.walks: list[tuple[list[Any], list[set[bytes]], set[bytes]]] = []
        """Walks of both tables, what they have found, and the keys that were there all the time."""

    def both(self, name: str, *arguments: object) -> object:
        results: list[object] = []
        for table in self.tables:
            try:
                results.append(getattr(table, name)(*arguments))
            except (KeyError, Truncated) as error:
                results.append(type(error))
        assert results[0] == results[1]
        self.revision += 1
        for _, _, stayed in self.walks:
            stayed.intersection_update(self.tables[0])
        return results[0]

    @initialize(size=st.sampled_from((0, 0, 0, 50, 50, 700, 3000)), data=st.data())
    def begin(self, size: int, data: st.DataObject) -> None:
        keys = _numbered(0, size)
        step = data.draw(st.sampled_from((1, 10, 1000)))
        for at in range(0, size, step):
            self.both("insert", keys[at : at + step], VALUES[at // step % len(VALUES)])

    @rule(run=runs, value=values)
    def insert(self, run: list[bytes], value: Value) -> None:
        self.both("insert", run, value)

    @rule(start=st.integers(0, 5000), count=st.integers(1, 1500), value=values)
    def insert_many(self, start: int, count: int, value: Value) -> None:
        self.both("insert", _numbered(start, count), value)

    @rule(some=fields, value=values, other=values, afi=afis)
    def insert_fields(self, some: list[bytes], value: Value, other: Value, afi: int) -> None:
        given_values = [value, other, value][: len(some)]
        given = NlriFields(some, afi)
        if self.both("insert_fields", given, given_values):
            for value_, field in zip(given_values, given, strict=True):
                assert all(self.tables[1][key] is value_ for key in field)

    @rule(start=st.integers(0, 9000), count=st.integers(1, 900), value=values)
    def insert_long_field(self, start: int, count: int, value: Value) -> None:
        field = b"".join(_numbered(start, count))
        self.both("insert_fields", NlriFields([field], 1), [value])

    @rule(run=runs, old=values, new=st.one_of(st.none(), values))
    def replace(self, run: list[bytes], old: Value, new: Value | None) -> None:
        self.both("replace", run, old, new)

    @rule(new=st.one_of(st.none(), values), size=st.integers(1, 400), data=st.data())
    def replace_equal(self, new: Value | None, size: int, data: st.DataObject) -> None:
        if not self.tables[0]:
            return
        keys = list(self.tables[0])
        old = self.tables[0][keys[data.draw(st.integers(0, len(keys) - 1))]]
        run = [key for key in keys if self.tables[0][key] is old]
        if data.draw(st.booleans()):
            run.reverse()
        self.both("replace", run[:size] + run[:1], old, new)

    @rule(run=runs)
    def discard(self, run: list[bytes]) -> None:
        self.both("discard", run)

    @rule(first=st.integers(0, 3000), step=st.integers(1, 4), count=st.integers(1, 1500))
    def discard_many(self, first: int, step: int, count: int) -> None:
        self.both("discard", list(self.tables[0])[first::step][:count])

    @rule(some=fields, afi=afis)
    def discard_fields(self, some: list[bytes], afi: int) -> None:
        self.both("discard_fields", NlriFields(some, afi))

    @rule(run=runs)
    def isdisjoint(self, run: list[bytes]) -> None:
        self.both("isdisjoint", run)

    @rule(key=prefixes, value=values)
    def set_one(self, key: bytes, value: Value) -> None:
        self.both("__setitem__", key, value)

    @rule(key=prefixes)
    def pop(self, key: bytes) -> None:
        self.both("pop", key, None)

    @rule(key=prefixes)
    def delete(self, key: bytes) -> None:
        self.both("__delitem__", key)

    @rule(count=st.integers(1, 60))
    def pop_last(self, count: int) -> None:
        for _ in range(count):
            self.both("popitem")

    @rule()
    def clear(self) -> None:
        if len(self.tables[0]) > 20:
            self.both("clear")

    @rule(items=st.booleans())
    def begin_iterators(self, items: bool) -> None:
        first, second = self.tables
        of = (first.items(), second.items()) if items else (first, second)
        self.iterators.append((iter(of[0]), iter(of[1])))
        del self.iterators[:-3]

    @rule(count=st.integers(1, 30))
    def read_iterators(self, count: int) -> None:
        for iterators in self.iterators:
            for _ in range(count):
                first, second = (_next(iterator) for iterator in iterators)
                # A dictionary does not notice that as many keys came as went.
                if second is RuntimeError:
                    break
                assert first == second
                if second is StopIteration:
                    break

    @rule(size=st.integers(1, 300))
    def begin_walk(self, size: int) -> None:
        walks = [table.walk(size, lambda: self.revision) for table in self.tables]
        self.walks.append((walks, [set(), set()], set(self.tables[0])))
        del self.walks[:-3]

    @rule(lists=st.integers(1, 4))
    def read_walks(self, lists: int) -> None:
        for entry in list(self.walks):
            walks, found, stayed = entry
            for walk, keys in zip(walks, found, strict=True):
                for _ in range(lists):
                    some = _next(walk)
                    if some is StopIteration:
                        assert stayed <= keys
                        self.walks = [other for other in self.walks if other is not entry]
                        break
                    assert len(some) == len(set(some))
                    assert keys.isdisjoint(some)
                    keys.update(some)

    @rule(key=st.binary(min_size=256, max_size=300), value=values)
    def a_longer_key_is_none(self, key: bytes, value: Value) -> None:
        table = self.tables[1]
        act: Callable[[], object]
        for act in (
            lambda: table.insert([b"\x00", key], value),
            lambda: table.discard([key]),
            lambda: table.__setitem__(key, value),
            lambda: table.get(key),
        ):
            with pytest.raises(ValueError, match="255 octets"):
                act()

    @invariant()
    def are_equal(self) -> None:
        expected, table = self.tables
        assert len(table) == len(expected)
        if len(expected) < FEW or not self.revision % FULL_COMPARISONS:
            self.compare()

    def compare(self) -> None:
        expected, table = self.tables
        assert list(table.items()) == list(expected.items())
        assert all(table.get(key) is value for key, value in expected.items())

    teardown = compare


def _next(iterator: Any) -> Any:  # noqa: ANN401  a key, an item, keys, or the exception
    try:
        return next(iterator)
    except (StopIteration, RuntimeError) as error:
        return type(error)


TestTables = Tables.TestCase
TestTables.settings = settings(
    max_examples=max(1, OPERATIONS // STEPS),
    stateful_step_count=STEPS,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
