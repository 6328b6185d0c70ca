"""Change iterators: all rows first, then changes with deletions; bounded memory."""

from __future__ import annotations

import gc
import itertools
from unittest.mock import patch

from statedb import ChangeIterator, Database
from tests.statedb.rows import Row, put, rows_table

A, B, C = Row("s", "a"), Row("s", "b"), Row("s", "c")


def _changes(iterator: ChangeIterator[Row], db: Database) -> list[tuple[str, bool]]:
    return [(change.row.name, change.deleted) for change in iterator.next(db.snapshot())]


def test_all_rows_come_first_then_changes() -> None:
    db = Database()
    table = rows_table(db)
    put(db, table, A, B)
    iterator = table.changes(db)
    assert _changes(iterator, db) == [("a", False), ("b", False)]
    assert _changes(iterator, db) == []
    put(db, table, C)
    with db.write(table) as txn:
        table.delete(txn, ("s", "a"))
    assert _changes(iterator, db) == [("c", False), ("a", True)]


def test_iterators_that_begin_share_the_changes_of_a_table() -> None:
    db = Database()
    table = rows_table(db)
    put(db, table, A, B)
    first, second = (list(table.changes(db).next(db.snapshot())) for _ in range(2))
    assert len(first) == 2
    assert all(one is other for one, other in zip(first, second, strict=True))


def test_rows_that_are_skipped_are_not_returned() -> None:
    db = Database()
    table = rows_table(db)
    put(db, table, A)
    iterator = table.changes(db)
    iterator.skip(db.snapshot())
    assert _changes(iterator, db) == []
    put(db, table, B)
    assert _changes(iterator, db) == [("b", False)]
    put(db, table, C)
    iterator.skip(db.snapshot())
    assert (_changes(iterator, db), len(table.log)) == ([], 0)


def test_many_changes_of_a_row_are_returned_once() -> None:
    db = Database()
    table = rows_table(db)
    iterator = table.changes(db)
    for serial in range(5):
        put(db, table, A._replace(serial=serial))
    (change,) = iterator.next(db.snapshot())
    assert (change.row.serial, change.revision) == (4, 5)


def test_a_row_inserted_and_deleted_in_between_is_returned_as_deleted() -> None:
    db = Database()
    table = rows_table(db)
    iterator = table.changes(db)
    list(iterator.next(db.snapshot()))
    put(db, table, A)
    with db.write(table) as txn:
        table.delete(txn, ("s", "a"))
    assert _changes(iterator, db) == [("a", True)]


def test_only_changes_up_to_the_snapshot_are_returned() -> None:
    db = Database()
    table = rows_table(db)
    iterator = table.changes(db)
    put(db, table, A)
    early = db.snapshot()
    put(db, table, B)
    assert [change.row for change in iterator.next(early)] == [A]
    assert _changes(iterator, db) == [("b", False)]


def test_an_older_snapshot_than_the_last_one_returns_nothing() -> None:
    db = Database()
    table = rows_table(db)
    early = db.snapshot()
    put(db, table, A)
    iterator = table.changes(db)
    assert [change.row for change in iterator.next(early)] == [A]
    assert list(iterator.next(early)) == []


def test_the_log_drops_entries_that_all_iterators_have_seen() -> None:
    db = Database()
    table = rows_table(db)
    quick, slow = table.changes(db), table.changes(db)
    put(db, table, A, B)
    list(quick.next(db.snapshot()))
    assert len(table.log) == 2
    list(slow.next(db.snapshot()))
    assert len(table.log) == 0


def test_a_closed_or_dropped_iterator_keeps_no_entries() -> None:
    db = Database()
    table = rows_table(db)
    closed, dropped = table.changes(db), table.changes(db)
    put(db, table, A)
    closed.close()
    assert list(closed.next(db.snapshot())) == []
    del dropped
    gc.collect()
    put(db, table, B)
    assert len(table.log) <= 1
    table.changes(db).close()
    assert len(table.log) == 0


def test_a_slow_iterator_costs_memory_per_row_not_per_change() -> None:
    db = Database()
    table = rows_table(db)
    iterator = table.changes(db)
    for serial in range(5000):
        put(db, table, A._replace(serial=serial))
    assert len(table.log) <= 1025
    (change,) = iterator.next(db.snapshot())
    assert change.row.serial == 4999


def _counted(iterator: ChangeIterator[Row], db: Database, size: int) -> list[int]:
    return [len(some) for some in iterator.slices(db.snapshot(), size)]


def test_changes_in_slices_equal_next() -> None:
    db = Database()
    table = rows_table(db)
    rows = [Row("s", f"r{number}") for number in range(50)]
    put(db, table, *rows)
    whole, sliced = table.changes(db), table.changes(db)
    for step in range(3):
        found = [change for some in sliced.slices(db.snapshot(), 7) for change in some]
        assert found == list(whole.next(db.snapshot()))
        assert [change.revision for change in found] == sorted(c.revision for c in found)
        put(db, table, *(row._replace(serial=100 * step + n) for n, row in enumerate(rows[:30])))
        put(db, table, *(row._replace(colors=("red",)) for row in rows[20:40]))
        with db.write(table) as txn:
            table.delete(txn, ("s", f"r{step}"))
    assert len(table.log) > 0


def test_changes_of_a_row_that_are_apart_are_all_returned_in_their_order() -> None:
    db = Database()
    table = rows_table(db)
    for size in (1, 2, 3, 100):
        iterator = table.changes(db)
        iterator.skip(db.snapshot())
        start = table.revision(db.snapshot())
        for serial in range(4):
            put(db, table, A._replace(serial=serial), B._replace(serial=10 + serial))

        def apart(revision: int, following: int, start: int = start) -> bool:
            # The second and the third change of each row are close.
            return (revision - start, following - start) not in ((3, 5), (4, 6))

        slices = iterator.read(db.snapshot(), size, apart)
        found = [(of.row.name, (of.row.serial or 0) % 10) for some in slices for of in some]
        assert found == [(name, serial) for serial in (0, 2, 3) for name in "ab"]
        iterator.close()


def test_a_slice_is_bounded_and_so_is_the_release_of_the_log() -> None:
    db = Database()
    table = rows_table(db)
    iterator = table.changes(db)
    put(db, table, *(Row("s", f"r{number}") for number in range(50)))
    assert max(_counted(iterator, db, 7)) == 7
    put(db, table, *(Row("s", f"r{number}", serial=number) for number in range(50)))
    lengths = []
    for some in iterator.slices(db.snapshot(), 7):
        assert len(some) <= 7
        lengths.append(len(table.log))
    assert all(before - after <= 7 for before, after in itertools.pairwise(lengths))
    assert len(table.log) == 0
    assert _counted(iterator, db, 7) == []


def test_rows_that_were_replaced_are_kept_until_the_reader_of_them_releases_them() -> None:
    """The reader drops its snapshot of before in between: only the log has them then."""
    db = Database()
    table = rows_table(db)
    reader, other = table.changes(db), table.changes(db)
    put(db, table, *(Row("s", f"r{number}", serial=number) for number in range(50)))
    assert len([change for some in reader.read(db.snapshot(), 7) for change in some]) == 50
    for _ in other.next(db.snapshot()):
        pass
    assert len(table.log) == 50
    kept = [len(table.log) for _ in reader.release(7)]
    assert kept == list(range(43, 0, -7))
    assert len(table.log) == 0
    assert _counted(reader, db, 7) == []


def test_changes_of_slices_that_are_given_up_come_again() -> None:
    db = Database()
    table = rows_table(db)
    iterator = table.changes(db)
    for _ in range(2):
        put(db, table, *(Row("s", f"r{number}") for number in range(9)))
        slices = iterator.slices(db.snapshot(), 2)
        for _ in range(3):
            next(slices)
        slices.close()
        assert len(_changes(iterator, db)) == 9


def test_without_new_changes_the_log_is_not_searched_for_what_all_have_seen() -> None:
    """A round reads all of its tables, of which most have not changed."""
    db = Database()
    table = rows_table(db)
    put(db, table, A)
    reader, behind = table.changes(db), table.changes(db)
    assert [_changes(of, db) for of in (reader, behind)] == [[("a", False)]] * 2
    put(db, table, B)
    assert _changes(reader, db) == [("b", False)]
    with patch.object(table.log, "trim", wraps=table.log.trim) as trim:
        assert list(reader.slices(db.snapshot())) == []
        assert not trim.called
        assert list(behind.slices(db.snapshot())) != []
        assert trim.called
    assert len(table.log) == 0
