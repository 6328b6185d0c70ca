"""What is said of the agent, its sessions and its routes, as items of the API. Pure translations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from cells.api.model import (
    ConditionItem,
    ExplainItem,
    FamilyCount,
    OriginItem,
    PartItem,
    PeerItem,
    RouteItem,
    StatusItem,
)
from cells.hive import HealthTree, Level, Readiness
from reconcilers.model import Condition, ObjectRef, Verdict
from reconcilers.report.round import NodeStatus
from speaker.api import FamilyStatus, PeerStatus, RouteView
from speaker.nlri import prefix_to_text


def status_item(
    node: str,
    readiness: Readiness,
    health: HealthTree,
    row: NodeStatus | None,
    conditions: Iterable[Condition],
) -> StatusItem:
    """Translate how an agent is; what is well is not listed."""
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
        node_config=None if row is None else row.node,
        status=None if row is None else msgspec.to_builtins(row.status),
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
        messages_received=status.messages_received,
        messages_sent=status.messages_sent,
        flaps=status.flaps,
        last_error=status.last_error,
        authentication=status.authentication,
        graceful_restart_seconds=status.graceful_restart_time,
    )


def _counts(families: Sequence[FamilyStatus], what: str) -> list[FamilyCount]:
    return [
        FamilyCount(family=str(entry.family), routes=getattr(entry, what))
        for entry in families
        if entry.negotiated
    ]


def route_item(
    node: str, instance: str, view: RouteView, origins: Sequence[OriginItem] = ()
) -> RouteItem:
    """Translate a route."""
    return RouteItem(
        node=node,
        instance=instance,
        peer=view.peer,
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


def explain_item(node: str, verdict: Verdict) -> ExplainItem:
    """Translate what becomes of a prefix."""
    family = verdict.family
    return ExplainItem(
        node=node,
        instance=verdict.instance,
        peer=verdict.peer,
        object=None if verdict.object is None else origin_item(verdict.object),
        address_type=verdict.type or None,
        family=None if family is None else str(family),
        prefix=(
            None if family is None or verdict.nlri is None else prefix_to_text(family, verdict.nlri)
        ),
        advertised=bool(verdict.told),
        told=[] if family is None else [prefix_to_text(family, nlri) for nlri in verdict.told],
        reason=verdict.reason,
        message=verdict.message or None,
        rule=None if verdict.rule is None else origin_item(verdict.rule),
    )
