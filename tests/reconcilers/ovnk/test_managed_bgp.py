"""Managed BGP: the source and the RouteAdvertisements that the operator makes, repairs and deletes."""

from __future__ import annotations

from typing import Any, Final

from reconcilers.dialect import ClusterIntent
from tests.reconcilers.ovnk.operator_cluster import FRR, Cluster, Json, attachment, node
from tests.reconcilers.ovnk.test_vteps import network

KEY: Final = "k8s.ovn.org/route-advertisements"
DEFAULT, NETWORKS = "ovnk-managed-bgp-default", "ovnk-managed-bgp-cudn"
SUBNETS: Final = {"default": ["10.180.4.0/24"], "cluster_udn_red": ["10.61.3.0/24"]}
RED: Final = attachment("red", "10.61.0.0/16/24", labels={}, config={"transport": "no-overlay"})


def managed(routing: str = "Managed") -> Json:
    block = {"outboundSNAT": "Enabled", "routing": routing}
    return network("NoOverlay", labels={}, noOverlay=block)


def with_address(name: str, address: str) -> Json:
    found = node(name, SUBNETS, f"{address}/24")
    found["status"] = {"addresses": [{"type": "InternalIP", "address": address}]}
    return found


def cluster(*objects: Json, **options: Any) -> Cluster:  # noqa: ANN401
    nodes = with_address("w1", "10.88.0.11"), with_address("w2", "10.88.0.12")
    chosen = {"managed_bgp": "full-mesh", "transport": "no-overlay", **options}
    return Cluster(*nodes, *objects, cluster_subnets="10.180.0.0/16/24", **chosen)


def managed_source(found: Cluster) -> Json:
    """Return the source that the operator makes."""
    generated = {one.object.name: one.content for one in found.operate().generated}
    source: Json = generated["ovnk-managed-bgp"]
    return source


def settle(found: Cluster) -> None:
    """Write until there is nothing left to write."""
    for _ in range(3):
        found.write()
    assert not found.operate().generated


def written(intent: ClusterIntent) -> set[str]:
    return {one.object.name for one in intent.generated if one.object in intent.outdated}


def test_a_network_with_managed_routing_is_advertised_by_route_advertisements_of_its_own() -> None:
    found = cluster(managed(), RED, transport="geneve")
    settle(found)
    assert found.generated().keys() == {
        f"{NETWORKS}/ovnk-managed-bgp/w1",
        f"{NETWORKS}/ovnk-managed-bgp/w2",
    }
    assert found.condition(NETWORKS).reason == "Accepted"
    of_w1 = found.generated()[f"{NETWORKS}/ovnk-managed-bgp/w1"]["bgp"]["routers"][0]
    assert (of_w1["asn"], list(of_w1["prefixes"])) == (64512, ["10.61.3.0/24"])
    assert [neighbor["address"] for neighbor in of_w1["neighbors"]] == ["10.88.0.12"]


def test_an_address_with_a_zone_is_no_neighbor() -> None:
    w3 = node("w3", SUBNETS, "10.88.0.13/24")
    texts = ("fe80::1%eth0", "10.88.0.13", "::ffff:10.88.0.14", "w3.example")
    w3["status"] = {"addresses": [{"type": "InternalIP", "address": text} for text in texts]}
    found = cluster(managed(), RED, w3, transport="geneve")
    settle(found)
    of_w1 = found.generated()[f"{NETWORKS}/ovnk-managed-bgp/w1"]["bgp"]["routers"][0]
    assert [one["address"] for one in of_w1["neighbors"]] == ["10.88.0.12", "10.88.0.13"]


def test_the_first_address_of_each_family_is_a_neighbor() -> None:
    w3 = node("w3", SUBNETS, "10.88.0.13/24")
    texts = ("10.88.0.13", "192.0.2.13", "2001:db8:88::13", "fd00::13")
    w3["status"] = {"addresses": [{"type": "InternalIP", "address": text} for text in texts]}
    found = cluster(managed(), RED, w3, transport="geneve")
    source = managed_source(found)
    addresses = [one["address"] for one in source["spec"]["bgp"]["routers"][0]["neighbors"]]
    assert addresses == ["10.88.0.11", "10.88.0.12", "10.88.0.13", "2001:db8:88::13"]


def test_a_network_that_others_route_is_not() -> None:
    found = cluster(managed("Unmanaged"), RED, transport="geneve")
    assert not written(found.write())


def test_what_people_change_or_delete_is_as_before() -> None:
    found = cluster(managed(), RED)
    settle(found)
    before = found.generated()
    for kind, name, namespace in (
        ("FRRConfiguration", "ovnk-managed-bgp", FRR),
        ("RouteAdvertisements", DEFAULT, ""),
        ("RouteAdvertisements", NETWORKS, ""),
    ):
        found.remove(kind, name, namespace)
        assert written(found.write()) == {name}
        settle(found)
        assert found.generated() == before
    source = managed_source(cluster(managed(), RED))
    source["spec"]["bgp"]["routers"][0]["asn"] = 64513
    found.put(source)
    assert "ovnk-managed-bgp" in written(found.write())
    settle(found)
    assert found.generated() == before


def test_a_node_that_joins_is_a_neighbor_of_all_others() -> None:
    found = cluster()
    settle(found)
    found.put(with_address("w3", "10.88.0.13"))
    settle(found)
    peers = {
        key.rpartition("/")[2]: {
            neighbor["address"] for neighbor in spec["bgp"]["routers"][0]["neighbors"]
        }
        for key, spec in found.generated().items()
    }
    assert peers == {
        "w1": {"10.88.0.12", "10.88.0.13"},
        "w2": {"10.88.0.11", "10.88.0.13"},
        "w3": {"10.88.0.11", "10.88.0.12"},
    }


def test_what_is_no_longer_managed_is_deleted() -> None:
    found = cluster(managed(), RED)
    settle(found)
    found.put(managed("Unmanaged"))
    names = {one.object.name for one in found.write().deletions}
    assert NETWORKS in names
    assert DEFAULT not in names
    found.options = type(found.options)(mode="generate")
    found.restart()
    settle(found)
    assert not found.operate().deletions
    assert found.generated() == {}
