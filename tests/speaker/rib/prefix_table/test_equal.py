"""The two forms of the prefix table are equal after any operations: the forms as they are used.

Keys of more than 255 octets are in the dictionary alone: no key of a message has more than 21.
``make check-native`` runs the same with a million operations, and the C compiled with sanitizers.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from speaker.errors import Truncated
from speaker.nlri import NlriFields
from speaker.rib.prefix_table.dictionary import PrefixTable
from tests.speaker.rib.prefix_table.forms import native_table

OPERATIONS = int(os.environ.get("TABLE_OPERATIONS", "50000"))
STEPS = 50
EXAMPLES = 10
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


@dataclass
class _Walks:
    """A walk of each table."""

    of_tables: list[Any]
    found: list[set[bytes]]
    stayed: set[bytes]
    """The keys that were there all the time."""
    known: set[bytes]
    """The keys that were there at some time before both had found the first ones."""


class Tables(RuleBasedStateMachine):
    """One table of each form, to which the same happens."""

    operations = 0
    """Of all machines: calls of a method of both tables, which had equal results."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: tuple[Any, Any] = (PrefixTable(), native_table())
        self.revision = 0
        self.iterators: list[tuple[Any, Any]] = []
        self.walks: list[_Walks] = []

    def both(self, name: str, *arguments: object) -> object:
        results: list[object] = []
        for table in self.tables:
            try:
                results.append(getattr(table, name)(*arguments))
            except (KeyError, Truncated) as error:
                results.append(type(error))
        assert results[0] == results[1]
        Tables.operations += 1
        self.revision += 1
        for walks in self.walks:
            walks.stayed.intersection_update(self.tables[0])
            if not all(walks.found):
                walks.known.update(self.tables[0])
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

    @rule(seed=st.integers(0, 1 << 32), count=st.integers(1, 200))
    def operate(self, seed: int, count: int) -> None:
        """Many operations for one choice of Hypothesis, which takes most of the time of the others."""
        chance = random.Random(seed)  # noqa: S311  a choice of operations
        keys = _numbered(chance.randrange(3000), chance.choice((10, 100, 1000)))
        for _ in range(count):
            key, value = chance.choice(keys), chance.choice(VALUES)
            run = chance.choices(keys, k=chance.randrange(12))
            at = chance.randrange(len(keys))
            many = keys[at : at + 40]
            held = self.tables[0].get(key, value)
            match chance.randrange(12):
                case 0 | 1:
                    self.both("insert", run, value)
                case 2 | 3:
                    self.both("insert", many, value)
                case 4 | 5:
                    fields = NlriFields([b"".join(many), key], chance.choice((1, 1, 1, 2)))
                    self.both("insert_fields", fields, [value, held])
                case 6:
                    self.both("discard", run)
                case 7:
                    self.both("discard", many)
                case 8:
                    self.both("replace", [key], held, chance.choice((None, value)))
                case 9:
                    self.both(chance.choice(("pop", "get")), key, None)
                case 10:
                    self.both("popitem")
                case _:
                    self.both("isdisjoint", many)

    @rule(seed=st.integers(0, 1 << 32), count=st.integers(1, 600))
    def drain(self, seed: int, count: int) -> None:
        """Remove keys one by one, so that gaps are being closed while the last keys go."""
        chance = random.Random(seed)  # noqa: S311  as above
        keys = list(self.tables[0])
        of_the_end = chance.choice((0.0, 0.1, 0.9))
        for key in chance.sample(keys, min(count, len(keys))):
            if chance.random() < of_the_end:
                self.both("popitem")
            else:
                self.both("pop", key, None)

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
        keys = self.tables[0]
        self.walks.append(_Walks(walks, [set(), set()], set(keys), set(keys)))
        del self.walks[:-3]

    @rule(lists=st.integers(1, 4))
    def read_walks(self, lists: int) -> None:
        for walks in list(self.walks):
            for walk, keys in zip(walks.of_tables, walks.found, strict=True):
                for _ in range(lists):
                    some = _next(walk)
                    if some is StopIteration:
                        assert walks.stayed <= keys
                        self.walks = [other for other in self.walks if other is not walks]
                        break
                    assert len(some) == len(set(some))
                    assert keys.isdisjoint(some)
                    assert walks.known.issuperset(some)
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


@pytest.mark.timeout(7200)
def test_both_forms_are_equal_after_each_of_many_operations() -> None:
    of_some = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    Tables.operations = 0
    while Tables.operations < OPERATIONS:
        run_state_machine_as_test(Tables, settings=of_some)
