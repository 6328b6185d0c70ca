"""What the speaker and the intent say, as items of the API. Pure translations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from cells.api.model import ExplainItem, FamilyCount, OriginItem, PeerItem, RouteItem
from reconcilers.model import ObjectRef, Verdict
from speaker.api import FamilyStatus, PeerStatus, RouteView
from speaker.nlri import prefix_to_text


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
