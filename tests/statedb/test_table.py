"""Tables: reads by every index, writes, revisions, compare-and-swap, initializers."""

from __future__ import annotations

import pytest

from statedb import (
    Database,
    Index,
    KeyShape,
    RevisionMismatch,
    RowNotFound,
    Table,
    UniqueViolation,
    UnknownIndex,
)
from tests.statedb.rows import Row, put, rows_table

A = Row("s", "a", ("red", "blue"), 1, ("10.0.0.0/8",))
B = Row("s", "b", ("red",), 2, ("10.1.0.0/16", "fd00::/8"))
C = Row("t", "a", (), None)


def test_a_row_is_found_by_its_primary_key() -> None:
    db = Database()
    table = rows_table(db)
    put(db, table, A, C)
    snapshot = db.snapshot()
    assert table.get(snapshot, ("s", "a")) == A
    assert table.get(snapshot, ("s", "x")) is None
    assert table.get_with_revision(snapshot, ("t", "a")) == (C, 2)
    assert table.count(snapshot) == 2
    assert set(table.all(snapshot)) == {A, C}


def test_an_empty_table_answers_every_question() -> None:
    db = Database()
    table = rows_table(db)
    snapshot = db.snapshot()
    assert table.get(snapshot, ("s", "a")) is None
    assert list(table.all(snapshot)) == []
    assert list(table.find(snapshot, "space", "s")) == []
    assert list(table.prefix(snapshot, "key", ("s",))) == []
    assert table.longest_match(snapshot, "network", "10.0.0.1") is None
    assert list(table.by_revision(snapshot)) == []
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


def test_the_most_specific_network_that_covers_an_address_wins() -> None:
    db = Database()
    table = rows_table(db)
    put(db, table, A, B)
    snapshot = db.snapshot()
    assert table.longest_match(snapshot, "network", "10.1.2.3") == B
    assert table.longest_match(snapshot, "network", "10.2.0.1") == A
    assert table.longest_match(snapshot, "network", "fd00::1") == B
    assert table.longest_match(snapshot, "network", "192.0.2.1") is None


def test_indexes_follow_a_row_that_changes() -> None:
    db = Database()
    table = rows_table(db)
    put(db, table, A)
    put(db, table, A._replace(colors=("green",), serial=9, networks=("192.0.2.0/24",)))
    snapshot = db.snapshot()
    assert list(table.find(snapshot, "color", ("s", "red"))) == []
    assert len(list(table.find(snapshot, "color", ("s", "green")))) == 1
    assert list(table.find(snapshot, "serial", 1)) == []
    assert table.longest_match(snapshot, "network", "10.0.0.1") is None
    with db.write(table) as txn:
        table.delete(txn, ("s", "a"))
    gone = db.snapshot()
    assert list(table.find(gone, "color", ("s", "green"))) == []
    assert table.longest_match(gone, "network", "192.0.2.1") is None


def test_revisions_rise_with_every_write_and_delete() -> None:
    db = Database()
    table = rows_table(db)
    put(db, table, A)
    put(db, table, A)
    with db.write(table) as txn:
        table.delete(txn, ("s", "a"))
        assert table.delete(txn, ("s", "a")) is None
    assert table.revision(db.snapshot()) == 3


def test_rows_are_iterated_in_the_order_in_which_they_were_written() -> None:
    db = Database()
    table = rows_table(db)
    put(db, table, A, B, C)
    put(db, table, A)
    assert list(table.by_revision(db.snapshot(), after=1)) == [(2, B), (3, C), (4, A)]


def test_compare_and_swap_needs_the_revision_that_was_seen() -> None:
    db = Database()
    table = rows_table(db)
    put(db, table, A)
    with db.write(table) as txn:
        assert table.compare_and_swap(txn, A._replace(serial=7), 1) == A
    with db.write(table) as txn, pytest.raises(RevisionMismatch, match="at revision 2, not 1"):
        table.compare_and_swap(txn, A, 1)
    with db.write(table) as txn, pytest.raises(RowNotFound):
        table.compare_and_swap(txn, C, 1)
    with db.write(table) as txn:
        assert table.compare_and_delete(txn, ("s", "a"), 2).serial == 7


def test_a_unique_index_refuses_a_second_row_and_changes_nothing() -> None:
    db = Database()
    table = rows_table(db)
    put(db, table, A)
    with db.write(table) as txn:
        with pytest.raises(UniqueViolation, match="serial"):
            table.upsert(txn, B._replace(serial=1))
        table.upsert(txn, B)
    assert set(table.find(db.snapshot(), "color", ("s", "red"))) == {A, B}


def test_a_key_has_the_shape_of_the_others() -> None:
    db = Database()
    table: Table[tuple[str, ...]] = db.table("odd", Index("key", lambda row: row))
    with db.write(table) as txn:
        table.upsert(txn, ("a", "b"))
        with pytest.raises(KeyShape, match="2 component"):
            table.upsert(txn, ("a",))


def test_an_index_that_is_not_there_is_named() -> None:
    db = Database()
    table = rows_table(db)
    with pytest.raises(UnknownIndex, match="nowhere"):
        list(table.find(db.snapshot(), "nowhere", "x"))
    with pytest.raises(UnknownIndex, match="longest-prefix-match"):
        table.longest_match(db.snapshot(), "space", "10.0.0.1")


def test_a_table_is_initialized_when_all_who_fill_it_are_done() -> None:
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
