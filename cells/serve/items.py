"""Translations of sessions, monitoring stations and routes to items of the API."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from cells.api.model import (
    ExplainItem,
    FamilyCount,
    OriginItem,
    PeerCountItem,
    PeerMembers,
    RouteItem,
)
from speaker.api import (
    NOT_ACCEPTED,
    CollectorStatus,
    FamilyStatus,
    PeerCounts,
    PeerStatus,
    RouteView,
)
from speaker.nlri import prefix_to_text

if TYPE_CHECKING:
    from reconcilers.apply.received_verdict import ReceivedDecision
    from reconcilers.model import ObjectRef, RouteExplanation

KEPT: Final = "kept while the peer is away"
INTERNAL: Final = frozenset(
    {
        "port",
        "local_address",
        "route_set",
        "failures",
        "next_hops",
        "initial_table_sent",
    }
)
"""Fields of a session that no answer has."""


def peer_item(node: str, status: PeerStatus, bfd: str | None = None) -> dict[str, Any]:
    """Translate a session: its fields by their encoded names, without unknown and empty fields.

    ``bfd`` is the state of its BFD session, which the speaker does not have.
    """
    members = PeerMembers(
        bfd=bfd,
        families=[str(family.family) for family in status.families],
        received=list(_received(status.families)) if status.established else None,
        advertised=list(_advertised(status.families)) if status.established else None,
        stale=list(_stale(status.families)) or None,
    )
    item: dict[str, Any] = {"node": node}
    item.update(_members(status, INTERNAL))
    item.update(_members(members, frozenset()))
    return item


def peer_count_items(node: str, sessions: Iterable[PeerCounts]) -> list[PeerCountItem]:
    """Translate the counts of sessions."""
    return [
        PeerCountItem(
            node=node,
            instance=counts.instance,
            name=counts.name,
            routes_received=counts.received,
            routes_advertised=counts.advertised,
            updates_received=counts.updates_received,
            updates_sent=counts.updates_sent,
        )
        for counts in sessions
    ]


def collector_item(node: str, status: CollectorStatus) -> dict[str, Any]:
    """Translate the connection with a BMP monitoring station, as `peer_item` does a session."""
    return {"node": node, **dict(_members(status, frozenset()))}


def _members(
    status: PeerStatus | CollectorStatus | PeerMembers, hidden: frozenset[str]
) -> Iterator[tuple[str, Any]]:
    for name, encoded, default, is_time in _fields(type(status), hidden):
        value = getattr(status, name)
        if value is None or value == default:
            continue
        if is_time and not isinstance(value, datetime):
            value = datetime.fromtimestamp(int(value), UTC)
        elif type(value) is float:
            value = round(value, 1)
        yield encoded, value


@functools.cache
def _fields(
    struct: type[msgspec.Struct], hidden: frozenset[str]
) -> tuple[tuple[str, str, Any, bool], ...]:
    """Return name, encoded name, default, and whether it is a time, of the fields that are shown."""
    return tuple(
        (field.name, field.encode_name, field.default, field.encode_name.endswith("Time"))
        for field in msgspec.structs.fields(struct)
        if field.name not in hidden
    )


def _received(families: Sequence[FamilyStatus]) -> Iterator[FamilyCount]:
    for family in families:
        if family.negotiated:
            yield FamilyCount(
                family=str(family.family),
                routes=family.received,
                accepted=family.accepted,
                not_kept=family.not_kept or None,
            )


def _advertised(families: Sequence[FamilyStatus]) -> Iterator[FamilyCount]:
    for family in families:
        if family.negotiated or family.left_out:
            yield FamilyCount(
                family=str(family.family),
                routes=family.advertised,
                left_out=family.left_out or None,
                reason=family.note if family.left_out else None,
            )


def _stale(families: Sequence[FamilyStatus]) -> Iterator[FamilyCount]:
    for family in families:
        if family.stale:
            yield FamilyCount(
                family=str(family.family), routes=family.stale, reason=family.note or None
            )


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
        path_id=view.path_id,
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


def received_item(
    node: str, instance: str, view: RouteView, decision: ReceivedDecision | None = None
) -> RouteItem:
    """Translate a received route; ``decision`` is that of the import policy of the intent."""
    item = route_item(node, instance, view)
    status = view.reason
    if view.used:
        status = "accepted" if view.best else f"accepted, not best: {view.reason}"
    elif view.reason == NOT_ACCEPTED and decision is not None and not decision.accepted:
        status = decision.filter
    if view.kept:
        item, status = replace(item, kept=True), f"{status}, {KEPT}"
    if decision is None:
        return replace(item, status=status)
    return replace(
        item,
        status=status,
        accepted=decision.accepted,
        filter=decision.filter,
        object=None if decision.object is None else origin_item(decision.object),
    )


def origin_item(ref: ObjectRef) -> OriginItem:
    """Translate a reference to an object."""
    return OriginItem(kind=ref.kind, namespace=ref.namespace or None, name=ref.name)


def explain_item(node: str, explanation: RouteExplanation) -> ExplainItem:
    """Translate the explanation of a route."""
    family = explanation.family
    return ExplainItem(
        node=node,
        instance=explanation.instance,
        peer=explanation.peer,
        object=None if explanation.object is None else origin_item(explanation.object),
        address_type=explanation.type or None,
        family=None if family is None else str(family),
        prefix=(
            None
            if family is None or explanation.nlri is None
            else prefix_to_text(family, explanation.nlri)
        ),
        advertised=bool(explanation.advertised),
        advertised_prefixes=[]
        if family is None
        else [prefix_to_text(family, nlri) for nlri in explanation.advertised],
        reason=explanation.reason,
        message=explanation.message or None,
        rule=None if explanation.rule is None else origin_item(explanation.rule),
    )
