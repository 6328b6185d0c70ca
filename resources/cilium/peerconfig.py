"""CiliumBGPPeerConfig: how to peer; shared by peers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from resources.cilium.limits import Name, Port
from resources.errors import FieldError
from resources.labels import LabelSelector, selector_errors
from resources.meta import Resource, Struct

Afi = Literal["ipv4", "ipv6", "l2vpn", "ls", "opaque"]
Safi = Literal[
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
]


class Transport(Struct, frozen=True):
    """TCP; localPort existed in v2alpha1 and has no effect."""

    peer_port: Port = 179
    source_interface: str | None = None
    local_port: int | None = None


class Timers(Struct, frozen=True):
    """Seconds."""

    connect_retry_time_seconds: Annotated[int, Meta(ge=1, le=2147483647)] = 120
    hold_time_seconds: Annotated[int, Meta(ge=3, le=65535)] = 90
    keep_alive_time_seconds: Annotated[int, Meta(ge=1, le=65535)] = 30


class GracefulRestart(Struct, frozen=True):
    """RFC 4724."""

    enabled: bool
    restart_time_seconds: Annotated[int, Meta(ge=1, le=4095)] = 120


class PeerFamily(Struct, frozen=True):
    """One address family, and the advertisements told in it: none without a selector."""

    afi: Afi
    safi: Safi
    advertisements: LabelSelector | None = None


DEFAULT_FAMILIES = (
    PeerFamily(afi="ipv6", safi="unicast"),
    PeerFamily(afi="ipv4", safi="unicast"),
)
"""What an empty list means: both are negotiated, and nothing is advertised."""


class PeerConfigSpec(Struct, frozen=True):
    """The specification; everything has a default."""

    transport: Transport = msgspec.field(default_factory=Transport)
    timers: Timers = msgspec.field(default_factory=Timers)
    auth_secret_ref: Name | None = None
    graceful_restart: GracefulRestart | None = None
    ebgp_multihop: Annotated[int, Meta(ge=1, le=255)] = 1
    families: tuple[PeerFamily, ...] = ()


class CiliumBGPPeerConfig(Resource, frozen=True):
    """One way of peering."""

    spec: PeerConfigSpec = msgspec.field(default_factory=PeerConfigSpec)


def timer_errors(keepalive: int, hold: int, path: str) -> Iterator[FieldError]:
    """Check the rule of keepalive and hold time, in seconds."""
    if keepalive > hold:
        yield FieldError(
            f"{path}.keepAliveTimeSeconds",
            f"{keepalive} is greater than holdTimeSeconds ({hold})",
        )


def peer_config_errors(config: CiliumBGPPeerConfig) -> Iterator[FieldError]:
    """Check what a schema cannot."""
    timers = config.spec.timers
    yield from timer_errors(timers.keep_alive_time_seconds, timers.hold_time_seconds, "spec.timers")
    for i, family in enumerate(config.spec.families):
        yield from selector_errors(family.advertisements, f"spec.families[{i}].advertisements")
