"""The BGP Monitoring Protocol: messages as values, to octets and from octets.

RFC 7854, with Loc-RIB (RFC 9069) and Adj-RIB-Out (RFC 8671). Pure: what is sent to whom and when is
decided in `speaker.engine.monitoring`. Nothing here looks into the BGP messages that are carried,
beyond their headers.

* `numbers`: what IANA keeps for BMP
* `values`: messages
* `encode`: values to octets, and the quick way for many messages of one peer
* `decode`: octets to values, with every check of the RFCs
"""

from speaker.bmp.decode import BmpError, Framer, decode
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
from speaker.bmp.values import (
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

__all__ = [
    "BMP_PORT",
    "HEADER_SIZE",
    "PEER_HEADER_SIZE",
    "BmpError",
    "Framer",
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
