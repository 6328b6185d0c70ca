"""The sessions in BGPSessionStates, an object each, and the neighbors of FRRNodeStates.

Also of dialects that feed FRR-k8s.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from reconcilers.dialect import (
    ReportedAdvertisements,
    ReportedPeers,
    ReportedSession,
    ReportedSessions,
)
from reconcilers.model import Peer
from resources.frrk8s.kinds import BGP_SESSION_STATE, FRR_NODE_STATE
from resources.frrk8s.status import BGPSessionStateStatus, FRRNodeStateStatus

NEIGHBOR: Final = re.compile(r"^ *neighbor (\S+) .*remote-as ", re.MULTILINE)
SUCCESS: Final = "success"


def reported(value: Mapping[str, Any]) -> Iterator[ReportedSession]:
    """Yield the session that a BGPSessionState reports. Raises msgspec.ValidationError."""
    status = msgspec.convert(value.get("status") or {}, BGPSessionStateStatus)
    if status.node and status.peer:
        peer = _address(status.peer)
        yield ReportedSession(
            node=status.node,
            instance=status.vrf or "default",
            name=peer,
            address=peer,
            state=status.bgp_status or "Unknown",
        )


def _address(text: str) -> str:
    """Return an address as usual, and an interface as it is."""
    try:
        return str(ipaddress.ip_address(text.replace("-", ":") if text.count("-") == 7 else text))
    except ValueError:
        return text


def running_neighbors(value: Mapping[str, Any]) -> Iterator[ReportedPeers]:
    """Yield the neighbors whose sessions an FRRNodeState reports. Raises msgspec.ValidationError."""
    status = msgspec.convert(value.get("status") or {}, FRRNodeStateStatus)
    if not status.running_config:
        return
    results = (status.last_conversion_result, status.last_reload_result)
    failed = next((text for text in results if text and text != SUCCESS), "")
    neighbors = frozenset(NEIGHBOR.findall(status.running_config))
    yield ReportedPeers(str(value["metadata"]["name"]), neighbors, problem=failed)


def _ends(peer: Peer) -> tuple[str, ...]:
    end = peer.address or peer.interface
    return (end,) if end and peer.dialect == "frrk8s" else ()


REPORTED_ADVERTISEMENTS: Final = ReportedAdvertisements(FRR_NODE_STATE, running_neighbors, _ends)
REPORTED_SESSIONS: Final = ReportedSessions(BGP_SESSION_STATE, reported)
