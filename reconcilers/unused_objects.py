"""Objects of API dialects that are off: the table ``unused-objects``, a row for each dialect.

A node with such objects and without peers has a configuration that is not read. The rows name the
objects and the flag that switches the dialect on. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import msgspec

from reconcilers.dialect_entry import DialectEntry
from reconcilers.intent_tables import KEY
from resources.row_updates import replace_all
from statedb import Database, Index, Table

ObjectCounts: TypeAlias = Mapping[tuple[str, str], int]
"""The number of objects by API group and kind."""


class UnusedObjects(msgspec.Struct, frozen=True):
    """Row of the table: the objects of one dialect that is off."""

    dialect: str
    title: str
    counts: tuple[tuple[str, int], ...]
    """Kinds with the number of their objects, by kind; none is 0."""
    flag: str
    """The flag that switches the dialect on."""

    @property
    def objects(self) -> str:
        """The objects of a dialect that is off, for people: ``2 FRRConfiguration, 1 BFDProfile``."""
        return ", ".join(f"{number} {kind}" for kind, number in self.counts)

    @property
    def message(self) -> str:
        """A sentence about the unused objects of a dialect that is off, without its end."""
        return f"not read: {self.objects} ({self.title} is off; {self.flag} switches it on)"


class UnusedObjectsTable:
    """Keeps the table of a program in which some dialects are off."""

    def __init__(
        self, db: Database, dialects: Iterable[DialectEntry], flag: Callable[[str], str]
    ) -> None:
        """``dialects`` are the disabled dialects; ``flag`` returns the flag that enables one."""
        self.table: Table[UnusedObjects] = db.table(
            "unused-objects", Index(KEY, lambda row: row.dialect)
        )
        self.dialects = tuple(dialects)
        self._db = db
        self._flag = flag

    def put(self, counts: ObjectCounts) -> None:
        """Replace the rows of the table of unused objects; ``counts`` may have kinds of other APIs."""
        rows = []
        for dialect in self.dialects if counts else ():
            numbers = {
                kind.name: counts.get((kind.group, kind.name), 0) for kind in dialect.kinds()
            }
            present = tuple((name, number) for name, number in sorted(numbers.items()) if number)
            if present:
                flag = self._flag(dialect.name)
                rows.append(UnusedObjects(dialect.name, dialect.title, present, flag))
        with self._db.write(self.table) as txn:
            replace_all(txn, self.table, rows)
