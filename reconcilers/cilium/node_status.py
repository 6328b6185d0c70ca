"""The status of one NodeConfig: the states of its sessions, and its conditions.

Source: Cilium's CiliumBGPNodeConfig. A session that is not established has no timers, no established
time and no route counts. The states that it passes in every attempt are reported as `active`: a dead
router must not cost a write for each attempt of each node.
"""

from __future__ import annotations

import calendar
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from reconcilers import conditions
from reconcilers.model import Condition
from reconcilers.overdue import is_tried
from resources import metav1
from resources.cilium import CiliumBGPNodeConfig
from resources.cilium.nodeconfig import NodeInstance, NodePeer
from resources.cilium.peerconfig import Afi, Safi
from resources.cilium.status import (
    AppliedTimers,
    InstanceStatus,
    NodeConfigStatus,
    PeerStatus,
    RouteCount,
)
from speaker.api import ESTABLISHED, FamilyStatus
from speaker.api import PeerStatus as Session
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family

Sessions = Mapping[tuple[str, str], Session]
"""By instance and peer."""

STATES: Final = {
    "Idle": "idle",
    "Connect": "connect",
    "Active": "active",
    "OpenSent": "open_sent",
    "OpenConfirm": "open_confirm",
    "Established": "established",
}
"""The states of RFC 4271 section 8.2.2, in Cilium's spelling."""
ACTIVE: Final = STATES["Active"]
FAMILIES: Final[dict[Family, tuple[Afi, Safi]]] = {
    IPV4_UNICAST: ("ipv4", "unicast"),
    IPV6_UNICAST: ("ipv6", "unicast"),
}
"""The families that are negotiated, with the names of the status."""
CLOCK_TOLERANCE_SECONDS: Final = 1
"""By which an established time may differ from the last one, as it is converted between clocks."""


def node_status(
    config: CiliumBGPNodeConfig,
    sessions: Sessions,
    reported: Sequence[Condition],
    before: NodeConfigStatus | None,
    now: float,
) -> NodeConfigStatus:
    """Return a NodeConfig's status with conditions; ``before`` is the last, ``now`` Unix time."""
    last = before if before is not None else NodeConfigStatus()
    instances = {instance.name: instance for instance in last.bgp_instances}
    known = {condition.type: condition for condition in last.conditions}
    return NodeConfigStatus(
        bgp_instances=tuple(
            _instance(instance, sessions, instances.get(instance.name))
            for instance in config.spec.bgp_instances
        ),
        conditions=tuple(
            conditions.encode(condition, known.get(condition.type), metav1.timestamp(now))
            for condition in reported
        ),
    )


def _instance(
    instance: NodeInstance, sessions: Sessions, before: InstanceStatus | None
) -> InstanceStatus:
    last = {peer.name: peer for peer in before.peers} if before is not None else {}
    peers = []
    for peer in instance.peers:
        session = sessions.get((instance.name, peer.name))
        address = peer.peer_address or (session.address if session is not None else None)
        if address is not None:
            peers.append(_peer(peer, address, session, last.get(peer.name)))
    return InstanceStatus(name=instance.name, local_asn=instance.local_asn, peers=tuple(peers))


def _peer(
    peer: NodePeer, address: str, session: Session | None, before: PeerStatus | None
) -> PeerStatus:
    if session is None:
        # The peer is not configured; the condition has the reason.
        return PeerStatus(
            name=peer.name,
            peer_address=address,
            peer_asn=peer.peer_asn or None,
            peering_state=STATES["Idle"],
        )
    if not session.established:
        return PeerStatus(
            name=peer.name,
            peer_address=address,
            peer_asn=session.peer_asn or peer.peer_asn or None,
            peering_state=_state(session, before),
        )
    return PeerStatus(
        name=peer.name,
        peer_address=address,
        peer_asn=session.peer_asn or peer.peer_asn or None,
        peering_state=STATES[session.state],
        timers=AppliedTimers(
            applied_hold_time_seconds=session.hold_time,
            applied_keepalive_seconds=session.keepalive_time,
        ),
        established_time=_established_time(session.since, before),
        route_count=tuple(_counts(session.families)),
    )


def _state(session: Session, before: PeerStatus | None) -> str:
    """Return the state of a session that is not established, `ACTIVE` after the first change."""
    state = STATES[session.state]
    last = before.peering_state if before is not None else None
    if last in (None, state, STATES[ESTABLISHED]) or not is_tried(session):
        return state
    return ACTIVE


def _established_time(since: float, before: PeerStatus | None) -> str:
    last = before.established_time if before is not None else None
    if last is not None and abs(_seconds(last) - since) <= CLOCK_TOLERANCE_SECONDS:
        return last
    return metav1.timestamp(since)


def _seconds(text: str) -> float:
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))


def _counts(statuses: Iterable[FamilyStatus]) -> Iterator[RouteCount]:
    for status in statuses:
        family = FAMILIES.get(status.family)
        if family is not None and status.negotiated:
            afi, safi = family
            yield RouteCount(
                afi=afi, safi=safi, received=status.received, advertised=status.advertised
            )
