"""The condition types of Cilium's objects; the names are Cilium's, except two."""

from __future__ import annotations

from typing import Final

CONFLICTING_CLUSTER_CONFIG: Final = "cilium.io/ConflictingClusterConfig"
MISSING_PEER_CONFIGS: Final = "cilium.io/MissingPeerConfigs"
NO_MATCHING_NODE: Final = "cilium.io/NoMatchingNode"
MISSING_AUTH_SECRET: Final = "cilium.io/MissingAuthSecret"  # noqa: S105  the name of a condition
RECONCILE_ERROR: Final = "cilium.io/BGPReconcileError"
CONFLICTING_PEERING_POLICY: Final = "cilium.io/ConflictingPeeringPolicy"
"""Not one of Cilium's: v1 has no conditions."""
SESSIONS_DOWN: Final = "waggle.dev/SessionsDown"
"""Not one of Cilium's: sessions that do not come up, with the reason; only while there are any."""
