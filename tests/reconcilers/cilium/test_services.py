"""The rules for Services: endpoints by family, proxied Services, classes, selectors, own addresses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.reconcilers.build import (
    NODE,
    Cluster,
    advertisement,
    endpoint_slice,
    peer_config,
    service,
    usual,
)
from tests.support import kinds

IPV4 = ["10.96.0.1/32", "172.16.0.1/32", "198.51.100.1/32"]
IPV6 = ["fd00:16::1/128", "fd00:96::1/128", "fd00:98::1/128"]


def dual_stack(*slices: dict[str, Any], policy: str, **options: Any) -> Cluster:  # noqa: ANN401
    """Return a cluster with a Service that has each type of address in both families."""
    cluster = usual(**options)
    selected = {"safi": "unicast", "advertisements": {}}
    families = [{"afi": afi, **selected} for afi in ("ipv4", "ipv6")]
    cluster.put(kinds.PEER_CONFIG, {"metadata": {"name": "pc"}, "spec": {"families": families}})
    types = {"addresses": ["LoadBalancerIP", "ClusterIP", "ExternalIP"]}
    entry = {"advertisementType": "Service", "service": types, "selector": {}}
    spec = {"advertisements": [entry]}
    cluster.put(kinds.ADVERTISEMENT, {"metadata": {"name": "ad"}, "spec": spec})
    value = service("s", "172.16.0.1", policy=policy)
    value["spec"] |= {
        "internalTrafficPolicy": policy,
        "clusterIPs": ["10.96.0.1", "fd00:96::1"],
        "externalIPs": ["198.51.100.1", "fd00:98::1"],
    }
    value["status"]["loadBalancer"]["ingress"].append({"ip": "fd00:16::1"})
    cluster.put(kinds.SERVICE, value)
    for item in slices:
        cluster.put(kinds.ENDPOINT_SLICE, item)
    cluster.run()
    return cluster


HERE4 = endpoint_slice("e4", "s")
HERE6 = endpoint_slice("e6", "s", ipv6=True)
AWAY4 = endpoint_slice("e4", "s", "other")
AWAY6 = endpoint_slice("e6", "s", "other", ipv6=True)
NONE4 = {**HERE4, "endpoints": []}
NONE6 = {**HERE6, "endpoints": []}


@pytest.mark.parametrize(
    ("slices", "advertised"),
    [
        ([], []),
        ([HERE4, NONE6], IPV4),
        ([NONE4, HERE6], IPV6),
        ([HERE4], IPV4 + IPV6),
        ([HERE4, HERE6], IPV4 + IPV6),
        ([HERE4, AWAY6], IPV4),
        ([AWAY4, HERE6], IPV6),
        ([AWAY4, AWAY6], []),
        ([endpoint_slice("e4", "s", terminating=True), HERE6], IPV6),
        ([endpoint_slice("e4", "s", ready=False, serving=True, terminating=True), HERE6], IPV6),
        # The Service publishes addresses that are not ready: Cilium and kube-proxy forward to them.
        ([endpoint_slice("e4", "s", ready=True, terminating=True), HERE6], IPV4 + IPV6),
    ],
)
def test_with_policy_local_each_family_requires_an_endpoint_of_its_own(
    slices: list[dict[str, Any]], advertised: list[str]
) -> None:
    assert dual_stack(*slices, policy="Local").prefixes() == advertised


@pytest.mark.parametrize(
    ("slices", "advertised"),
    [
        ([], []),
        ([AWAY4, NONE6], IPV4),
        ([NONE4, AWAY6], IPV6),
        ([NONE4, NONE6], []),
        ([AWAY4], IPV4 + IPV6),
    ],
)
def test_where_services_without_endpoints_are_not_routable_it_is_the_same_anywhere(
    slices: list[dict[str, Any]], advertised: list[str]
) -> None:
    found = dual_stack(*slices, policy="Cluster", no_service_endpoints_routable=False)
    assert found.prefixes() == advertised


def test_an_endpoint_that_comes_and_goes_changes_its_family_only() -> None:
    cluster = dual_stack(HERE4, NONE6, policy="Local")
    cluster.put(kinds.ENDPOINT_SLICE, HERE6)
    cluster.run()
    assert cluster.prefixes() == IPV4 + IPV6
    cluster.put(kinds.ENDPOINT_SLICE, NONE4)
    cluster.run()
    assert cluster.prefixes() == IPV6


def test_a_service_with_one_family_needs_no_other() -> None:
    cluster = usual()
    cluster.put(kinds.PEER_CONFIG, peer_config())
    cluster.put(kinds.ADVERTISEMENT, advertisement())
    cluster.put(kinds.SERVICE, service("s", "172.16.0.1", policy="Local"))
    cluster.put(kinds.ENDPOINT_SLICE, HERE4)
    cluster.run()
    assert "172.16.0.1/32" in cluster.prefixes()


def advertised(value: dict[str, Any], selector: dict[str, Any] | None = None) -> list[str]:
    """Return what of a Service alone is advertised, with LoadBalancerIP and ClusterIP."""
    cluster = usual()
    types = {"addresses": ["LoadBalancerIP", "ClusterIP"]}
    entry = {"advertisementType": "Service", "service": types, "selector": selector or {}}
    metadata = {"name": "ad", "labels": {"advertise": "ad"}}
    cluster.put(kinds.ADVERTISEMENT, {"metadata": metadata, "spec": {"advertisements": [entry]}})
    cluster.put(kinds.SERVICE, value)
    cluster.run()
    return cluster.prefixes()


@pytest.mark.parametrize(
    ("metadata", "proxied"),
    [
        ({"labels": {"io.cilium.gateway/owning-gateway": "g"}}, True),
        ({"labels": {"io.cilium/gateway-api": "g"}}, True),
        ({"labels": {"cilium.io/ingress": "true"}}, True),
        ({"annotations": {"service.cilium.io/lb-l7": "enabled"}}, True),
        ({"annotations": {"service.cilium.io/lb-l7": "disabled"}}, False),
        ({"labels": {"service.cilium.io/lb-l7": "enabled"}}, False),
        ({}, False),
    ],
)
def test_only_the_load_balancer_addresses_of_a_proxied_service_need_no_endpoint(
    metadata: dict[str, Any], proxied: bool
) -> None:
    value = service("s", "172.16.0.1", policy="Local")
    value["metadata"] |= metadata
    value["spec"] |= {"internalTrafficPolicy": "Local", "clusterIPs": ["10.96.0.1"]}
    assert advertised(value) == (["172.16.0.1/32"] if proxied else [])
    value["spec"]["type"] = "ClusterIP"
    assert advertised(value) == []


@pytest.mark.parametrize(
    ("name", "own"),
    [(None, True), ("io.cilium/bgp-control-plane", True), ("io.cilium/l2-announcer", False)],
)
def test_load_balancer_addresses_of_another_class_are_not_advertised(
    name: str | None, own: bool
) -> None:
    value = service("s", "172.16.0.1")
    value["spec"] |= {"clusterIPs": ["10.96.0.1"], "loadBalancerClass": name}
    assert advertised(value) == ["10.96.0.1/32", *(["172.16.0.1/32"] if own else [])]


@pytest.mark.parametrize(("wanted", "found"), [("s", ["172.16.0.1/32"]), ("another", [])])
def test_a_label_of_the_service_does_not_replace_a_reserved_key(
    wanted: str, found: list[str]
) -> None:
    value = service("s", "172.16.0.1")
    value["metadata"]["labels"] = {"io.kubernetes.service.name": "another"}
    assert advertised(value, {"matchLabels": {"io.kubernetes.service.name": wanted}}) == found


def test_addresses_of_the_cilium_node_are_the_nodes_own() -> None:
    cluster = usual()
    own = [
        {"type": "InternalIP", "ip": "192.0.2.5"},
        {"type": "CiliumInternalIP", "ip": "10.244.0.1"},
    ]
    for name, address in (("a", "192.0.2.5"), ("b", "10.244.0.1"), ("c", "192.0.2.1")):
        cluster.put(kinds.SERVICE, service(name, address))
    cluster.run()
    # Of the Node.
    assert cluster.prefixes() == ["10.244.0.0/24", "10.244.0.1/32", "192.0.2.5/32"]
    cilium_node = {"metadata": {"name": NODE, "labels": {"bgp": "yes"}}, "spec": {"addresses": own}}
    cluster.put(kinds.CILIUM_NODE, cilium_node)
    cluster.run()
    assert cluster.prefixes() == []
    message = f"10.244.0.1 is not advertised by node {NODE}: it is an address of this node"
    assert message in [problem["message"] for problem in cluster.render()["problems"]]
    cluster.delete(kinds.NODE, NODE)
    cluster.run()
    assert cluster.prefixes() == ["192.0.2.1/32"]
    cluster.put(kinds.CILIUM_NODE, {**cilium_node, "spec": {"addresses": own[:1]}})
    cluster.run()
    assert cluster.prefixes() == ["10.244.0.1/32", "192.0.2.1/32"]
