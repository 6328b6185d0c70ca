"""Whatever fails, waits or pauses, in whatever order: in the end the targets hold what is desired."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable

import pytest

from reconcilers.sliced_work import Slices, at_once
from reconcilers.target import Description, NotNow, Pace, ReconcileError, Runner
from reconcilers.target.reconciler import ObjectKey, Parts
from reconcilers.target.single_value import SingleValue
from statedb import Database, Index, Snapshot, Table
from tests.reconcilers.target.file_target import Line

MOST_ROUNDS = 200
"""Of one change: more follow each other without a pause."""


class Unreliable(SingleValue):
    """Objects are ``(name,)``; an object needs the one of its name in `parent`."""

    def __init__(self, db: Database, name: str, order: int, rng: random.Random) -> None:
        pace = Pace(
            settle=rng.choice([0.0, 0.0, 1.0]),
            interval=rng.choice([0.0, 0.0, 2.0]),
            last_retry=4.0,
            retry_changed=rng.random() < 0.5,
            compare=rng.choice([None, None, 7.0]),
            list_again=rng.choice([lambda: math.inf, lambda: 20.0]),
        )
        self.description = Description(name, order, (name,), "one", "objects", pace=pace)
        self.rows: Table[Line] = db.table(name, Index("key", lambda row: row.name))
        self._changes = self.rows.changes(db)
        self._rng = rng
        self.fails = True
        self.held: dict[str, str] = {}
        self.parent: Unreliable | None = None
        self.child: Unreliable | None = None

    def _fail(self) -> None:
        if self.fails and self._rng.random() < 0.35:
            seconds = self._rng.uniform(0.0, 5.0)
            errors = [
                NotNow(seconds),
                NotNow(seconds, all_objects=True),
                ReconcileError("rejected", retry_after=seconds),
                ReconcileError("no answer", all_objects=True),
                ReconcileError("conflict", outdated=True),
                ValueError("a defect"),
            ]
            raise self._rng.choice(errors)

    def changes(self, snapshot: Snapshot) -> Slices[dict[ObjectKey, Parts]]:
        return at_once({(change.row.name,): None for change in self._changes.next(snapshot)})

    def objects(self, snapshot: Snapshot) -> Iterable[ObjectKey]:
        return [(row.name,) for row in self.rows.all(snapshot)]

    def actual_objects(self) -> Iterable[ObjectKey]:
        self._fail()
        return [(name,) for name in self.held]

    def wanted(self, snapshot: Snapshot, key: ObjectKey) -> bool:
        return self.rows.get(snapshot, key[0]) is not None

    def possible(self, key: ObjectKey) -> bool:
        return self.parent is None or key[0] in self.parent.held

    def still_used(self, keys: Collection[ObjectKey]) -> Collection[ObjectKey]:
        return [key for key in keys if self.child is not None and key[0] in self.child.held]

    def desired_value(self, snapshot: Snapshot, key: ObjectKey) -> str:
        row = self.rows.get(snapshot, key[0])
        assert row is not None
        return row.text

    def actual_value(self, key: ObjectKey) -> str | None:
        self._fail()
        return self.held.get(key[0])

    def set_value(self, key: ObjectKey, value: str) -> None:
        self._fail()
        self.held[key[0]] = value

    def delete(self, key: ObjectKey) -> None:
        self._fail()
        del self.held[key[0]]


class World:
    """Two reconcilers of one target; rounds follow changes, and are done when objects are due."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)  # noqa: S311
        self.db = Database()
        self.first = Unreliable(self.db, "first", 10, self.rng)
        self.second = Unreliable(self.db, "second", 20, self.rng)
        self.first.child, self.second.parent = self.second, self.first
        self.runner = Runner(self.db, None, [self.first, self.second], self.rng)
        self.now = 0.0
        self.summary = self.runner.run(self.now)

    def change(self) -> None:
        rows = self.rng.choice([self.first, self.second]).rows
        name = self.rng.choice("uvw")
        with self.db.write(rows) as txn:
            if self.rng.random() < 0.3:
                rows.delete(txn, name)
            else:
                rows.upsert(txn, Line(name, str(self.rng.randint(0, 3))))

    def until(self, end: float) -> None:
        for _ in range(MOST_ROUNDS):
            if not self.runner.is_outdated():
                due = self.summary.retry_at
                if due is None or due > end:
                    self.now = end
                    return
                self.now = max(self.now, due)
            self.summary = self.runner.run(self.now)
        pytest.fail("rounds follow each other without a pause")


@pytest.mark.parametrize("seed", range(300))
def test_the_targets_hold_what_is_desired_once_they_answer(seed: int) -> None:
    world = World(seed)
    for _ in range(world.rng.randint(3, 15)):
        world.change()
        world.until(world.now + world.rng.choice([0.1, 1.0, 3.0]))
    first, second = world.first, world.second
    first.fails = second.fails = False
    world.until(world.now + 60.0)
    snapshot = world.db.snapshot()
    parents = {row.name: row.text for row in first.rows.all(snapshot)}
    children = {row.name: row.text for row in second.rows.all(snapshot)}
    assert first.held.items() >= parents.items()
    assert first.held.keys() - parents.keys() <= second.held.keys()
    assert second.held == {name: text for name, text in children.items() if name in first.held}
