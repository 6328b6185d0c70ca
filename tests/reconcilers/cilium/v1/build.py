"""Policies and what they look at, for the tests of v1."""

from __future__ import annotations

from typing import Any

from resources.cilium import CiliumBGPPeeringPolicy, CiliumLoadBalancerIPPool
from resources.core import Node
from tests.support import kinds


def neighbor(address: str = "192.0.2.9/32", asn: int = 65010, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    """Make a neighbour."""
    return {"peerAddress": address, "peerASN": asn, **fields}


def router(asn: int = 65001, *neighbors: dict[str, Any], **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    """Make a virtual router."""
    return {"localASN": asn, "neighbors": list(neighbors) or [neighbor()], **fields}


def policy_object(
    name: str,
    *routers: dict[str, Any],
    selector: dict[str, Any] | None = None,
    created: str = "",
) -> dict[str, Any]:
    """Make a policy as the API has it."""
    spec: dict[str, Any] = {"virtualRouters": list(routers) or [router()]}
    if selector is not None:
        spec["nodeSelector"] = selector
    return {"metadata": {"name": name, "creationTimestamp": created}, "spec": spec}


def policy(name: str = "p", *routers: dict[str, Any], **fields: Any) -> CiliumBGPPeeringPolicy:  # noqa: ANN401
    """Make a policy."""
    return kinds.PEERING_POLICY.decode(policy_object(name, *routers, **fields))


def node(name: str = "n", annotations: dict[str, str] | None = None, **labels: str) -> Node:
    """Make a node."""
    metadata = {"name": name, "labels": labels, "annotations": annotations or {}}
    return kinds.NODE.decode({"metadata": metadata})


def load_balancer_pool(name: str, *cidrs: str, **labels: str) -> CiliumLoadBalancerIPPool:
    """Make a pool."""
    return kinds.LOAD_BALANCER_IP_POOL.decode(
        {
            "metadata": {"name": name, "labels": labels},
            "spec": {"blocks": [{"cidr": cidr} for cidr in cidrs]},
        }
    )
