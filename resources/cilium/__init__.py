"""Cilium's BGP control plane: the five kinds of v2 and the one of v1 with all fields and rules.

And of Cilium's nodes and address pools what BGP needs. Source: the CRDs of group cilium.io, versions
v2 and v2alpha1 (deprecated, read as well).
"""

from resources.cilium import definitions
from resources.cilium.advertisement import (
    Advertisement,
    CiliumBGPAdvertisement,
    advertisement_errors,
)
from resources.cilium.ciliumnode import CiliumNode, cilium_node_errors
from resources.cilium.clusterconfig import CiliumBGPClusterConfig, cluster_config_errors
from resources.cilium.nodeconfig import CiliumBGPNodeConfig, node_config_errors
from resources.cilium.nodeconfigoverride import (
    CiliumBGPNodeConfigOverride,
    node_config_override_errors,
)
from resources.cilium.peerconfig import (
    DEFAULT_FAMILIES,
    CiliumBGPPeerConfig,
    PeerFamily,
    peer_config_errors,
)
from resources.cilium.peeringpolicy import CiliumBGPPeeringPolicy, peering_policy_errors
from resources.cilium.pools import (
    CiliumLoadBalancerIPPool,
    CiliumPodIPPool,
    load_balancer_pool_errors,
)

__all__ = [
    "DEFAULT_FAMILIES",
    "Advertisement",
    "CiliumBGPAdvertisement",
    "CiliumBGPClusterConfig",
    "CiliumBGPNodeConfig",
    "CiliumBGPNodeConfigOverride",
    "CiliumBGPPeerConfig",
    "CiliumBGPPeeringPolicy",
    "CiliumLoadBalancerIPPool",
    "CiliumNode",
    "CiliumPodIPPool",
    "PeerFamily",
    "advertisement_errors",
    "cilium_node_errors",
    "cluster_config_errors",
    "definitions",
    "load_balancer_pool_errors",
    "node_config_errors",
    "node_config_override_errors",
    "peer_config_errors",
    "peering_policy_errors",
]
