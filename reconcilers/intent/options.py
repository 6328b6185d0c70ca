"""Settings of the whole agent that concern intent: values only."""

from __future__ import annotations

from typing import Literal

import msgspec

PeeringPolicies = Literal["exclusive", "first", "translate"]
"""What is done with CiliumBGPPeeringPolicies.

``exclusive``: followed, but of several that select a node none, as in Cilium. ``first``: of several
one is followed. ``translate``: objects of v2 are made of them, and those are followed.
"""


Drain = Literal["off", "withdraw", "deprefer"]
"""What becomes of the routes of a node that is drained: nothing, they are taken back, or they are told
as a last choice (RFC 8326)."""
DRAIN_TAINTS = ("node.kubernetes.io/unschedulable",)
"""The taint of a cordoned node."""


class IntentOptions(msgspec.Struct, frozen=True):
    """The settings."""

    node: str
    secrets_namespace: str = "kube-system"
    no_service_endpoints_routable: bool = True
    legacy_origin_attribute: bool = False
    """Whether LoadBalancer addresses have the ORIGIN INCOMPLETE, as in Cilium up to 1.15."""
    peering_policies: PeeringPolicies = "exclusive"
    router_id_allocation_ip_pool: str | None = None
    """IPv4 prefix that router IDs come from; None takes the node's IPv4 address."""
    whole_cluster: bool = True
    """Whether all nodes and NodeConfigs are seen. Otherwise only this node's are: what is to be said
    of the cluster is the operator's to say, router IDs from a pool are its to give, and a NodeConfig
    that it has written counts; where all is seen, one that a ClusterConfig controls is made anew."""
    drain: Drain = "off"
    drain_taints: tuple[str, ...] = DRAIN_TAINTS
    """Keys of the taints of a node that is to be drained."""
    drain_prepend: int = 0
    """With ``deprefer``: how often our AS is in the path once more."""
