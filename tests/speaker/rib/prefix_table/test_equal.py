"""The two forms of the prefix table are equal after any operations.

``make check-native`` runs the same with a million operations, and the C compiled with sanitizers.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from speaker.rib.prefix_table.dictionary import PrefixTable
from tests.speaker.rib.prefix_table.forms import native_table

OPERATIONS = int(os.environ.get("TABLE_OPERATIONS", "2000"))
STEPS = 50


class Value:
    """As a path: compared by identity."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"v{self.number}"


VALUES = [Value(number) for number in range(6)]
values = st.sampled_from(VALUES)


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
    max_size=3,
)


class Tables(RuleBasedStateMachine):
    """One table of each form, to which the same happens."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: tuple[Any, Any] = (PrefixTable(), native_table())

    def both(self, name: str, *arguments: object) -> object:
        results = []
        for table in self.tables:
            try:
                result = getattr(table, name)(*arguments)
                results.append(
                    result[0] if name == "insert_fields" and table is self.tables[0] else result
                )
            except KeyError:
                results.append(KeyError)
        assert results[0] == results[1]
        return results[0]

    @rule(run=runs, value=values)
    def insert(self, run: list[bytes], value: Value) -> None:
        self.both("insert", run, value)

    @rule(some=fields, value=values, other=values, afi=st.sampled_from((1, 2)))
    def insert_fields(self, some: list[bytes], value: Value, other: Value, afi: int) -> None:
        self.both("insert_fields", some, [value, other, value][: len(some)], afi)

    @rule(run=runs, old=values, new=st.one_of(st.none(), values))
    def replace(self, run: list[bytes], old: Value, new: Value | None) -> None:
        self.both("replace", run, old, new)

    @rule(old=values, new=st.one_of(st.none(), values), size=st.integers(1, 9), data=st.data())
    def replace_equal(self, old: Value, new: Value | None, size: int, data: st.DataObject) -> None:
        run = [key for key, value in self.tables[0].items() if value is old]
        run = data.draw(st.permutations(run))[:size]
        self.both("replace", run + run[:1], old, new)

    @rule(run=runs)
    def discard(self, run: list[bytes]) -> None:
        self.both("discard", run)

    @rule(some=st.lists(st.lists(prefixes, max_size=4).map(b"".join), max_size=3))
    def discard_fields(self, some: list[bytes]) -> None:
        self.both("discard_fields", some, 2)

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

    @rule()
    def pop_last(self) -> None:
        self.both("popitem")

    @rule()
    def clear(self) -> None:
        if len(self.tables[0]) > 20:
            self.both("clear")

    @invariant()
    def are_equal(self) -> None:
        expected, table = self.tables
        assert list(table.items()) == list(expected.items())
        assert len(table) == len(expected)
        assert all(table.get(key) is value for key, value in expected.items())


TestTables = Tables.TestCase
TestTables.settings = settings(
    max_examples=max(1, OPERATIONS // STEPS), stateful_step_count=STEPS, deadline=None
)
