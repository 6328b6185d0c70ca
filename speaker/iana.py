"""The IANA registries of BGP-4, as constants.

Sources: the registries "Border Gateway Protocol (BGP) Parameters", "Address Family Numbers",
"Subsequent Address Family Identifiers", "Capability Codes" and "BGP Well-known Communities".
"""

from __future__ import annotations

import functools
from enum import IntEnum
from typing import Final, NamedTuple

AS_TRANS: Final = 23456
"""Replaces an AS number beyond 65,535 in a field of two octets (RFC 6793)."""


class Afi(IntEnum):
    """Address family identifiers."""

    IPV4 = 1
    IPV6 = 2
    L2VPN = 25
    LS = 16388
    OPAQUE = 16397


class Safi(IntEnum):
    """Subsequent address family identifiers."""

    UNICAST = 1
    MULTICAST = 2
    MPLS_LABEL = 4
    ENCAPSULATION = 7
    VPLS = 65
    EVPN = 70
    LS = 71
    SR_POLICY = 73
    MUP = 85
    MPLS_VPN = 128
    MPLS_VPN_MULTICAST = 129
    ROUTE_TARGET_CONSTRAINTS = 132
    FLOWSPEC_UNICAST = 133
    FLOWSPEC_VPN = 134
    KEY_VALUE = 241


def _dashed(name: str) -> str:
    return name.lower().replace("_", "-")


@functools.lru_cache(256)  # a peer may send any number
def _family_text(afi: int, safi: int) -> str:
    try:
        return f"{_dashed(Afi(afi).name)}-{_dashed(Safi(safi).name)}"
    except ValueError:
        return f"afi-{afi}-safi-{safi}"


class Family(NamedTuple):
    """An address family: AFI and SAFI (RFC 4760); any number is allowed, known ones have names."""

    afi: int
    safi: int

    def __str__(self) -> str:
        """Format it as in configuration: ``ipv4-unicast``; unknown numbers as ``afi-7-safi-9``."""
        return _family_text(self.afi, self.safi)

    @classmethod
    def parse(cls, text: str) -> Family:
        """Parse the format of `str`. Raises ValueError with the text."""
        afi, _, safi = text.partition("-")
        try:
            if afi == "afi":
                number, _, rest = safi.partition("-safi-")
                return cls(int(number), int(rest))
            return cls(Afi[afi.upper()], Safi[safi.upper().replace("-", "_")])
        except (KeyError, ValueError):
            raise ValueError(f"{text!r} is not an address family such as ipv4-unicast") from None


IPV4_UNICAST: Final = Family(1, 1)
IPV6_UNICAST: Final = Family(2, 1)


class MessageType(IntEnum):
    """RFC 4271 section 4.1, RFC 2918."""

    OPEN = 1
    UPDATE = 2
    NOTIFICATION = 3
    KEEPALIVE = 4
    ROUTE_REFRESH = 5


class AttributeType(IntEnum):
    """Path attributes."""

    ORIGIN = 1
    AS_PATH = 2
    NEXT_HOP = 3
    MULTI_EXIT_DISC = 4
    LOCAL_PREF = 5
    ATOMIC_AGGREGATE = 6
    AGGREGATOR = 7
    COMMUNITIES = 8
    ORIGINATOR_ID = 9
    CLUSTER_LIST = 10
    MP_REACH_NLRI = 14
    MP_UNREACH_NLRI = 15
    EXTENDED_COMMUNITIES = 16
    AS4_PATH = 17
    AS4_AGGREGATOR = 18
    PMSI_TUNNEL = 22
    TUNNEL_ENCAPSULATION = 23
    IPV6_EXTENDED_COMMUNITIES = 25
    AIGP = 26
    BGP_LS = 29
    LARGE_COMMUNITIES = 32
    OTC = 35
    PREFIX_SID = 40


def attribute_name(number: int) -> str:
    """Return the name of a path attribute: ``AS_PATH``, or ``attribute 99``."""
    try:
        return AttributeType(number).name
    except ValueError:
        return f"attribute {number}"


class Origin(IntEnum):
    """Values of ORIGIN."""

    IGP = 0
    EGP = 1
    INCOMPLETE = 2


class CapabilityCode(IntEnum):
    """Capabilities (RFC 5492)."""

    MULTIPROTOCOL = 1
    ROUTE_REFRESH = 2
    ORF = 3
    EXTENDED_NEXT_HOP = 5
    EXTENDED_MESSAGE = 6
    ROLE = 9
    GRACEFUL_RESTART = 64
    FOUR_OCTET_AS = 65
    ADD_PATH = 69
    ENHANCED_ROUTE_REFRESH = 70
    LONG_LIVED_GRACEFUL_RESTART = 71
    FQDN = 73
    SOFTWARE_VERSION = 75


class Role(IntEnum):
    """BGP roles (RFC 9234): the sender's role towards its peer."""

    PROVIDER = 0
    ROUTE_SERVER = 1
    ROUTE_SERVER_CLIENT = 2
    CUSTOMER = 3
    PEER = 4


ROLES: Final[dict[str, Role]] = {
    "provider": Role.PROVIDER,
    "rs-server": Role.ROUTE_SERVER,
    "rs-client": Role.ROUTE_SERVER_CLIENT,
    "customer": Role.CUSTOMER,
    "peer": Role.PEER,
}
"""Numbers by their names in the registry and in configuration."""


class ErrorCode(IntEnum):
    """NOTIFICATION codes (RFC 4271 section 4.5, 7313, 9687)."""

    MESSAGE_HEADER = 1
    OPEN_MESSAGE = 2
    UPDATE_MESSAGE = 3
    HOLD_TIMER_EXPIRED = 4
    FSM = 5
    CEASE = 6
    ROUTE_REFRESH = 7
    SEND_HOLD_TIMER_EXPIRED = 8


class HeaderSubcode(IntEnum):
    """Message Header Error."""

    CONNECTION_NOT_SYNCHRONIZED = 1
    BAD_MESSAGE_LENGTH = 2
    BAD_MESSAGE_TYPE = 3


class OpenSubcode(IntEnum):
    """OPEN Message Error."""

    UNSPECIFIC = 0
    UNSUPPORTED_VERSION = 1
    BAD_PEER_AS = 2
    BAD_BGP_IDENTIFIER = 3
    UNSUPPORTED_OPTIONAL_PARAMETER = 4
    UNACCEPTABLE_HOLD_TIME = 6
    UNSUPPORTED_CAPABILITY = 7
    ROLE_MISMATCH = 11


class UpdateSubcode(IntEnum):
    """UPDATE Message Error."""

    MALFORMED_ATTRIBUTE_LIST = 1
    UNRECOGNIZED_WELL_KNOWN_ATTRIBUTE = 2
    MISSING_WELL_KNOWN_ATTRIBUTE = 3
    ATTRIBUTE_FLAGS = 4
    ATTRIBUTE_LENGTH = 5
    INVALID_ORIGIN = 6
    INVALID_NEXT_HOP = 8
    OPTIONAL_ATTRIBUTE = 9
    INVALID_NETWORK_FIELD = 10
    MALFORMED_AS_PATH = 11


class FsmSubcode(IntEnum):
    """Finite State Machine Error (RFC 6608)."""

    UNSPECIFIED = 0
    UNEXPECTED_IN_OPEN_SENT = 1
    UNEXPECTED_IN_OPEN_CONFIRM = 2
    UNEXPECTED_IN_ESTABLISHED = 3


class CeaseSubcode(IntEnum):
    """Cease (RFC 4486, 8538, 9384)."""

    MAXIMUM_PREFIXES = 1
    ADMINISTRATIVE_SHUTDOWN = 2
    PEER_DECONFIGURED = 3
    ADMINISTRATIVE_RESET = 4
    CONNECTION_REJECTED = 5
    OTHER_CONFIGURATION_CHANGE = 6
    CONNECTION_COLLISION_RESOLUTION = 7
    OUT_OF_RESOURCES = 8
    HARD_RESET = 9
    BFD_DOWN = 10


class RefreshSubcode(IntEnum):
    """ROUTE-REFRESH Message Error (RFC 7313 section 5)."""

    INVALID_MESSAGE_LENGTH = 1


ERROR_NAMES: Final[dict[int, str]] = {
    1: "Message Header Error",
    2: "OPEN Message Error",
    3: "UPDATE Message Error",
    4: "Hold Timer Expired",
    5: "Finite State Machine Error",
    6: "Cease",
    7: "ROUTE-REFRESH Message Error",
    8: "Send Hold Timer Expired",
}

SUBCODE_NAMES: Final[dict[tuple[int, int], str]] = {
    (1, 1): "Connection Not Synchronized",
    (1, 2): "Bad Message Length",
    (1, 3): "Bad Message Type",
    (2, 1): "Unsupported Version Number",
    (2, 2): "Bad Peer AS",
    (2, 3): "Bad BGP Identifier",
    (2, 4): "Unsupported Optional Parameter",
    (2, 5): "Authentication Failure",
    (2, 6): "Unacceptable Hold Time",
    (2, 7): "Unsupported Capability",
    (2, 11): "Role Mismatch",
    (3, 1): "Malformed Attribute List",
    (3, 2): "Unrecognized Well-known Attribute",
    (3, 3): "Missing Well-known Attribute",
    (3, 4): "Attribute Flags Error",
    (3, 5): "Attribute Length Error",
    (3, 6): "Invalid ORIGIN Attribute",
    (3, 7): "AS Routing Loop",
    (3, 8): "Invalid NEXT_HOP Attribute",
    (3, 9): "Optional Attribute Error",
    (3, 10): "Invalid Network Field",
    (3, 11): "Malformed AS_PATH",
    (5, 1): "Receive Unexpected Message in OpenSent State",
    (5, 2): "Receive Unexpected Message in OpenConfirm State",
    (5, 3): "Receive Unexpected Message in Established State",
    (6, 1): "Maximum Number of Prefixes Reached",
    (6, 2): "Administrative Shutdown",
    (6, 3): "Peer De-configured",
    (6, 4): "Administrative Reset",
    (6, 5): "Connection Rejected",
    (6, 6): "Other Configuration Change",
    (6, 7): "Connection Collision Resolution",
    (6, 8): "Out of Resources",
    (6, 9): "Hard Reset",
    (6, 10): "BFD Down",
    (7, 1): "Invalid Message Length",
}


def describe_error(code: int, subcode: int) -> str:
    """Format a NOTIFICATION's code and subcode: ``Cease / Administrative Reset``."""
    name = ERROR_NAMES.get(code, f"error code {code}")
    if not subcode:
        return name
    return f"{name} / {SUBCODE_NAMES.get((code, subcode), f'subcode {subcode}')}"


def is_assigned(code: int, subcode: int) -> bool:
    """Return whether IANA has assigned a NOTIFICATION's code and subcode."""
    return (code, subcode) in SUBCODE_NAMES or (not subcode and code in ERROR_NAMES)


WELL_KNOWN_COMMUNITIES: Final[dict[str, int]] = {
    "internet": 0x00000000,
    "graceful-shutdown": 0xFFFF0000,
    "planned-shut": 0xFFFF0000,
    "accept-own": 0xFFFF0001,
    "route-filter-translated-v4": 0xFFFF0002,
    "route-filter-v4": 0xFFFF0003,
    "route-filter-translated-v6": 0xFFFF0004,
    "route-filter-v6": 0xFFFF0005,
    "llgr-stale": 0xFFFF0006,
    "no-llgr": 0xFFFF0007,
    "blackhole": 0xFFFF029A,
    "no-export": 0xFFFFFF01,
    "no-advertise": 0xFFFFFF02,
    "no-export-subconfed": 0xFFFFFF03,
    "no-peer": 0xFFFFFF04,
}
