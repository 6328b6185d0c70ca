"""The database: snapshots, transactions over several tables, and the Observable."""

from __future__ import annotations

import threading

import pytest

from statedb import Database, DuplicateTable, Index, TableNotLocked, TransactionClosed
from tests.statedb.rows import Row, put, rows_table

A, B = Row("s", "a"), Row("s", "b")


def test_a_snapshot_never_changes() -> None:
    db = Database()
    table = rows_table(db)
    put(db, table, A)
    before = db.snapshot()
    put(db, table, B)
    assert set(table.all(before)) == {A}
    assert set(table.all(db.snapshot())) == {A, B}


def test_only_the_transaction_reads_its_uncommitted_writes() -> None:
    db = Database()
    table = rows_table(db)
    with db.write(table) as txn:
        table.upsert(txn, A)
        assert table.get(txn, ("s", "a")) == A
        assert table.get(db.snapshot(), ("s", "a")) is None


def test_a_trial_shows_what_writes_would_result_in_and_changes_nothing() -> None:
    db = Database()
    table = rows_table(db)
    put(db, table, A)
    seen: list[int] = []
    table.observable.subscribe(seen.append)
    emitted = list(seen)
    trial = db.trial(table)
    table.upsert(trial, B)
    with db.write(table) as txn:  # no lock is held
        table.delete(txn, ("s", "a"))
    assert set(table.all(trial.snapshot())) == {A, B}
    assert set(table.all(db.snapshot())) == set()
    assert len(seen) == len(emitted) + 1


def test_tables_are_committed_together() -> None:
    db = Database()
    one, two = rows_table(db, "one"), rows_table(db, "two")
    with db.write(two, one) as txn:
        one.upsert(txn, A)
        two.upsert(txn, B)
    snapshot = db.snapshot()
    assert (one.count(snapshot), two.count(snapshot)) == (1, 1)


def test_an_exception_aborts_everything() -> None:
    db = Database()
    one, two = rows_table(db, "one"), rows_table(db, "two")

    def fail() -> None:
        with db.write(one, two) as txn:
            one.upsert(txn, A)
            two.upsert(txn, B)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    snapshot = db.snapshot()
    assert (one.count(snapshot), two.count(snapshot), one.revision(snapshot)) == (0, 0, 0)
    put(db, one, A)


def test_only_named_tables_may_be_written() -> None:
    db = Database()
    one, two = rows_table(db, "one"), rows_table(db, "two")
    with db.write(one) as txn, pytest.raises(TableNotLocked, match="two"):
        two.upsert(txn, A)


def test_a_transaction_is_closed_after_its_block() -> None:
    db = Database()
    table = rows_table(db)
    with db.write(table) as txn:
        pass
    with pytest.raises(TransactionClosed):
        table.upsert(txn, A)
    with pytest.raises(TransactionClosed):
        table.get(txn, ("s", "a"))


def test_names_are_unique_and_well_formed() -> None:
    db = Database()
    rows_table(db, "one")
    with pytest.raises(DuplicateTable):
        rows_table(db, "one")
    with pytest.raises(ValueError, match="not a table name"):
        rows_table(db, "One!")


def test_the_observable_emits_after_the_commit_is_visible() -> None:
    db = Database()
    table, other = rows_table(db), rows_table(db, "other")
    seen: list[tuple[int, int]] = []
    table.observable.subscribe(lambda r: seen.append((r, table.count(db.snapshot()))))
    put(db, table, A, B)
    put(db, other, A)
    assert seen == [(2, 2)]


def test_a_failing_subscriber_affects_neither_others_nor_the_writer() -> None:
    errors: list[BaseException] = []
    db = Database(errors.append)
    table = rows_table(db)
    seen: list[int] = []

    def fail(_: int) -> None:
        raise ValueError

    table.observable.subscribe(fail)
    subscription = table.observable.subscribe(seen.append)
    put(db, table, A)
    assert seen == [1]
    assert [type(error) for error in errors] == [ValueError]
    subscription.dispose()
    put(db, table, B)
    assert seen == [1]


def test_concurrent_writers_of_several_tables_lose_nothing() -> None:
    """Threads that lock overlapping sets of tables: no deadlock, no lost write, no torn snapshot."""
    db = Database()
    tables = [rows_table(db, f"t{n}") for n in range(3)]
    iterators = [table.changes(db) for table in tables]
    torn: list[tuple[int, ...]] = []

    def writer(number: int) -> None:
        for turn in range(50):
            with db.write(*tables[number % 2 :]) as txn:
                for table in tables[number % 2 :]:
                    table.upsert(txn, Row(str(number), str(turn)))

    def reader() -> None:
        for _ in range(200):
            snapshot = db.snapshot()
            counts = tuple(table.count(snapshot) for table in tables)
            if counts[1] != counts[2]:  # always written together
                torn.append(counts)

    threads = [threading.Thread(target=writer, args=(n,)) for n in range(4)]
    threads.append(threading.Thread(target=reader))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert torn == []
    snapshot = db.snapshot()
    assert [table.count(snapshot) for table in tables] == [100, 200, 200]
    for table, iterator in zip(tables, iterators, strict=True):
        changes = list(iterator.next(snapshot))
        assert {change.row for change in changes} == set(table.all(snapshot))
        revisions = [change.revision for change in changes]
        assert revisions == sorted(revisions)


def test_the_tables_that_changed_between_two_snapshots() -> None:
    db = Database()
    pods = db.table("pods", Index[str]("name", lambda row: row))
    services = db.table("services", Index[str]("name", lambda row: row))
    before = db.snapshot()
    done = services.register_initializer("source")
    with db.write(pods, services) as txn:
        pods.upsert(txn, "web")
        done(txn)
    nodes = db.table("nodes", Index[str]("name", lambda row: row))
    after = db.snapshot()
    assert db.changed(None, before) == {pods, services, nodes}, "of no snapshot every table"
    assert db.changed(before.revisions, after) == {pods}, (
        "an initializer that completes changes no row"
    )
    assert not db.changed(after.revisions, db.snapshot())
    with db.write(nodes) as txn:
        nodes.upsert(txn, "n1")
    assert db.changed(before.revisions, db.snapshot()) == {pods, nodes}


def test_the_state_of_a_table_stays_until_it_changes_and_no_other_transaction_has_it() -> None:
    db = Database()
    pods = db.table("pods", Index[str]("name", lambda row: row))
    before = db.snapshot().state(pods)
    assert db.snapshot().state(pods) is before
    trial = db.trial(pods)
    pods.upsert(trial, "web")
    assert db.snapshot().state(pods) is before
    with db.write(pods) as txn:
        pods.upsert(txn, "db")
    now = db.snapshot().state(pods)
    assert now is not before
    assert now is not trial.state(pods), "of the same revision, with other rows"
