"""BGPPolicy: the BGP process of the nodes that it selects, its routes and its peers.

The limits are from ``crd.antrea.io/v1alpha1``. AS numbers of four octets and the fields of
`NEXT_FIELDS` are proposed there and not released: an option of the dialect has them read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from resources.addresses import address_errors
from resources.crds.patterns import ADDRESS
from resources.crds.schema_markers import Rule, doc
from resources.errors import FieldError
from resources.json_names import json_name
from resources.label_selectors import LabelSelector, strict_selector_errors
from resources.meta import Resource, Struct

MAX_RELEASED_ASN: Final = 65535
"""The highest AS number of the released API."""
IpType: TypeAlias = Literal["ClusterIP", "LoadBalancerIP", "ExternalIP"]

_NEXT: Final = " Proposed for a later release of the API."
_Asn = Meta(ge=1, le=4294967294)
_OldAsn = Meta(ge=1, le=MAX_RELEASED_ASN)
_Port = Meta(ge=1, le=65535)
BfdInterval = Annotated[int, Meta(ge=50, le=60000)]
BfdMinInterval = Annotated[int, Meta(ge=10, le=60000)]

NEXT_FIELDS: Final = (
    "hold_time_seconds",
    "keepalive_interval_seconds",
    "connect_retry_seconds",
    "idle_hold_time_after_reset_seconds",
    "graceful_restart_enabled",
    "bfd",
)
"""Fields of a peer that are proposed and not released."""


class Confederation(Struct, frozen=True):
    """RFC 5065; the AS of the policy is the member AS."""

    identifier: Annotated[
        Annotated[int, _OldAsn] | None,
        doc("The AS number of the confederation, which peers outside of it see. Required."),
    ] = None
    member_asns: Annotated[
        tuple[Annotated[int, _OldAsn], ...],
        doc("The AS numbers of the other members, in any order."),
    ] = ()


class ServiceAdvertisement(Struct, frozen=True):
    """Addresses of Services."""

    ip_types: Annotated[
        tuple[IpType, ...],
        doc("The types of addresses that are advertised, of all Services."),
    ] = ()


class PodAdvertisement(Struct, frozen=True):
    """Present: the pod CIDRs of the node are advertised."""


class EgressAdvertisement(Struct, frozen=True):
    """Present: the egress IPs of the node are advertised."""


class Advertisements(Struct, frozen=True):
    """Advertised addresses, to all peers of the family."""

    service: Annotated[ServiceAdvertisement | None, doc("Addresses of Services.")] = None
    pod: Annotated[
        PodAdvertisement | None, doc("If present, the pod CIDRs of the node are advertised.")
    ] = None
    egress: Annotated[
        EgressAdvertisement | None,
        doc("If present, the egress IPs that are assigned to the node are advertised."),
    ] = None


class Bfd(Struct, frozen=True):
    """RFC 5880, with the names of both proposals (antrea#8325, antrea#8360): neither is merged."""

    cel: ClassVar[tuple[Rule, ...]] = tuple(
        Rule(f"!has(self.{name}) || !has(self.{other})", f"is not set together with {name}", other)
        for name, other in (
            ("transmitIntervalMilliseconds", "minTransmitIntervalMilliseconds"),
            ("receiveIntervalMilliseconds", "minReceiveIntervalMilliseconds"),
        )
    )
    enabled: Annotated[bool, doc("Whether BFD is used.")]
    transmit_interval_milliseconds: Annotated[
        BfdInterval | None, doc("The minimum interval between sent packets; 300 by default.")
    ] = None
    receive_interval_milliseconds: Annotated[
        BfdInterval | None, doc("The minimum interval between received packets; 300 by default.")
    ] = None
    min_transmit_interval_milliseconds: Annotated[
        BfdMinInterval | None, doc("transmitIntervalMilliseconds in the second proposal.")
    ] = None
    min_receive_interval_milliseconds: Annotated[
        BfdMinInterval | None, doc("receiveIntervalMilliseconds in the second proposal.")
    ] = None
    detection_multiplier: Annotated[
        int, Meta(ge=1, le=255), doc("The missed packets after which the peer is down.")
    ] = 3


class BGPPeer(Struct, frozen=True):
    """One router."""

    cel: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.keepaliveIntervalSeconds) || self.keepaliveIntervalSeconds < "
            "(has(self.holdTimeSeconds) ? self.holdTimeSeconds : 90)",
            "is not below holdTimeSeconds",
            "keepaliveIntervalSeconds",
        ),
    )
    address: Annotated[str, doc("The IP address of the router.", ADDRESS)]
    asn: Annotated[int, _Asn, doc("Its AS number.")]
    port: Annotated[int, _Port, doc("The TCP port on which it listens.")] = 179
    multihop_ttl: Annotated[
        int,
        Meta(ge=1, le=255),
        doc("The TTL of packets to an eBGP peer: 1 reaches a directly connected one."),
    ] = msgspec.field(default=1, name="multihopTTL")
    graceful_restart_time_seconds: Annotated[
        int,
        Meta(ge=1, le=3600),
        doc("How long the peer keeps the routes of a node that restarts (RFC 4724)."),
    ] = 120
    hold_time_seconds: Annotated[
        Annotated[int, Meta(ge=3, le=65535)] | None,
        doc("The hold time that is proposed; 90 by default." + _NEXT),
    ] = None
    keepalive_interval_seconds: Annotated[
        Annotated[int, Meta(ge=1, le=65534)] | None,
        doc(
            "How often a KEEPALIVE is sent, below holdTimeSeconds; by default a third of the "
            "negotiated hold time." + _NEXT
        ),
    ] = None
    connect_retry_seconds: Annotated[
        Annotated[int, Meta(ge=2, le=65535)] | None,
        doc("The pause between two connection attempts; 120 by default." + _NEXT),
    ] = None
    idle_hold_time_after_reset_seconds: Annotated[
        Annotated[int, Meta(ge=1, le=3600)] | None,
        doc("The first pause after a session has ended." + _NEXT),
    ] = None
    graceful_restart_enabled: Annotated[
        bool | None, doc("Whether graceful restart is offered; true by default." + _NEXT)
    ] = None
    bfd: Annotated[Bfd | None, doc("Bidirectional forwarding detection." + _NEXT)] = None


class BGPPolicySpec(Struct, frozen=True):
    """The specification."""

    node_selector: Annotated[
        LabelSelector, doc("The nodes that it selects, by their labels; empty selects all.")
    ]
    local_asn: Annotated[int, _Asn, doc("The AS number of the nodes.")]
    listen_port: Annotated[int, _Port, doc("The TCP port on which the nodes listen.")] = 179
    confederation: Annotated[
        Confederation | None, doc("The confederation that the AS of the nodes is a member of.")
    ] = None
    advertisements: Annotated[
        Advertisements, doc("What is advertised, to all peers of the family.")
    ] = msgspec.field(default_factory=Advertisements)
    bgp_peers: Annotated[tuple[BGPPeer, ...], doc("The routers.")] = ()


class BGPPolicy(Resource, frozen=True):
    """One policy; of several that select a node the oldest one is effective."""

    spec: Annotated[BGPPolicySpec, doc("The nodes, their BGP process, its routes and its peers.")]


def bgp_policy_errors(policy: BGPPolicy) -> Iterator[FieldError]:
    """Yield the rules that an Antrea BGPPolicy breaks, and a schema cannot express."""
    spec = policy.spec
    yield from strict_selector_errors(spec.node_selector, "spec.nodeSelector")
    if spec.confederation is not None and spec.confederation.identifier is None:
        yield FieldError("spec.confederation.identifier", "is required in a confederation")
    for i, peer in enumerate(spec.bgp_peers):
        path = f"spec.bgpPeers[{i}]"
        yield from address_errors(peer.address, f"{path}.address")
        if peer.bfd is not None:
            yield from _two_names(peer.bfd, f"{path}.bfd")
        hold, keepalive = peer.hold_time_seconds or 90, peer.keepalive_interval_seconds
        if keepalive is not None and keepalive >= hold:
            where = f"{path}.keepaliveIntervalSeconds"
            yield FieldError(where, f"{keepalive} is not below holdTimeSeconds ({hold})")


def _two_names(bfd: Bfd, path: str) -> Iterator[FieldError]:
    """Yield an error for each interval that has the names of both proposals."""
    for way in ("transmit", "receive"):
        name = f"{way}_interval_milliseconds"
        if getattr(bfd, name) is not None and getattr(bfd, f"min_{name}") is not None:
            text = f"is not set together with {json_name(name)}"
            yield FieldError(f"{path}.{json_name(f'min_{name}')}", text)
