"""The status of a CiliumBGPNodeConfig: the state of a node's sessions, written by its agent.

No row has it: it is no input, and reading it back would make each write a change.
"""

from __future__ import annotations

from typing import Annotated

from resources.cilium.field_rules import AnyAsn, Name
from resources.cilium.peerconfig import Afi, Safi
from resources.crds.schema_markers import NAMED_LIST, doc
from resources.meta import Struct
from resources.metav1 import Conditions


class RouteCount(Struct, frozen=True):
    """The routes of one family."""

    afi: Annotated[Afi, doc("The address family.")]
    safi: Annotated[Safi, doc("The subsequent address family.")]
    received: Annotated[int | None, doc("Routes received from the peer.")] = None
    advertised: Annotated[int | None, doc("Routes advertised to the peer.")] = None


class AppliedTimers(Struct, frozen=True):
    """Seconds, as both sides agreed on them (RFC 4271 section 4.2)."""

    applied_hold_time_seconds: Annotated[
        int | None, doc("The hold time in force: the lower one of both sides' offers.")
    ] = None
    applied_keepalive_seconds: Annotated[
        int | None, doc("How often a KEEPALIVE is sent; at most a third of the hold time.")
    ] = None


class PeerStatus(Struct, frozen=True):
    """One session."""

    name: Annotated[Name, doc("The peer's name in the specification.")]
    peer_address: Annotated[str, doc("The peer's address.")]
    peer_asn: Annotated[
        AnyAsn | None,
        doc("The peer's AS number; where any is accepted, the one in the peer's OPEN."),
    ] = None
    peering_state: Annotated[
        str | None,
        doc("The state of the session (RFC 4271 section 8.2.2); routes flow when established."),
    ] = None
    timers: Annotated[AppliedTimers | None, doc("The timers that were negotiated.")] = None
    established_time: Annotated[
        str | None, doc("When the session was established (RFC 3339, UTC).")
    ] = None
    route_count: Annotated[tuple[RouteCount, ...], doc("How many routes, for each family.")] = ()


class InstanceStatus(Struct, frozen=True):
    """One BGP router on the node."""

    name: Annotated[Name, doc("The instance's name in the specification.")]
    local_asn: Annotated[AnyAsn | None, doc("Its AS number.")] = None
    peers: Annotated[tuple[PeerStatus, ...], doc("Its sessions.", NAMED_LIST)] = ()


class NodeConfigStatus(Struct, frozen=True):
    """One node."""

    bgp_instances: Annotated[
        tuple[InstanceStatus, ...], doc("The BGP routers on this node.", NAMED_LIST)
    ] = ()
    conditions: Conditions = ()
