"""The speaker's interface: configuration in, status out, both as frozen values.

Used by everything that drives a speaker. It must stay free of work: no sockets, no clocks, no
protocol.

* `config`: instances, peers, local routes
* `policy`: which routes are accepted, and how they are changed
* `status`: sessions, routes, events
* `monitoring`: monitoring stations (BMP)
* `best_paths`: the best paths of an instance as a stream
* `routes`, `prefix_filter`: the routes of a view, and which of them
* `port`: the methods of a speaker, as a protocol
* `secret`: passwords that are never printed
"""

from speaker.api.best_paths import (
    NO_PATHS,
    ONE_PATH,
    BestPath,
    BestPathChange,
    BestPathItem,
    BestPathReader,
    BestPathSource,
    InstanceRemoved,
    Multipath,
    PathSet,
    SelectionEnd,
    StreamClosed,
    TableBegin,
    TableEnd,
)
from speaker.api.config import (
    BGP_PORT,
    DEFAULT_FAMILIES,
    AddPathMode,
    BfdProfile,
    Confederation,
    DynamicPeerConfig,
    Export,
    GracefulRestart,
    Import,
    InstanceConfig,
    InstanceImport,
    InvalidConfig,
    MaximumPrefixes,
    PeerAs,
    PeerConfig,
    PeerSettings,
    RouteAttributes,
    check_asn,
    check_next_hop,
)
from speaker.api.monitoring import (
    BMP_PORT,
    BmpCollector,
    CollectorChanged,
    CollectorStatus,
    Monitor,
)
from speaker.api.policy import Match, Policy, PolicyDecision, PrefixRule, Set, Term
from speaker.api.port import UNREACHABLE, RouteChanges, SpeakerPort, UnknownName
from speaker.api.prefix_filter import PrefixFilter, parse_prefix
from speaker.api.routes import Limited, Routes
from speaker.api.secret import InvalidSecret, Secret
from speaker.api.status import (
    ESTABLISHED,
    NOT_ACCEPTED,
    ConnectionsRefused,
    Event,
    FamilyStatus,
    Fault,
    InstanceStatus,
    ListenChanged,
    MessageCounts,
    Obstacle,
    PeerPrefixLimit,
    PeerStatus,
    PrefixLimit,
    RecordingEnded,
    RouteLeftOut,
    RouteView,
    SessionError,
    StateChanged,
)

__all__ = [
    "BGP_PORT",
    "BMP_PORT",
    "DEFAULT_FAMILIES",
    "ESTABLISHED",
    "NOT_ACCEPTED",
    "NO_PATHS",
    "ONE_PATH",
    "UNREACHABLE",
    "AddPathMode",
    "BestPath",
    "BestPathChange",
    "BestPathItem",
    "BestPathReader",
    "BestPathSource",
    "BfdProfile",
    "BmpCollector",
    "CollectorChanged",
    "CollectorStatus",
    "Confederation",
    "ConnectionsRefused",
    "DynamicPeerConfig",
    "Event",
    "Export",
    "FamilyStatus",
    "Fault",
    "GracefulRestart",
    "Import",
    "InstanceConfig",
    "InstanceImport",
    "InstanceRemoved",
    "InstanceStatus",
    "InvalidConfig",
    "InvalidSecret",
    "Limited",
    "ListenChanged",
    "Match",
    "MaximumPrefixes",
    "MessageCounts",
    "Monitor",
    "Multipath",
    "Obstacle",
    "PathSet",
    "PeerAs",
    "PeerConfig",
    "PeerPrefixLimit",
    "PeerSettings",
    "PeerStatus",
    "Policy",
    "PolicyDecision",
    "PrefixFilter",
    "PrefixLimit",
    "PrefixRule",
    "RecordingEnded",
    "RouteAttributes",
    "RouteChanges",
    "RouteLeftOut",
    "RouteView",
    "Routes",
    "Secret",
    "SelectionEnd",
    "SessionError",
    "Set",
    "SpeakerPort",
    "StateChanged",
    "StreamClosed",
    "TableBegin",
    "TableEnd",
    "Term",
    "UnknownName",
    "check_asn",
    "check_next_hop",
    "parse_prefix",
]
