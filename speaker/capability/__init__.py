"""Capabilities (RFC 5492): the values that an OPEN carries, each with its RFC, to and from octets.

An unknown capability is kept as octets and ignored. A known one whose length cannot be is ignored
as well (`Ignored`), which RFC 5492 permits and which costs nobody a session; lengths that do not add
up to the parameter's are the OPEN's error, not decided here.
"""

from __future__ import annotations

from speaker.capability.codec import decode_capabilities, encode_capabilities
from speaker.capability.values import (
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
