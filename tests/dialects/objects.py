"""Objects for the tests of the test dialects."""

from __future__ import annotations

from typing import Any

NODE = "node-1"


def beacon(name: str = NODE, created: str = "", **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    """Make a Beacon; ``created`` is its creationTimestamp."""
    made = _object("v1", "Beacon", name, spec_of_beacon(**spec))
    if created:
        made["metadata"]["creationTimestamp"] = created
    return made


def spec_of_beacon(**spec: Any) -> dict[str, Any]:  # noqa: ANN401
    """Make the spec of a Beacon."""
    usual = {
        "asn": 65001,
        "routerID": "192.0.2.1",
        "peerASN": 65000,
        "peerAddress": "192.0.2.9",
        "namespace": "shop",
    }
    return usual | spec


def lighthouse(name: str, *nodes: str, **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    """Make a Lighthouse."""
    return _object("v2", "Lighthouse", name, {"nodes": nodes, "beacon": spec_of_beacon(**spec)})


def buoy(name: str, node: str = NODE, created: str = "", **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    """Make a Buoy; ``created`` is its creationTimestamp."""
    made = _object("v1", "Buoy", name, {"node": node, "beacon": spec_of_beacon(**spec)})
    if created:
        made["metadata"]["creationTimestamp"] = created
    return made


def service(name: str, *addresses: str, namespace: str = "shop") -> dict[str, Any]:
    """Make a Service with addresses at load balancers."""
    ingress = [{"ip": address} for address in addresses]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
        "status": {"loadBalancer": {"ingress": ingress}},
    }


def node(name: str = NODE) -> dict[str, Any]:
    """Make a Node."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def _object(version: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    api_version = f"test.waggle.dev/{version}"
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}
