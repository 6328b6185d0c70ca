"""The state of an agent as an item of the API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from cells.api.model import (
    ConditionItem,
    ObjectStatusItem,
    PartItem,
    ProblemItem,
    StatusItem,
    UnusedObjectsItem,
)
from cells.hive import HealthTree, Level, Readiness
from cells.intent.cell import IntentLoop
from cells.serve.routing import SpeakerRouting
from cells.state.node import ThisNode
from reconcilers.dialect import ObjectStatus
from reconcilers.intent.render import problems
from reconcilers.intent_tables import IntentTables
from reconcilers.model import Condition
from reconcilers.unused_objects import UnusedObjects
from resources.tables import Tables
from speaker.server import PREFIX_TABLE_FORM
from statedb import Database, Table


class AgentStatus:
    """The state of the agent."""

    def __init__(
        self,
        node: ThisNode,
        routing: SpeakerRouting,
        database: Database,
        resources: Tables,
        intent: IntentTables,
        loop: IntentLoop,
        statuses: Table[ObjectStatus],
        readiness: Readiness,
        health: HealthTree,
        unused: Table[UnusedObjects] | None,
    ) -> None:
        self._node = node.name
        self._routing = routing
        self._database = database
        self._resources = resources
        self._intent = intent
        self._loop = loop
        self._statuses = statuses
        self._readiness = readiness
        self._health = health
        self._unused = unused

    def item(self) -> StatusItem:
        """Return how the agent is."""
        snapshot = self._database.snapshot()
        return status_item(
            self._node,
            self._readiness,
            self._health,
            peers=self._routing.peers(peer=None, instance=None),
            rows=self._statuses.all(snapshot),
            conditions=self._intent.conditions.all(snapshot),
            problems=problems(snapshot, self._resources, self._intent),
            unused=() if self._unused is None else self._unused.all(snapshot),
            unrestricted=self._loop.unrestricted_addresses(),
        )


def status_item(
    node: str,
    readiness: Readiness,
    health: HealthTree,
    *,
    peers: Iterable[dict[str, Any]],
    rows: Iterable[ObjectStatus],
    conditions: Iterable[Condition],
    problems: Iterable[Mapping[str, Any]],
    unused: Iterable[UnusedObjects],
    unrestricted: Iterable[str],
) -> StatusItem:
    """Translate the state of an agent; scopes that are ok are not listed."""
    waiting = readiness.waiting()
    report = health.scope("report").scope("status").status
    return StatusItem(
        node=node,
        ready=not waiting,
        waiting=list(waiting.values()),
        health=str(health.level()),
        degraded=[
            PartItem(path="/".join(part.path), message=part.message, since_time=part.time)
            for part in health.report()
            if part.level is Level.DEGRADED
        ],
        prefix_tables=PREFIX_TABLE_FORM,
        reporting="there is no API server" if report is None else report.message,
        peers=list(peers),
        objects=[
            ObjectStatusItem(
                kind=row.object.kind,
                namespace=row.object.namespace or None,
                name=row.object.name,
                status=msgspec.to_builtins(row.status),
            )
            for row in sorted(rows, key=lambda row: row.object)
        ],
        conditions=[
            ConditionItem(
                kind=condition.object.kind,
                namespace=condition.object.namespace or None,
                name=condition.object.name,
                type=condition.type,
                status="True" if condition.status else "False",
                reason=condition.reason,
                message=condition.message or None,
            )
            for condition in sorted(
                conditions, key=lambda condition: (condition.object, condition.type)
            )
        ],
        problems=[
            ProblemItem(
                objects=problem["objects"],
                field=problem["field"],
                message=problem["message"],
                count=problem["count"],
                of_tenant=problem["ofTenant"],
            )
            for problem in problems
        ],
        unused_objects=[
            UnusedObjectsItem(
                dialect=row.dialect, objects=dict(row.counts), flag=row.flag, message=row.message
            )
            for row in sorted(unused, key=lambda row: row.dialect)
        ],
        unrestricted=list(unrestricted),
    )
