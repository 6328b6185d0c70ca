"""The content of a draft or a BGPPolicy in one form, and the notes on fields without an equivalent."""

from __future__ import annotations

from typing import Any

import msgspec

from reconcilers.model import ObjectRef, Problem
from resources.antrea.kinds import BGP_POLICY

IP_TYPES = ("ClusterIP", "ExternalIP", "LoadBalancerIP")
"""In the order in which they are written."""


class Services(msgspec.Struct, frozen=True):
    """Addresses of Services; None selects all."""

    ip_types: tuple[str, ...]
    service_selector: dict[str, Any] | None = None
    namespace_selector: dict[str, Any] | None = None
    path: str = ""
    """Where it is in the object, for notes."""


class Neighbor(msgspec.Struct, frozen=True):
    """One peer; None is the default."""

    address: str
    asn: int
    path: str
    port: int | None = None
    ttl: int | None = None
    restart_time: int | None = None
    """0: graceful restart is off."""
    hold_time: int | None = None
    keepalive_time: int | None = None
    connect_retry_time: int | None = None
    secret: str | None = None


class Process(msgspec.Struct, frozen=True):
    """One BGP process."""

    path: str
    local_asn: int
    listen_port: int | None = None
    router_id: str | None = None
    confederation: dict[str, Any] | None = None
    services: tuple[Services, ...] = ()
    pod: bool = False
    egress: bool = False
    neighbors: tuple[Neighbor, ...] = ()


class Description(msgspec.Struct, frozen=True):
    """One policy."""

    name: str
    node_selector: dict[str, Any]
    processes: tuple[Process, ...]
    metadata: dict[str, dict[str, str]] = {}
    """Labels and annotations, where there are any."""


class Notes:
    """The notes of a conversion."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def add(self, name: str, field: str, message: str) -> None:
        """Add a note on a field of a policy."""
        ref = ObjectRef(BGP_POLICY.name, "", name)
        self.problems.append(Problem((ref,), field, message, category="unsupported"))
