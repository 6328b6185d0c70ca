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
from reconcilers.dialect import ObjectStatus
from reconcilers.model import Condition
from reconcilers.unused_objects import UnusedObjects


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
            for condition in sorted(conditions, key=lambda one: (one.object, one.type))
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
