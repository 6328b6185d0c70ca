"""Translations of the agent, its sessions and its routes to items of the API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from cells.api.model import (
    ConditionItem,
    ExplainItem,
    FamilyCount,
    ObjectStatusItem,
    OriginItem,
    PartItem,
    PeerItem,
    ProblemItem,
    RouteItem,
    StatusItem,
    UnusedObjectsItem,
)
from cells.hive import HealthTree, Level, Readiness
from reconcilers.dialect import ObjectStatus
from reconcilers.model import Condition, ObjectRef, RouteExplanation
from reconcilers.unused_objects import UnusedObjects
from speaker.api import FamilyStatus, PeerStatus, RouteView
from speaker.nlri import prefix_to_text


def status_item(
    node: str,
    readiness: Readiness,
    health: HealthTree,
    *,
    peers: Iterable[PeerItem],
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


def peer_item(node: str, status: PeerStatus) -> PeerItem:
    """Translate a session's status; counts only while it is Established, a reason only if not."""
    up = status.established
    return PeerItem(
        node=node,
        instance=status.instance,
        name=status.name,
        address=status.address,
        interface=status.interface,
        local_asn=status.local_asn,
        peer_asn=status.peer_asn or None,
        peer_type=status.peer_type,
        state=status.state,
        since_time=datetime.fromtimestamp(int(status.since), UTC),
        families=[str(entry.family) for entry in status.families],
        received=_counts(status.families, "received") if up else None,
        advertised=_counts(status.families, "advertised") if up else None,
        reason=None if up else status.reason or "unknown",
        peer_router_id=status.peer_router_id,
        hold_seconds=status.hold_time if up else None,
        keepalive_seconds=status.keepalive_time if up else None,
        retry_seconds=None if status.retry_in is None else round(status.retry_in, 1),
        likely_cause=status.likely_cause or None,
        messages_received=status.messages_received,
        messages_sent=status.messages_sent,
        malformed_updates=status.malformed_updates or None,
        malformed=status.malformed or None,
        flaps=status.flaps,
        last_error=status.last_error,
        authentication=status.authentication,
        graceful_restart_seconds=status.graceful_restart_time,
    )


def _counts(families: Sequence[FamilyStatus], what: str) -> list[FamilyCount]:
    return [
        FamilyCount(
            family=str(entry.family),
            routes=getattr(entry, what),
            not_kept=(entry.not_kept or None) if what == "received" else None,
            left_out=(entry.left_out or None) if what == "advertised" else None,
            reason=entry.note if what == "advertised" and entry.left_out else None,
        )
        for entry in families
        if entry.negotiated or (what == "advertised" and entry.left_out)
    ]


def route_item(
    node: str, instance: str, view: RouteView, origins: Sequence[OriginItem] = ()
) -> RouteItem:
    """Translate a route."""
    return RouteItem(
        node=node,
        instance=instance,
        peer=view.peer,
        imported_from=view.imported_from,
        family=str(view.family),
        prefix=view.prefix,
        next_hop=view.next_hop,
        as_path=view.as_path,
        origin=view.origin,
        communities=list(view.communities),
        large_communities=list(view.large_communities),
        local_preference=view.local_preference,
        med=view.med,
        best=view.best,
        status=view.reason or None,
        origins=list(origins),
    )


def origin_item(ref: ObjectRef) -> OriginItem:
    """Translate a reference to an object."""
    return OriginItem(kind=ref.kind, namespace=ref.namespace or None, name=ref.name)


def explain_item(node: str, found: RouteExplanation) -> ExplainItem:
    """Translate the explanation of a route."""
    family = found.family
    return ExplainItem(
        node=node,
        instance=found.instance,
        peer=found.peer,
        object=None if found.object is None else origin_item(found.object),
        address_type=found.type or None,
        family=None if family is None else str(family),
        prefix=(
            None if family is None or found.nlri is None else prefix_to_text(family, found.nlri)
        ),
        advertised=bool(found.advertised),
        advertised_prefixes=[]
        if family is None
        else [prefix_to_text(family, nlri) for nlri in found.advertised],
        reason=found.reason,
        message=found.message or None,
        rule=None if found.rule is None else origin_item(found.rule),
    )
