"""The kinds of Cilium that are read: the BGP kinds of v2 and v1, nodes and address pools."""

from __future__ import annotations

from typing import Any, Final

from resources.cilium import (
    CiliumBGPAdvertisement,
    CiliumBGPClusterConfig,
    CiliumBGPNodeConfig,
    CiliumBGPNodeConfigOverride,
    CiliumBGPPeerConfig,
    CiliumBGPPeeringPolicy,
    CiliumLoadBalancerIPPool,
    CiliumNode,
    CiliumPodIPPool,
    advertisement_errors,
    cilium_node_errors,
    cluster_config_errors,
    definitions,
    load_balancer_pool_errors,
    node_config_errors,
    node_config_override_errors,
    peer_config_errors,
    peering_policy_errors,
)
from resources.kind import NAMED_AFTER_NODE, Kind, KindFamily
from resources.label_selectors import LabelSelector

_VERSIONS: Final = ("v2", "v2alpha1")


def node_selectors(
    row: CiliumBGPClusterConfig | CiliumBGPPeeringPolicy,
) -> tuple[LabelSelector, ...]:
    """Return the node selector of an object of one of Cilium's kinds; none: it is for all nodes."""
    selector = row.spec.node_selector
    return () if selector is None else (selector,)


CLUSTER_CONFIG = Kind(
    "CiliumBGPClusterConfig",
    CiliumBGPClusterConfig,
    group="cilium.io",
    versions=_VERSIONS,
    namespaced=False,
    errors=cluster_config_errors,
    strict=True,
    definition=definitions.CLUSTER_CONFIG,
    one_selects_node=node_selectors,
    table="cilium-cluster-configs",
    family=KindFamily("CiliumBGP"),
)
PEER_CONFIG = Kind(
    "CiliumBGPPeerConfig",
    CiliumBGPPeerConfig,
    group="cilium.io",
    versions=_VERSIONS,
    namespaced=False,
    errors=peer_config_errors,
    strict=True,
    definition=definitions.PEER_CONFIG,
    table="cilium-peer-configs",
)
ADVERTISEMENT = Kind(
    "CiliumBGPAdvertisement",
    CiliumBGPAdvertisement,
    group="cilium.io",
    versions=_VERSIONS,
    namespaced=False,
    errors=advertisement_errors,
    strict=True,
    definition=definitions.ADVERTISEMENT,
    table="cilium-advertisements",
)
NODE_CONFIG = Kind(
    "CiliumBGPNodeConfig",
    CiliumBGPNodeConfig,
    group="cilium.io",
    versions=_VERSIONS,
    namespaced=False,
    errors=node_config_errors,
    strict=True,
    definition=definitions.NODE_CONFIG,
    table="cilium-node-configs",
    of_node=NAMED_AFTER_NODE,
)
NODE_CONFIG_OVERRIDE = Kind(
    "CiliumBGPNodeConfigOverride",
    CiliumBGPNodeConfigOverride,
    group="cilium.io",
    versions=_VERSIONS,
    namespaced=False,
    errors=node_config_override_errors,
    strict=True,
    definition=definitions.NODE_CONFIG_OVERRIDE,
    table="cilium-node-config-overrides",
    of_node=NAMED_AFTER_NODE,
)
PEERING_POLICY = Kind(
    "CiliumBGPPeeringPolicy",
    CiliumBGPPeeringPolicy,
    group="cilium.io",
    versions=("v2alpha1",),
    plural="ciliumbgppeeringpolicies",
    namespaced=False,
    errors=peering_policy_errors,
    strict=True,
    definition=definitions.PEERING_POLICY,
    one_selects_node=node_selectors,
    table="cilium-peering-policies",
)
CILIUM_NODE = Kind(
    "CiliumNode",
    CiliumNode,
    group="cilium.io",
    versions=("v2",),
    namespaced=False,
    errors=cilium_node_errors,
    table="cilium-nodes",
    of_node=NAMED_AFTER_NODE,
)
LOAD_BALANCER_IP_POOL = Kind(
    "CiliumLoadBalancerIPPool",
    CiliumLoadBalancerIPPool,
    group="cilium.io",
    versions=_VERSIONS,
    namespaced=False,
    errors=load_balancer_pool_errors,
    strict=True,
    table="cilium-load-balancer-ip-pools",
)
POD_IP_POOL = Kind(
    "CiliumPodIPPool",
    CiliumPodIPPool,
    group="cilium.io",
    versions=_VERSIONS,
    namespaced=False,
    table="cilium-pod-ip-pools",
)

KINDS: Final[tuple[Kind[Any], ...]] = (
    CLUSTER_CONFIG,
    PEER_CONFIG,
    ADVERTISEMENT,
    NODE_CONFIG,
    NODE_CONFIG_OVERRIDE,
    PEERING_POLICY,
    CILIUM_NODE,
    LOAD_BALANCER_IP_POOL,
    POD_IP_POOL,
)
