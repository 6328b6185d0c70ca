"""CiliumBGPPeerConfig: session parameters and advertisements, shared by peers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from resources.cilium.field_rules import ConnectRetryTime, Port
from resources.crds.schema_markers import ATOMIC_MAP, Rule, doc, known_values
from resources.empty_fields import empty_is_absent
from resources.errors import FieldError
from resources.label_selectors import LabelSelector, selector_errors
from resources.meta import Resource, Struct

_BfdInterval = Meta(ge=10, le=60000)
AFIS: Final = ("ipv4", "ipv6", "l2vpn", "ls", "opaque")
SAFIS: Final = (
    "unicast",
    "multicast",
    "mpls_label",
    "encapsulation",
    "vpls",
    "evpn",
    "ls",
    "sr_policy",
    "mup",
    "mpls_vpn",
    "mpls_vpn_multicast",
    "route_target_constraints",
    "flowspec_unicast",
    "flowspec_vpn",
    "key_value",
)
Afi = Annotated[str, known_values(*AFIS)]
Safi = Annotated[str, known_values(*SAFIS)]


class Transport(Struct, frozen=True):
    """TCP; localPort existed in v2alpha1 and has no effect."""

    peer_port: Annotated[Port, doc("The TCP port on which the peer listens.")] = 179
    source_interface: Annotated[
        str | None,
        doc(
            "The interface whose address the session is opened from. It has to have exactly one "
            "address of the peer's family that is usable: not loopback, not link-local."
        ),
    ] = None
    local_port: Annotated[int | None, doc("Has no effect.", versions=("v2alpha1",))] = None

    def __post_init__(self) -> None:
        """Take an empty sourceInterface as none."""
        empty_is_absent(self, "source_interface")


class Timers(Struct, frozen=True):
    """Seconds."""

    cel: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.keepAliveTimeSeconds <= self.holdTimeSeconds",
            "is greater than holdTimeSeconds",
            "keepAliveTimeSeconds",
        ),
    )
    connect_retry_time_seconds: ConnectRetryTime = 120
    hold_time_seconds: Annotated[
        int,
        Meta(ge=3, le=65535),
        doc(
            "How long the peer may be silent before the session ends (RFC 4271 section 4.2). The "
            "lower one of both sides' values is used. A change resets the session."
        ),
    ] = 90
    keep_alive_time_seconds: Annotated[
        int,
        Meta(ge=1, le=65535),
        doc(
            "How often a KEEPALIVE is sent; not more than holdTimeSeconds, and at most a third of "
            "what is negotiated is used. A change resets the session."
        ),
    ] = 30


class GracefulRestart(Struct, frozen=True):
    """RFC 4724."""

    enabled: Annotated[bool, doc("Whether the capability is offered.")]
    restart_time_seconds: Annotated[
        int,
        Meta(ge=1, le=4095),
        doc(
            "How long the peer keeps our routes while the session is down (RFC 4724 section 3). Longer "
            "than the agent takes to start again."
        ),
    ] = 120


class PeerFamily(Struct, frozen=True):
    """One address family, with a selector of its advertisements; without one it has none."""

    afi: Annotated[Afi, doc("The address family.")]
    safi: Annotated[Safi, doc("The subsequent address family.")]
    advertisements: Annotated[
        LabelSelector | None,
        doc(
            "The CiliumBGPAdvertisements that apply to the peer in this family, by their labels. "
            "Absent selects none, empty selects all. Only ipv4/unicast and ipv6/unicast carry any.",
            ATOMIC_MAP,
        ),
    ] = None


DEFAULT_FAMILIES = (
    PeerFamily(afi="ipv6", safi="unicast"),
    PeerFamily(afi="ipv4", safi="unicast"),
)
"""The meaning of an empty list: both are negotiated, and nothing is advertised."""


class Bfd(Struct, frozen=True):
    """Bidirectional Forwarding Detection (RFC 5880), as cilium#48251 proposes it."""

    enabled: Annotated[bool | None, doc("Whether BFD is used; true by default.")] = None
    transmit_interval_milliseconds: Annotated[
        int, _BfdInterval, doc("The minimum interval between sent packets.")
    ] = 300
    receive_interval_milliseconds: Annotated[
        int, _BfdInterval, doc("The minimum interval between received packets.")
    ] = 300
    detection_multiplier: Annotated[
        int, Meta(ge=1, le=255), doc("The missed packets after which the peer is down.")
    ] = 3


class PeerConfigSpec(Struct, frozen=True):
    """The specification; everything has a default."""

    transport: Annotated[Transport, doc("The TCP connection.")] = msgspec.field(
        default_factory=Transport
    )
    timers: Annotated[Timers, doc("The timers of the session.")] = msgspec.field(
        default_factory=Timers
    )
    auth_secret_ref: Annotated[
        str | None,
        doc(
            "The name of a Secret, in the namespace for BGP secrets, whose key password is the TCP "
            "MD5 password of the session (RFC 2385). Without it the session has none."
        ),
    ] = None
    graceful_restart: Annotated[
        GracefulRestart | None,
        doc(
            "Whether the peer keeps our routes while the agent restarts (RFC 4724). Without it, it "
            "does not."
        ),
    ] = None
    ebgp_multihop: Annotated[
        int,
        Meta(ge=1, le=255),
        doc(
            "The TTL of what is sent to an eBGP peer: 1 reaches a directly connected one. Without "
            "meaning for iBGP."
        ),
    ] = 1
    bfd: Annotated[
        Bfd | None,
        doc(
            "Bidirectional forwarding detection. Proposed for a later release of the API, and ignored "
            "unless the agent accepts such fields."
        ),
    ] = None
    families: Annotated[
        tuple[PeerFamily, ...],
        doc(
            "The address families that are negotiated. Without any, ipv4/unicast and ipv6/unicast "
            "are, and nothing is advertised in them."
        ),
    ] = ()

    def __post_init__(self) -> None:
        """Take an empty authSecretRef as none."""
        empty_is_absent(self, "auth_secret_ref")


class CiliumBGPPeerConfig(Resource, frozen=True):
    """The configuration of one group of peers."""

    spec: Annotated[PeerConfigSpec, doc("The session parameters; all have defaults.")] = (
        msgspec.field(default_factory=PeerConfigSpec)
    )


def timer_errors(keepalive: int, hold: int, path: str) -> Iterator[FieldError]:
    """Yield an error if a CiliumBGPPeerConfig's keepalive time exceeds its hold time, in seconds."""
    if keepalive > hold:
        yield FieldError(
            f"{path}.keepAliveTimeSeconds",
            f"{keepalive} is greater than holdTimeSeconds ({hold})",
        )


def peer_config_errors(config: CiliumBGPPeerConfig) -> Iterator[FieldError]:
    """Yield the rules that a CiliumBGPPeerConfig breaks, and a schema cannot express."""
    timers = config.spec.timers
    yield from timer_errors(timers.keep_alive_time_seconds, timers.hold_time_seconds, "spec.timers")
    for i, family in enumerate(config.spec.families):
        yield from selector_errors(family.advertisements, f"spec.families[{i}].advertisements")
