"""The IANA registry "BGP Monitoring Protocol (BMP) Parameters", as constants."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

VERSION: Final = 3
BMP_PORT: Final = 11019
"""The registered TCP port of BMP stations."""
HEADER_SIZE: Final = 6
PEER_HEADER_SIZE: Final = 42


class MessageKind(IntEnum):
    """RFC 7854 section 4.1."""

    ROUTE_MONITORING = 0
    STATISTICS_REPORT = 1
    PEER_DOWN = 2
    PEER_UP = 3
    INITIATION = 4
    TERMINATION = 5
    ROUTE_MIRRORING = 6


class PeerKind(IntEnum):
    """RFC 7854 section 4.2, RFC 9069 section 4.1."""

    GLOBAL = 0
    RD = 1
    LOCAL = 2
    LOC_RIB = 3


class PeerFlag(IntEnum):
    """RFC 7854 section 4.2 (V, L, A) and RFC 8671 section 4 (O), for peers."""

    IPV6 = 0x80
    POST_POLICY = 0x40
    LEGACY_AS_PATH = 0x20
    ADJ_RIB_OUT = 0x10


FILTERED: Final = 0x80
"""The only flag of a Loc-RIB (RFC 9069 section 4.2)."""


class InitiationTlv(IntEnum):
    """RFC 7854 section 4.3."""

    STRING = 0
    SYSTEM_DESCRIPTION = 1
    SYSTEM_NAME = 2


class PeerUpTlv(IntEnum):
    """RFC 7854 section 4.10, RFC 9069 section 4.4, RFC 8671 section 6.3."""

    STRING = 0
    TABLE_NAME = 3
    ADMIN_LABEL = 4


class TerminationTlv(IntEnum):
    """RFC 7854 section 4.5."""

    STRING = 0
    REASON = 1


class TerminationReason(IntEnum):
    """RFC 7854 section 4.5."""

    ADMINISTRATIVELY_CLOSED = 0
    UNSPECIFIED = 1
    OUT_OF_RESOURCES = 2
    REDUNDANT_CONNECTION = 3
    PERMANENTLY_CLOSED = 4


class PeerDownReason(IntEnum):
    """RFC 7854 section 4.9, RFC 9069 section 4.5."""

    LOCAL_NOTIFICATION = 1
    """The NOTIFICATION that was sent follows."""
    LOCAL_EVENT = 2
    """The number of the state machine's event follows (RFC 4271 section 8.1), 0 where none fits."""
    REMOTE_NOTIFICATION = 3
    REMOTE_CLOSED = 4
    DECONFIGURED = 5
    """The peer is not encode_route_monitoring any more; it need not be down."""
    LOCAL_TLV = 6
    """TLVs follow; for Loc-RIBs (RFC 9069)."""


class MirroringTlv(IntEnum):
    """RFC 7854 section 4.7."""

    BGP_MESSAGE = 0
    INFORMATION = 1


class StatisticKind(IntEnum):
    """RFC 7854 section 4.8, RFC 8671 section 6.2."""

    REJECTED_BY_POLICY = 0
    DUPLICATE_ADVERTISEMENTS = 1
    DUPLICATE_WITHDRAWALS = 2
    CLUSTER_LIST_LOOPS = 3
    AS_PATH_LOOPS = 4
    ORIGINATOR_ID_LOOPS = 5
    CONFEDERATION_LOOPS = 6
    ADJ_RIB_IN = 7
    LOC_RIB = 8
    ADJ_RIB_IN_FAMILY = 9
    LOC_RIB_FAMILY = 10
    TREATED_AS_WITHDRAW = 11
    PREFIXES_TREATED_AS_WITHDRAW = 12
    DUPLICATE_UPDATES = 13
    ADJ_RIB_OUT_PRE_POLICY = 14
    ADJ_RIB_OUT_POST_POLICY = 15
    ADJ_RIB_OUT_PRE_POLICY_FAMILY = 16
    ADJ_RIB_OUT_POST_POLICY_FAMILY = 17


GAUGES: Final = frozenset(
    {
        StatisticKind.ADJ_RIB_IN,
        StatisticKind.LOC_RIB,
        StatisticKind.ADJ_RIB_OUT_PRE_POLICY,
        StatisticKind.ADJ_RIB_OUT_POST_POLICY,
    }
)
"""Gauges of 64 bits. Kinds that are neither here nor in `FAMILY_GAUGES` are counters of 32 bits."""
FAMILY_GAUGES: Final = frozenset(
    {
        StatisticKind.ADJ_RIB_IN_FAMILY,
        StatisticKind.LOC_RIB_FAMILY,
        StatisticKind.ADJ_RIB_OUT_PRE_POLICY_FAMILY,
        StatisticKind.ADJ_RIB_OUT_POST_POLICY_FAMILY,
    }
)
"""Gauges of one family: AFI, SAFI, then 64 bits."""
