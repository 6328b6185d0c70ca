"""The sessions in BGPSessionStates, an object each; also of dialects that feed FRR-k8s."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from reconcilers.dialect import ReportedSession, ReportedSessions
from resources.frrk8s.kinds import BGP_SESSION_STATE
from resources.frrk8s.status import BGPSessionStateStatus


def reported(value: Mapping[str, Any]) -> Iterator[ReportedSession]:
    """Yield the session of a BGPSessionState. Raises msgspec.ValidationError."""
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


REPORTED_SESSIONS: Final = ReportedSessions(BGP_SESSION_STATE, reported)
