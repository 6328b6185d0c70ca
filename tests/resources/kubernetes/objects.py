"""Objects as an API server has them, no more than what makes them valid."""

from __future__ import annotations

from typing import Any


def service(name: str, kind: str = "LoadBalancer", namespace: str = "shop") -> dict[str, Any]:
    return {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"type": kind},
    }


def advertisement(name: str) -> dict[str, Any]:
    return {
        "kind": "CiliumBGPAdvertisement",
        "apiVersion": "cilium.io/v2",
        "metadata": {"name": name},
        "spec": {"advertisements": [{"advertisementType": "PodCIDR"}]},
    }
