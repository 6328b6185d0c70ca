"""Speed of the database: ``python -m bench.bench_statedb``.

Prints the median of several runs of each operation. The persistent maps under it are chosen by the
same operations on plain maps; with rpds-py installed it is measured beside immutables.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from immutables import Map

from statedb import Database, Index

ROWS = 10_000
RUNS = 5


class Row(NamedTuple):
    """One row, as small as a test needs."""

    space: str
    name: str
    value: int


def _time(work: Callable[[], Any]) -> float:
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _report(name: str, seconds: float, count: int) -> None:
    print(f"{name:<44} {seconds / count * 1e6:9.2f} us each")


def _maps() -> None:
    keys = [("default", f"name-{n}") for n in range(ROWS)]

    def fill_immutables() -> Any:  # noqa: ANN401
        made: Any = Map()
        for key in keys:
            made = made.set(key, 1)
        return made

    full = fill_immutables()
    _report("immutables.Map: set", _time(fill_immutables), ROWS)
    _report("immutables.Map: get", _time(lambda: [full.get(key) for key in keys]), ROWS)
    _report("immutables.Map: iterate", _time(lambda: list(full.values())), ROWS)
    if importlib.util.find_spec("rpds") is None:
        return
    rpds = importlib.import_module("rpds")

    def fill_rpds() -> Any:  # noqa: ANN401
        made: Any = rpds.HashTrieMap()
        for key in keys:
            made = made.insert(key, 1)
        return made

    trie = fill_rpds()
    _report("rpds.HashTrieMap: insert", _time(fill_rpds), ROWS)
    _report("rpds.HashTrieMap: get", _time(lambda: [trie.get(key) for key in keys]), ROWS)
    _report("rpds.HashTrieMap: iterate", _time(lambda: list(trie.values())), ROWS)


def _database() -> None:
    rows = [Row("default", f"name-{n}", n % 100) for n in range(ROWS)]

    def fresh() -> tuple[Database, Any]:
        db = Database()
        table: Any = db.table(
            "rows", Index("key", lambda r: (r.space, r.name)), [Index("value", lambda r: r.value)]
        )
        return db, table

    def load() -> tuple[Database, Any]:
        db, table = fresh()
        with db.write(table) as txn:
            for row in rows:
                table.upsert(txn, row)
        return db, table

    db, table = load()
    iterator = table.changes(db)
    list(iterator.next(db.snapshot()))

    def commit_each() -> None:
        for row in rows[:1000]:
            with db.write(table) as txn:
                table.upsert(txn, row._replace(value=row.value + 1))

    def follow() -> None:
        for row in rows[:1000]:
            with db.write(table) as txn:
                table.upsert(txn, row)
            list(iterator.next(db.snapshot()))

    snapshot = db.snapshot()
    _report("load in one transaction, two indexes", _time(load), ROWS)
    _report(f"one-row transaction among {ROWS:,} rows", _time(commit_each), 1000)
    _report("the same, with a change iterator", _time(follow), 1000)
    _report("snapshot", _time(lambda: [db.snapshot() for _ in range(ROWS)]), ROWS)
    _report("get", _time(lambda: [table.get(snapshot, (r.space, r.name)) for r in rows]), ROWS)
    _report("iterate", _time(lambda: list(table.all(snapshot))), ROWS)
    _report("find by a secondary index", _time(lambda: list(table.find(snapshot, "value", 5))), 100)


if __name__ == "__main__":
    _maps()
    _database()
