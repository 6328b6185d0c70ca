"""The database cell: the one in-memory database that all tables live in.

It holds no table of its own; every room that has tables makes them in its own cell.
"""

from __future__ import annotations

from dependency_injector import providers
from dependency_injector.containers import DeclarativeContainer

from cells.hive import Cell
from statedb import Database


class DatabaseContainer(DeclarativeContainer):
    """The graph of the database cell."""

    database = providers.Singleton(Database)


CELL = Cell(
    name="database",
    description="The in-memory tables with snapshots, transactions and watches.",
    container=DatabaseContainer,
)
