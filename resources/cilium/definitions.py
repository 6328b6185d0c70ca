"""The parts of the CustomResourceDefinitions of Cilium's kinds that are not in their row types.

Names, short names and categories are Cilium's, for compatibility with scripts. The columns are not;
none shows a list, as the API server prints its first item only.
"""

from __future__ import annotations

from resources.cilium.condition_types import (
    CONFLICTING_CLUSTER_CONFIG,
    MISSING_AUTH_SECRET,
    MISSING_PEER_CONFIGS,
    NO_MATCHING_NODE,
    RECONCILE_ERROR,
)
from resources.cilium.status import NodeConfigStatus
from resources.crds.schema_markers import Column, Definition
from resources.metav1 import ConditionsStatus

_CATEGORIES = ("cilium", "ciliumbgp")
_AGE = Column("Age", ".metadata.creationTimestamp", "date")


def _condition(name: str, kind: str, description: str) -> Column:
    path = f'.status.conditions[?(@.type=="{kind}")].status'
    return Column(name, path, description=description)


CLUSTER_CONFIG = Definition(
    "CiliumBGPClusterConfig configures BGP instances and their sessions with routers, on selected "
    "nodes.",
    ("cbgpcluster",),
    _CATEGORIES,
    (
        _condition("No Node", NO_MATCHING_NODE, "Whether it selects no node at all."),
        _condition(
            "Missing",
            MISSING_PEER_CONFIGS,
            "Whether a CiliumBGPPeerConfig that it names is missing.",
        ),
        _condition(
            "Conflict",
            CONFLICTING_CLUSTER_CONFIG,
            "Whether another CiliumBGPClusterConfig selects one of its nodes.",
        ),
        _AGE,
    ),
    ConditionsStatus,
)
PEER_CONFIG = Definition(
    "CiliumBGPPeerConfig has the parameters of BGP sessions; any number of peers can share one.",
    ("cbgppeer",),
    _CATEGORIES,
    (
        Column("Port", ".spec.transport.peerPort", "integer", "The peer's TCP port."),
        Column("Hold", ".spec.timers.holdTimeSeconds", "integer", "The hold time in seconds."),
        Column("TTL", ".spec.ebgpMultihop", "integer", "The TTL towards eBGP peers."),
        Column("Restart", ".spec.gracefulRestart.enabled", "boolean", "Graceful restart."),
        Column("Secret", ".spec.authSecretRef", description="The Secret of TCP MD5.", priority=1),
        _condition("No Secret", MISSING_AUTH_SECRET, "Whether that Secret is missing."),
        _AGE,
    ),
    ConditionsStatus,
)
ADVERTISEMENT = Definition(
    "CiliumBGPAdvertisement selects the routes that are advertised, and their attributes. The families "
    "of a CiliumBGPPeerConfig select it by its labels.",
    ("cbgpadvert",),
    _CATEGORIES,
    (_AGE,),
)
NODE_CONFIG = Definition(
    "CiliumBGPNodeConfig is the configuration of one node; its name is the node's. It is generated "
    "from the CiliumBGPClusterConfig that selects the node and the CiliumBGPNodeConfigOverride of the "
    "same name: change those.",
    ("cbgpnode",),
    _CATEGORIES,
    (
        _condition("Error", RECONCILE_ERROR, "Whether a part of it could not be applied."),
        _AGE,
    ),
    NodeConfigStatus,
)
NODE_CONFIG_OVERRIDE = Definition(
    "CiliumBGPNodeConfigOverride overrides the configuration of one node; its name has to be the "
    "node's.",
    ("cbgpnodeoverride",),
    _CATEGORIES,
    (_AGE,),
)
PEERING_POLICY = Definition(
    "CiliumBGPPeeringPolicy is Cilium's first BGP API, all of it in one kind. CiliumBGPClusterConfig "
    "and its related kinds have replaced it in later releases of Cilium.",
    ("bgpp",),
    _CATEGORIES,
    (_AGE,),
)
