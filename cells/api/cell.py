"""The api cell: composes server and facts.

Kept apart from `cells.api`'s own module, which the command line imports and which has to be cheap.
"""

from __future__ import annotations

from dependency_injector import providers
from dependency_injector.containers import DeclarativeContainer

from cells.api.facts import AgentFacts
from cells.api.server import ApiOptions, ApiServer
from cells.hive import Cell, Health, Hive, Lifecycle
from cells.intent import IntentLoop
from cells.node import ThisNode
from cells.status import NodeStatuses
from reconcilers.tables import IntentTables
from speaker.server import Speaker
from statedb import Database


class ApiContainer(DeclarativeContainer):
    """The graph of the api cell."""

    lifecycle = providers.Dependency(instance_of=Lifecycle)
    health = providers.Dependency(instance_of=Health)
    options = providers.Dependency(instance_of=ApiOptions)
    hive = providers.Dependency(instance_of=Hive)
    this_node = providers.Dependency(instance_of=ThisNode)
    speaker = providers.Dependency(instance_of=Speaker)
    database = providers.Dependency(instance_of=Database)
    intent_tables = providers.Dependency(instance_of=IntentTables)
    intent = providers.Dependency(instance_of=IntentLoop)
    node_statuses = providers.Dependency(instance_of=NodeStatuses)
    _facts = providers.Singleton(
        AgentFacts, this_node, speaker, database, intent_tables, intent, node_statuses, hive
    )
    api_server = providers.Singleton(ApiServer, lifecycle, health, options, hive, _facts)
    invokes = providers.List(api_server)


CELL = Cell(
    name="api",
    description="Answers the waggle command on a Unix socket.",
    container=ApiContainer,
    options=ApiOptions,
)
