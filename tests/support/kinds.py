"""Every kind by its name, and all of them as the programs read them."""

from resources.cilium.kinds import (
    ADVERTISEMENT,
    CILIUM_NODE,
    CLUSTER_CONFIG,
    LOAD_BALANCER_IP_POOL,
    NODE_CONFIG,
    NODE_CONFIG_OVERRIDE,
    PEER_CONFIG,
    PEERING_POLICY,
    POD_IP_POOL,
)
from resources.cilium.kinds import KINDS as CILIUM_KINDS
from resources.core.kinds import (
    CONFIG_MAP,
    ENDPOINT_SLICE,
    NAMESPACE,
    NODE,
    SECRET,
    SERVICE,
    SERVICE_CIDR,
)
from resources.core.kinds import KINDS as CORE_KINDS
from resources.host.kinds import NODE_NETWORK
from resources.kind import Kinds

KINDS = Kinds(CORE_KINDS, CILIUM_KINDS, (NODE_NETWORK,))

__all__ = [
    "ADVERTISEMENT",
    "CILIUM_KINDS",
    "CILIUM_NODE",
    "CLUSTER_CONFIG",
    "CONFIG_MAP",
    "CORE_KINDS",
    "ENDPOINT_SLICE",
    "KINDS",
    "LOAD_BALANCER_IP_POOL",
    "NAMESPACE",
    "NODE",
    "NODE_CONFIG",
    "NODE_CONFIG_OVERRIDE",
    "NODE_NETWORK",
    "PEERING_POLICY",
    "PEER_CONFIG",
    "POD_IP_POOL",
    "SECRET",
    "SERVICE",
    "SERVICE_CIDR",
]
