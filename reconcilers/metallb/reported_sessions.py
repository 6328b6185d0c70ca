"""The BGPPeers in ServiceBGPStatuses: to which peers a node was to advertise a Service.

The sessions of MetalLB are in the BGPSessionStates of FRR-k8s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from reconcilers.dialect import ReportedAdvertisements, ReportedPeers
from reconcilers.model import Peer
from resources.core.kinds import SERVICE
from resources.metallb.kinds import BGP_PEER, SERVICE_BGP_STATUS
from resources.metallb.status import ServiceBGPStatusStatus


def reported_peers(value: Mapping[str, Any]) -> Iterator[ReportedPeers]:
    """Yield the BGPPeers that a ServiceBGPStatus reports. Raises msgspec.ValidationError."""
    status = msgspec.convert(value.get("status") or {}, ServiceBGPStatusStatus)
    if status.node and status.service_name:
        service = f"{SERVICE.name}/{status.service_namespace}/{status.service_name}"
        yield ReportedPeers(status.node, frozenset(status.peers), service)


def _bgp_peers(peer: Peer) -> tuple[str, ...]:
    return tuple(ref.name for ref in peer.origins if ref.kind == BGP_PEER.name)


REPORTED_ADVERTISEMENTS: Final = ReportedAdvertisements(
    SERVICE_BGP_STATUS, reported_peers, _bgp_peers, of_kind=SERVICE.name
)
