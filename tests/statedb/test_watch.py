"""Watches of a row, a group or a table fire once, after the commit is visible."""

from __future__ import annotations

import asyncio
import threading

from statedb import Database
from tests.statedb.rows import Row, put, rows_table

A, B = Row("s", "a", ("red",)), Row("t", "b")


def test_a_row_is_watched() -> None:
    db = Database()
    table = rows_table(db)
    watch = table.watch_key(db.snapshot(), ("s", "a"))
    put(db, table, B)
    assert not watch.fired
    put(db, table, A)
    assert watch.fired


def test_a_group_is_watched_also_for_deletions_and_moves() -> None:
    db = Database()
    table = rows_table(db)
    put(db, table, A)
    by_space = table.watch_prefix(db.snapshot(), "key", ("s",))
    by_color = table.watch_prefix(db.snapshot(), "color", ("s", "red"))
    put(db, table, B)
    assert not by_space.fired
    put(db, table, A._replace(colors=("blue",)))
    assert by_space.fired
    assert by_color.fired


def test_a_table_is_watched_and_the_watch_fires_once() -> None:
    db = Database()
    table = rows_table(db)
    calls: list[int] = []
    watch = table.watch_table(db.snapshot())
    watch.add_callback(lambda: calls.append(table.count(db.snapshot())))
    put(db, table, A)
    put(db, table, B)
    assert calls == [1]
    watch.add_callback(lambda: calls.append(99))
    assert calls == [1, 99]


def test_a_commit_before_the_watch_fires_it_immediately() -> None:
    db = Database()
    table = rows_table(db)
    before = db.snapshot()
    put(db, table, A)
    assert table.watch_key(before, ("s", "a")).fired
    assert table.watch_table(before).fired
    assert not table.watch_key(before, ("s", "other")).fired
    assert len(table.watches) == 1


def test_a_failing_callback_does_not_affect_the_writer() -> None:
    errors: list[BaseException] = []
    db = Database(errors.append)
    table = rows_table(db)

    def fail() -> None:
        raise ValueError

    table.watch_table(db.snapshot()).add_callback(fail)
    put(db, table, A)
    assert [type(error) for error in errors] == [ValueError]


def test_a_task_waits_for_a_commit_in_another_thread() -> None:
    db = Database()
    table = rows_table(db)

    async def wait() -> int:
        watch = table.watch_table(db.snapshot())
        thread = threading.Thread(target=put, args=(db, table, A))
        thread.start()
        await asyncio.wait_for(watch.wait(), 10)
        thread.join()
        return table.count(db.snapshot())

    assert asyncio.run(wait()) == 1


def test_waiting_can_be_cancelled() -> None:
    db = Database()
    table = rows_table(db)

    async def wait() -> None:
        watch = table.watch_table(db.snapshot())
        task = asyncio.create_task(watch.wait())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        put(db, table, A)
        await asyncio.sleep(0)

    asyncio.run(wait())
