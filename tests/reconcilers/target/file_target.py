"""A target for tests: a directory with a file for each row of a table. The runner does not know it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from reconcilers.sliced_work import Slices, at_once
from reconcilers.target import Description
from reconcilers.target.reconciler import ObjectKey, Parts
from reconcilers.target.single_value import SingleValue
from statedb import Database, Index, Snapshot, Table


class Line(NamedTuple):
    name: str
    text: str


class Files(SingleValue):
    """Objects are ``(name,)``, values the texts of the files."""

    description = Description("file", 10, ("lines",), "directory", "a file for each line")

    def __init__(self, db: Database, directory: Path) -> None:
        self.lines: Table[Line] = db.table("lines", Index("key", lambda row: row.name))
        self._changes = self.lines.changes(db)
        self._directory = directory

    def changes(self, snapshot: Snapshot) -> Slices[dict[ObjectKey, Parts]]:
        return at_once({(change.row.name,): None for change in self._changes.next(snapshot)})

    def objects(self, snapshot: Snapshot) -> Iterable[ObjectKey]:
        return [(row.name,) for row in self.lines.all(snapshot)]

    def actual_objects(self) -> Iterable[ObjectKey]:
        return [(path.name,) for path in self._directory.iterdir()]

    def wanted(self, snapshot: Snapshot, key: ObjectKey) -> bool:
        return self.lines.get(snapshot, key[0]) is not None

    def desired_value(self, snapshot: Snapshot, key: ObjectKey) -> str:
        row = self.lines.get(snapshot, key[0])
        assert row is not None
        return row.text

    def actual_value(self, key: ObjectKey) -> str | None:
        path = self._directory / key[0]
        return path.read_text() if path.exists() else None

    def set_value(self, key: ObjectKey, value: str) -> None:
        (self._directory / key[0]).write_text(value)

    def delete(self, key: ObjectKey) -> None:
        (self._directory / key[0]).unlink()
