"""Cilium's BGP control plane, v2: its five kinds with all fields, defaults and rules.

Source: the CRDs of group cilium.io, versions v2 and v2alpha1 (deprecated, read as well).
"""

from resources.cilium.advertisement import (
    Advertisement,
    CiliumBGPAdvertisement,
    advertisement_errors,
)
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

__all__ = [
    "DEFAULT_FAMILIES",
    "Advertisement",
    "CiliumBGPAdvertisement",
    "CiliumBGPClusterConfig",
    "CiliumBGPNodeConfig",
    "CiliumBGPNodeConfigOverride",
    "CiliumBGPPeerConfig",
    "PeerFamily",
    "advertisement_errors",
    "cluster_config_errors",
    "node_config_errors",
    "node_config_override_errors",
    "peer_config_errors",
]
