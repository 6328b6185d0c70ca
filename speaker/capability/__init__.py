"""Capabilities (RFC 5492): values, decoding and encoding.

An unknown capability is kept as octets (`Unknown`). A known one with an invalid value is ignored
(`Ignored`), as RFC 5492 permits, and the session comes up. Lengths that do not add up to the
parameter's are an error of the OPEN: `Truncated`.
"""

from __future__ import annotations

from speaker.capability.capabilities import (
    AddPath,
    Capability,
    EnhancedRouteRefresh,
    ExtendedMessage,
    ExtendedNextHop,
    FourOctetAs,
    Fqdn,
    GracefulRestartCapability,
    Ignored,
    LongLivedGracefulRestart,
    Multiprotocol,
    RoleCapability,
    RouteRefreshCapability,
    SoftwareVersion,
    Unknown,
)
from speaker.capability.codec import decode_capabilities, encode_capabilities

__all__ = [
    "AddPath",
    "Capability",
    "EnhancedRouteRefresh",
    "ExtendedMessage",
    "ExtendedNextHop",
    "FourOctetAs",
    "Fqdn",
    "GracefulRestartCapability",
    "Ignored",
    "LongLivedGracefulRestart",
    "Multiprotocol",
    "RoleCapability",
    "RouteRefreshCapability",
    "SoftwareVersion",
    "Unknown",
    "decode_capabilities",
    "encode_capabilities",
]
