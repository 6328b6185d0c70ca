"""The check of ``waggle doctor`` for Cilium's objects: their conditions."""

from __future__ import annotations

from typing import Final

from reconcilers.dialect import condition_check
from resources.cilium import condition_types as types
from resources.cilium.kinds import CLUSTER_CONFIG, NODE_CONFIG, PEER_CONFIG

DIAGNOSIS: Final = condition_check(
    "cilium",
    "no condition of Cilium's objects reports an error",
    {
        CLUSTER_CONFIG: {
            (
                types.NO_MATCHING_NODE,
                "True",
            ): "correct nodeSelector, or label the nodes (kubectl get nodes --show-labels)",
            (
                types.MISSING_PEER_CONFIGS,
                "True",
            ): "create the CiliumBGPPeerConfig, or correct peerConfigRef",
            (
                types.CONFLICTING_CLUSTER_CONFIG,
                "True",
            ): "let one CiliumBGPClusterConfig alone select each node",
        },
        PEER_CONFIG: {
            (
                types.MISSING_AUTH_SECRET,
                "True",
            ): "create the Secret in the namespace of --secrets-namespace",
        },
        NODE_CONFIG: {
            (types.RECONCILE_ERROR, "True"): "correct the object that the message names",
        },
    },
)
