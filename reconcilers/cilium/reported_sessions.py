"""The sessions of a node in the status of its CiliumBGPNodeConfig."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from reconcilers.cilium.node_status import STATES
from reconcilers.dialect import ReportedRoutes, ReportedSession, ReportedSessions
from resources.cilium.condition_types import SESSIONS_DOWN
from resources.cilium.kinds import NODE_CONFIG
from resources.cilium.status import NodeConfigStatus, RouteCount
from speaker.api import ESTABLISHED

_STATES: Final = {spelt: state for state, spelt in STATES.items()}


def reported(value: Mapping[str, Any]) -> Iterator[ReportedSession]:
    """Yield the sessions that a NodeConfig's status reports. Raises msgspec.ValidationError."""
    status = msgspec.convert(value.get("status") or {}, NodeConfigStatus)
    reasons = [
        line
        for condition in status.conditions
        if condition.type == SESSIONS_DOWN
        for line in condition.message.splitlines()
    ]
    for instance in status.bgp_instances:
        for peer in instance.peers:
            state = _STATES.get(peer.peering_state or "", peer.peering_state or "Unknown")
            is_up = state == ESTABLISHED
            mark = f"{instance.name}: peer {peer.name}: "
            yield ReportedSession(
                node=str(value["metadata"]["name"]),
                instance=instance.name,
                name=peer.name,
                address=peer.peer_address,
                local_asn=instance.local_asn,
                peer_asn=peer.peer_asn,
                state=state,
                since_time=peer.established_time,
                families=[_family(count) for count in peer.route_count],
                received=_counts(peer.route_count, "received") if is_up else None,
                advertised=_counts(peer.route_count, "advertised") if is_up else None,
                reason=next((r.removeprefix(mark) for r in reasons if r.startswith(mark)), None),
            )


def _family(count: RouteCount) -> str:
    return f"{count.afi}-{count.safi}"


def _counts(counts: Sequence[RouteCount], name: str) -> list[ReportedRoutes]:
    numbers: Iterable[tuple[str, int | None]] = ((_family(c), getattr(c, name)) for c in counts)
    return [ReportedRoutes(family, number) for family, number in numbers if number is not None]


REPORTED_SESSIONS: Final = ReportedSessions(NODE_CONFIG, reported)
