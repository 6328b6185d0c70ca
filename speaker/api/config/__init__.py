"""The configuration of a speaker: instances, peers and local routes, as frozen values.

No work is done here. Times are whole seconds, addresses are text in canonical form, AS numbers have
four octets. An invalid value is rejected when it is created, by an error that names the field.
"""

from speaker.api.config.config_checks import (
    BGP_PORT,
    DEFAULT_FAMILIES,
    MAX_UINT32,
    InvalidConfig,
    check_asn,
    check_next_hop,
)
from speaker.api.config.instance import (
    Confederation,
    InstanceConfig,
    InstanceImport,
    RouteAttributes,
)
from speaker.api.config.peer import (
    AddPathMode,
    BfdProfile,
    DynamicPeerConfig,
    Export,
    GracefulRestart,
    Import,
    MaximumPrefixes,
    PeerAs,
    PeerConfig,
    PeerSettings,
)

__all__ = [
    "BGP_PORT",
    "DEFAULT_FAMILIES",
    "MAX_UINT32",
    "AddPathMode",
    "BfdProfile",
    "Confederation",
    "DynamicPeerConfig",
    "Export",
    "GracefulRestart",
    "Import",
    "InstanceConfig",
    "InstanceImport",
    "InvalidConfig",
    "MaximumPrefixes",
    "PeerAs",
    "PeerConfig",
    "PeerSettings",
    "RouteAttributes",
    "check_asn",
    "check_next_hop",
]
