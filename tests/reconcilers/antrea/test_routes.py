"""Routes of Services, pods and Egresses, and what each change of them costs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.reconcilers.antrea.build import (
    NODE,
    PEER,
    PEER6,
    Cluster,
    dual,
    egress,
    endpoints,
    in_ten_spellings,
    node,
    policy,
    service,
)

ALL = ("ClusterIP", "ExternalIP", "LoadBalancerIP")


def cluster(*objects: dict[str, Any], **options: Any) -> Cluster:  # noqa: ANN401
    return Cluster(node(), policy("p", *ALL), *objects, **options)


@pytest.mark.parametrize("where", ["internalTrafficPolicy", "externalTrafficPolicy"])
def test_each_traffic_policy_is_for_its_own_addresses(where: str) -> None:
    spec: dict[str, Any] = {
        "type": "LoadBalancer",
        "clusterIPs": ["10.98.14.20"],
        "externalIPs": ["192.0.2.20"],
        "ingress": ["203.0.113.20"],
    }
    inside, outside = ["10.98.14.20/32"], ["192.0.2.20/32", "203.0.113.20/32"]
    it = cluster(service(**spec, **{where: "Local"}), endpoints("edge-9"))
    assert it.prefixes() == (outside if where.startswith("internal") else inside)
    it.put(endpoints("edge-9", NODE))
    assert it.prefixes() == [*inside, *outside]


def test_an_endpoint_of_an_external_ip_moves_though_the_internal_policy_is_cluster() -> None:
    it = cluster(service(externalIPs=["192.0.2.20"], externalTrafficPolicy="Local"))
    assert it.prefixes() == []
    it.put(endpoints(NODE))
    assert it.prefixes() == ["192.0.2.20/32"]
    it.put(endpoints("edge-9"))
    assert it.prefixes() == []


def test_a_slice_that_changes_its_service_affects_both() -> None:
    local = {"externalTrafficPolicy": "Local"}
    it = cluster(
        service("one", externalIPs=["192.0.2.1"], **local),
        service("two", externalIPs=["192.0.2.2"], **local),
        endpoints(NODE, service="one"),
    )
    assert it.prefixes() == ["192.0.2.1/32"]
    it.put(endpoints(NODE, service="two"))
    assert it.prefixes() == ["192.0.2.2/32"]


STATES = [
    ({"ready": False, "serving": False, "terminating": True}, False),
    ({"ready": False, "serving": True, "terminating": True}, True),
    ({"ready": False, "serving": True}, False),
    ({"ready": False}, False),
    ({"ready": True}, True),
    ({"serving": True}, True),
]


@pytest.mark.parametrize(("conditions", "ready"), STATES)
def test_endpoints_count_in_any_state_unless_the_flag_is_set(
    conditions: dict[str, bool], ready: bool
) -> None:
    given = service(externalIPs=["192.0.2.20"], externalTrafficPolicy="Local")
    slices = endpoints(NODE, conditions=conditions)
    assert cluster(given, slices).prefixes() == ["192.0.2.20/32"]
    expected = ["192.0.2.20/32"] if ready else []
    assert cluster(given, slices, ready_endpoints=True).prefixes() == expected


def test_load_balancer_addresses_need_the_type() -> None:
    it = cluster(service(type="NodePort", ingress=["203.0.113.41"]))
    assert it.prefixes() == []
    it.put(service(type="LoadBalancer", ingress=["203.0.113.41"]))
    assert it.prefixes() == ["203.0.113.41/32"]


def test_a_family_that_is_not_enabled_has_no_routes() -> None:
    assert cluster(service(clusterIPs=["10.98.14.20", "2001:db8:98::1"])).prefixes() == [
        "10.98.14.20/32"
    ]


def test_routes_go_to_peers_of_their_family() -> None:
    it = Cluster(dual(), policy("p", "ClusterIP", peers=[PEER, PEER6], pod=True))
    it.put(service(clusterIPs=["10.98.14.20", "2001:db8:98::1"]))
    assert it.prefixes() == ["10.98.14.20/32", "10.201.7.0/24"]
    assert it.prefixes("2001:db8:30::1") == ["2001:db8:98::1/128", "2001:db8:c9:7::/64"]


def test_spellings_of_one_address_are_one_route_that_stays_while_one_is_left() -> None:
    spellings = ["2001:DB8::1", "2001:db8:0::1", "2001:db8::0:1", "2001:0db8::1"]
    it = Cluster(dual(), policy("p", "ExternalIP", peers=[PEER6]), service(externalIPs=spellings))
    assert it.prefixes("2001:db8:30::1") == ["2001:db8::1/128"]
    it.put(service(externalIPs=spellings[2:3]))
    assert it.prefixes("2001:db8:30::1") == ["2001:db8::1/128"]
    it.put(service(externalIPs=[]))
    assert it.prefixes("2001:db8:30::1") == []


def test_a_service_with_500_external_ips_in_ten_spellings() -> None:
    texts = in_ten_spellings(50)
    assert len(set(texts)) == 500
    it = Cluster(dual(), policy("p", "ExternalIP", peers=[PEER6]), service(externalIPs=texts))
    assert len(it.prefixes("2001:db8:30::1")) == 50
    assert it.problems() == []


def origins(it: Cluster) -> dict[str, list[tuple[str, str]]]:
    return {
        route["prefix"]: [(o["name"], o["type"]) for o in route["origins"]]
        for route in it.peers()["10.30.4.1"]["advertise"]
    }


def test_the_origin_follows_the_owner_of_an_address() -> None:
    one = service("one", externalIPs=["192.0.2.80"])
    two = service("two", type="LoadBalancer", ingress=["192.0.2.80"])
    it = cluster(one)
    assert origins(it) == {"192.0.2.80/32": [("one", "ServiceExternalIP")]}
    it.put(two)
    both = [("one", "ServiceExternalIP"), ("two", "ServiceLoadBalancerIP")]
    assert origins(it) == {"192.0.2.80/32": both}
    it.delete("Service", "one", "retail")
    assert origins(it) == {"192.0.2.80/32": both[1:]}


def test_one_service_with_an_address_of_two_types() -> None:
    both = service(type="LoadBalancer", externalIPs=["192.0.2.80"], ingress=["192.0.2.80"])
    types = [("shop", "ServiceExternalIP"), ("shop", "ServiceLoadBalancerIP")]
    assert origins(cluster(both)) == {"192.0.2.80/32": types}


def test_an_egress_moves_between_nodes() -> None:
    it = Cluster(node(), policy(egress=True), egress("billing", "10.30.4.200", NODE))
    assert it.prefixes() == ["10.30.4.200/32"]
    it.put(egress("billing", "10.30.4.200", "edge-9"))
    assert it.prefixes() == []
    it.put(egress("billing", "10.30.4.201", NODE))
    assert it.prefixes() == ["10.30.4.201/32"]
    it.put(egress("billing", "", NODE))
    assert it.prefixes() == []
    it.put(egress("billing", "10.30.4.201", NODE))
    it.delete("Egress", "billing")
    assert it.prefixes() == []


def test_with_egress_off_no_egress_ip_is_advertised() -> None:
    it = Cluster(node(), policy(egress=True), egress("b", "10.30.4.200", NODE), egress=False)
    assert it.prefixes() == []


def test_pod_cidrs_follow_the_node() -> None:
    it = Cluster(node(), policy(pod=True))
    assert it.prefixes() == ["10.201.7.0/24"]
    it.put(node(cidrs=["10.201.8.0/24"]))
    assert it.prefixes() == ["10.201.8.0/24"]


def test_a_changed_service_costs_that_service_alone() -> None:
    it = cluster(*(service(f"s{i}", externalIPs=[f"192.0.2.{i}"]) for i in range(100)))
    it.run()
    it.put(service("s7", externalIPs=["192.0.2.7", "198.51.100.7"]))
    summary = it.run()
    assert (summary.dialects, summary.objects, summary.routes) == ((), 1, 1)


def test_objects_deleted_in_the_middle() -> None:
    it = cluster(service(externalIPs=["192.0.2.20"]), endpoints(NODE))
    it.run()
    it.delete("Service", "shop", "retail")
    it.delete("Node", NODE)
    it.delete("EndpointSlice", "shop-1", "retail")
    it.delete("BGPPolicy", "p")
    document = it.render()
    assert (document["instances"], document["problems"]) == ([], [])


@pytest.mark.parametrize("both", [True, False])
def test_an_ipv4_mapped_address_is_a_problem_whatever_families_the_node_has(both: bool) -> None:
    of_node = dual() if both else node()
    given = service(externalIPs=["::ffff:10.5.5.5", "10.05.5.6"], clusterIPs=[])
    it = Cluster(of_node, policy("p", *ALL, peers=[PEER]), given)
    assert it.prefixes() == ["10.5.5.6/32"]
    (problem,) = it.render()["problems"]
    assert problem["field"] == "spec.externalIPs"
    assert "IPv4-mapped" in problem["message"]
    assert it.render() == it.fresh()
