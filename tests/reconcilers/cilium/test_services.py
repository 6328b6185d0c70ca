"""Endpoints decide about the addresses of their own family: a connection stays in its family."""

from __future__ import annotations

from typing import Any

import pytest

from tests.reconcilers.build import (
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
