"""The resources cell: the tables of what the cluster says, whoever fills them.

Sources are cells of their own; this one only holds the tables and the causes of what is not yet
reconciled.
"""

from __future__ import annotations

from dependency_injector import providers
from dependency_injector.containers import DeclarativeContainer

from cells.hive import Cell
from resources.causes import PendingCauses
from resources.tables import Tables
from statedb import Database


class ResourcesContainer(DeclarativeContainer):
    """The graph of the resources cell."""

    database = providers.Dependency(instance_of=Database)
    tables = providers.Singleton(Tables, database)
    causes = providers.Singleton(PendingCauses)


CELL = Cell(
    name="resources",
    description="Tables of Kubernetes objects.",
    container=ResourcesContainer,
)
