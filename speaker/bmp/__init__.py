"""The BGP Monitoring Protocol (RFC 7854), with Loc-RIB (RFC 9069) and Adj-RIB-Out (RFC 8671).

Pure: `speaker.engine.monitoring` decides which station gets which message. Encapsulated BGP messages
are opaque but for their headers.

* `numbers`: the IANA registries of BMP
* `bmp_messages`: messages as values
* `encode`: values to octets, also many Route Monitoring messages of one peer at once
* `decode`: octets to values, with the checks of the RFCs
"""

from speaker.bmp.bmp_messages import (
    Initiation,
    Message,
    PeerDown,
    PeerHeader,
    PeerUp,
    RouteMirroring,
    RouteMonitoring,
    Statistic,
    StatisticsReport,
    Termination,
    Tlv,
    UnknownMessage,
)
from speaker.bmp.decode import BmpError, decode
from speaker.bmp.encode import encode, encode_peer_header, encode_route_monitoring, frame
from speaker.bmp.numbers import (
    BMP_PORT,
    HEADER_SIZE,
    PEER_HEADER_SIZE,
    InitiationTlv,
    MessageKind,
    PeerDownReason,
    PeerKind,
    PeerUpTlv,
    StatisticKind,
    TerminationReason,
    TerminationTlv,
)

__all__ = [
    "BMP_PORT",
    "HEADER_SIZE",
    "PEER_HEADER_SIZE",
    "BmpError",
    "Initiation",
    "InitiationTlv",
    "Message",
    "MessageKind",
    "PeerDown",
    "PeerDownReason",
    "PeerHeader",
    "PeerKind",
    "PeerUp",
    "PeerUpTlv",
    "RouteMirroring",
    "RouteMonitoring",
    "Statistic",
    "StatisticKind",
    "StatisticsReport",
    "Termination",
    "TerminationReason",
    "TerminationTlv",
    "Tlv",
    "UnknownMessage",
    "decode",
    "encode",
    "encode_peer_header",
    "encode_route_monitoring",
    "frame",
]
