"""Tables: reads by every index, writes, revisions, initializers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statedb import (
    Database,
    Index,
    KeyShape,
    Table,
    UniqueViolation,
    UnknownIndex,
)
from tests.statedb.rows import Row, put, rows_table

A = Row("s", "a", ("red", "blue"), 1)
B = Row("s", "b", ("red",), 2)
C = Row("t", "a", (), None)


def test_a_row_is_found_by_its_primary_key() -> None:
    db = Database()
    table = rows_table(db)
    put(db, table, A, C)
    snapshot = db.snapshot()
    assert table.get(snapshot, ("s", "a")) == A
    assert table.get(snapshot, ("s", "x")) is None
    assert table.get(snapshot, ("t", "a")) == C
    assert table.revision(snapshot) == 2
    assert table.count(snapshot) == 2
    assert set(table.all(snapshot)) == {A, C}


def test_an_empty_table_can_be_read() -> None:
    db = Database()
    table = rows_table(db)
    snapshot = db.snapshot()
    assert table.get(snapshot, ("s", "a")) is None
    assert list(table.all(snapshot)) == []
    assert list(table.find(snapshot, "space", "s")) == []
    assert list(table.prefix(snapshot, "key", ("s",))) == []
    assert list(table.changes(db).next(snapshot)) == []


def test_rows_are_found_by_secondary_indexes() -> None:
    db = Database()
    table = rows_table(db)
    put(db, table, A, B, C)
    snapshot = db.snapshot()
    assert set(table.find(snapshot, "space", "s")) == {A, B}
    assert set(table.find(snapshot, "color", ("s", "red"))) == {A, B}
    assert list(table.find(snapshot, "color", ("s", "blue"))) == [A]
    assert list(table.find(snapshot, "serial", 2)) == [B]
    assert set(table.prefix(snapshot, "key", ("s",))) == {A, B}
    assert set(table.prefix(snapshot, "color", ("s",))) == {A, B}


def test_indexes_follow_a_row_that_changes() -> None:
    db = Database()
    table = rows_table(db)
    put(db, table, A)
    put(db, table, A._replace(colors=("green",), serial=9))
    snapshot = db.snapshot()
    assert list(table.find(snapshot, "color", ("s", "red"))) == []
    assert len(list(table.find(snapshot, "color", ("s", "green")))) == 1
    assert list(table.find(snapshot, "serial", 1)) == []
    with db.write(table) as txn:
        table.delete(txn, ("s", "a"))
    gone = db.snapshot()
    assert list(table.find(gone, "color", ("s", "green"))) == []


def test_a_row_has_the_revision_of_its_last_write() -> None:
    db = Database()
    table = rows_table(db)
    put(db, table, A, B, C)
    put(db, table, A)
    snapshot = db.snapshot()
    assert table.row_revision(snapshot, ("s", "a")) == 4
    assert table.row_revision(snapshot, ("s", "b")) == 2
    assert table.row_revision(snapshot, ("s", "x")) is None
    assert sorted(table.revisions(snapshot)) == [2, 3, 4]


def test_every_write_and_delete_increases_the_revision() -> None:
    db = Database()
    table = rows_table(db)
    put(db, table, A)
    put(db, table, A)
    with db.write(table) as txn:
        table.delete(txn, ("s", "a"))
        assert table.delete(txn, ("s", "a")) is None
    assert table.revision(db.snapshot()) == 3


def test_a_unique_index_rejects_a_second_row_without_a_change() -> None:
    db = Database()
    table = rows_table(db)
    put(db, table, A)
    with db.write(table) as txn:
        with pytest.raises(UniqueViolation, match="serial"):
            table.upsert(txn, B._replace(serial=1))
        table.upsert(txn, B)
    assert set(table.find(db.snapshot(), "color", ("s", "red"))) == {A, B}


def test_a_key_with_another_number_of_components_is_rejected() -> None:
    db = Database()
    table: Table[tuple[str, ...]] = db.table("odd", Index("key", lambda row: row))
    with db.write(table) as txn:
        table.upsert(txn, ("a", "b"))
        with pytest.raises(KeyShape, match="2 component"):
            table.upsert(txn, ("a",))


def test_an_unknown_index_is_named_in_the_error() -> None:
    db = Database()
    table = rows_table(db)
    with pytest.raises(UnknownIndex, match="nowhere"):
        list(table.find(db.snapshot(), "nowhere", "x"))


def test_a_table_is_initialized_when_all_initializers_have_completed() -> None:
    db = Database()
    table = rows_table(db)
    first, second = table.register_initializer("first"), table.register_initializer("second")
    before = db.snapshot()
    with db.write(table) as txn:
        first(txn)
    assert not table.initialized(db.snapshot())
    assert table.pending_initializers(db.snapshot()) == {"second"}
    with db.write(table) as txn:
        second(txn)
    assert table.initialized(db.snapshot())
    assert not table.initialized(before)


def test_a_primary_key_that_is_no_tuple() -> None:
    db = Database()
    table: Table[int] = db.table("names", Index("key", lambda row: str(row)))
    with db.write(table) as txn:
        table.upsert(txn, 5)
    assert table.get(db.snapshot(), "5") == 5


@given(
    st.lists(
        st.builds(
            Row,
            st.sampled_from("st"),
            st.sampled_from("abcdef"),
            st.lists(st.sampled_from(["red", "blue"]), unique=True).map(tuple),
        ),
        unique_by=lambda row: row[:2],
    ),
    st.booleans(),
)
def test_a_filled_table_is_as_if_each_row_had_been_inserted(rows: list[Row], used: bool) -> None:
    rows = [row._replace(serial=at or None) for at, row in enumerate(rows)]
    snapshots, changes = [], []
    for fill in (True, False):
        db = Database()
        table = rows_table(db)
        if used:
            put(db, table, A)
            with db.write(table) as txn:
                table.delete(txn, A[:2])
        iterator = table.changes(db)
        with db.write(table) as txn:
            if fill:
                table.fill(txn, rows)
            for row in () if fill else rows:
                table.upsert(txn, row)
        snapshots.append((table, db.snapshot()))
        changes.append(list(iterator.next(db.snapshot())))
    (filled, after), (table, inserted) = snapshots
    assert after.state(filled)._replace(arities=()) == inserted.state(table)._replace(arities=())
    assert changes[0] == changes[1]
    for row in rows:
        for color in row.colors:
            key = (row.space, color)
            assert row in filled.find(after, "color", key)


def test_a_table_is_filled_once_and_with_unique_keys_or_not_at_all() -> None:
    db = Database()
    table = rows_table(db)
    with db.write(table) as txn:
        with pytest.raises(UniqueViolation):
            table.fill(txn, [A, B._replace(serial=A.serial)])
        assert table.count(txn) == 0
        table.fill(txn, [A, B])
        with pytest.raises(ValueError, match="not empty"):
            table.fill(txn, [C])
    assert set(table.all(db.snapshot())) == {A, B}
