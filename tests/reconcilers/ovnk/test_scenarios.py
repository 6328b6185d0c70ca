"""Scenarios of RouteAdvertisements that no acceptance case has: several nodes, networks and sources."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.reconcilers.ovnk.operator_cluster import (
    CLUSTER_NETWORKS,
    DEFAULT_NETWORK,
    Cluster,
    Json,
    advertisements,
    attachment,
    node,
    source,
)

OF_CLUSTER: Final[dict[str, Any]] = {"networkSelectors": [CLUSTER_NETWORKS]}
EGRESS: Final[dict[str, Any]] = {"advertisements": ["EgressIP"]}
SUBNETS: Final = {"default": ["10.180.4.0/23"], "cluster_udn_blue": ["10.61.3.0/24"]}


def labelled(value: Json, **labels: str) -> Json:
    """Return an object with labels added."""
    metadata = {**value["metadata"], "labels": {**value["metadata"].get("labels", {}), **labels}}
    return {**value, "metadata": metadata}


def egress_ip(name: str, on: str, address: str) -> Json:
    return {
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "EgressIP",
        "metadata": {"name": name},
        "spec": {"egressIPs": [address], "namespaceSelector": {"matchLabels": {"egress": "yes"}}},
        "status": {"items": [{"node": on, "egressIP": address}]},
    }


def pod(namespace: str, on: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": namespace},
        "spec": {"nodeName": on},
    }


def namespace(name: str, **labels: str) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def of_vrf(name: str) -> Json:
    router = {"asn": 64710, "vrf": name, "neighbors": [{"address": "172.31.60.1", "asn": 64701}]}
    return source(f"{name}-src", router)


def keys(cluster: Cluster) -> set[str]:
    """Write once, and return the generated objects by source and node."""
    cluster.write()
    return {name.partition("/")[2] for name in cluster.generated()}


def test_egress_ips_are_advertised_by_the_selected_nodes_that_have_them() -> None:
    cluster = Cluster(
        labelled(node("w1", SUBNETS), zone="a"),
        labelled(node("w2", SUBNETS, "10.88.0.12/24"), zone="b"),
        source(),
        namespace("apps", egress="yes"),
        egress_ip("e1", "w1", "10.88.0.200"),
        egress_ip("e2", "w2", "10.88.0.201"),
        advertisements(nodeSelector={"matchLabels": {"zone": "a"}}, **EGRESS),
    )
    assert keys(cluster) == {"spine/w1"}
    (spec,) = cluster.generated().values()
    assert list(spec["bgp"]["routers"][0]["prefixes"]) == ["10.88.0.200/32"]


def test_what_no_node_is_selected_for_is_withdrawn() -> None:
    zone = labelled(node("w1", SUBNETS), zone="a")
    row = advertisements(nodeSelector={"matchLabels": {"zone": "a"}}, **EGRESS)
    objects = (source(), namespace("apps", egress="yes"), egress_ip("e1", "w1", "10.88.0.200"), row)
    cluster = Cluster(zone, *objects)
    assert keys(cluster) == {"spine/w1"}
    cluster.put(labelled(node("w1", SUBNETS), zone="b"))
    assert keys(cluster) == set()
    assert cluster.condition().message == "configuration pending: no nodes selected"


def test_a_namespaced_network_selects_nothing() -> None:
    blue = attachment("blue", "10.61.0.0/16/24")
    blue["metadata"]["ownerReferences"][0]["kind"] = "UserDefinedNetwork"
    cluster = Cluster(node("w1", SUBNETS), source(), blue, advertisements(**OF_CLUSTER))
    found = cluster.condition()
    assert found.reason == "ConfigurationPending"
    assert found.summary == "Not Accepted: configuration pending: no networks selected"


def test_a_router_without_a_neighbour_of_the_family_matches_nothing() -> None:
    only_ipv6 = node("w1", {"default": ["2001:db8:180:4::/64"]})
    cluster = Cluster(only_ipv6, source(), advertisements())
    assert "has no VRF matching" in cluster.condition().message


@pytest.mark.parametrize(("target", "accepted"), [(None, True), ("auto", False)])
def test_a_node_without_a_source_is_an_error_with_target_auto_alone(
    target: str | None, accepted: bool
) -> None:
    spine = source()
    spine["spec"]["nodeSelector"] = {"matchLabels": {"kubernetes.io/hostname": "w1"}}
    w2 = node("w2", SUBNETS, "10.88.0.12/24")
    cluster = Cluster(node("w1", SUBNETS), w2, spine, advertisements(targetVRF=target))
    assert cluster.condition().status is accepted
    assert keys(cluster) == ({"spine/w1"} if accepted else set())


@pytest.mark.parametrize(
    ("name", "number", "vrf"),
    [
        ("finance", "5", "finance"),
        ("tenant-prod-001", "5", "tenant-prod-001"),
        ("tenant-prod-0001", "12", "mp12-udn-vrf"),
        ("default", "9", "mp9-udn-vrf"),
    ],
)
def test_the_vrf_of_a_network_is_its_name_where_a_device_may_have_it(
    name: str, number: str, vrf: str
) -> None:
    cluster = Cluster(
        node("w1", {f"cluster_udn_{name}": ["10.61.3.0/24"]}),
        of_vrf(vrf),
        attachment(name, "10.61.0.0/16/24", number=number),
        advertisements(targetVRF="auto", **OF_CLUSTER),
    )
    assert keys(cluster) == {f"{vrf}-src/w1"}


def test_overlapping_networks_are_accepted_in_vrfs_of_their_own() -> None:
    def of(target: str | None) -> Cluster:
        same = {"config": {"topology": "layer2"}}
        return Cluster(
            node("w1", SUBNETS),
            *([source()] if target is None else [of_vrf("red"), of_vrf("blue")]),
            attachment("red", "10.65.0.0/20", **same),
            attachment("blue", "10.65.0.0/20", number="6", config={"topology": "layer2"}),
            advertisements(targetVRF=target, **OF_CLUSTER),
        )

    together = of(None).condition()
    assert together.reason == "ConfigurationError"
    assert "red" in together.message
    assert "blue" in together.message
    assert keys(of("auto")) == {"red-src/w1", "blue-src/w1"}


class TestDynamicNetworks:
    def cluster(self, *objects: Json, **changes: Any) -> Cluster:  # noqa: ANN401
        w2 = node("w2", {"cluster_udn_blue": []}, "10.88.0.12/24")
        blue = attachment("blue", "10.61.0.0/16/24")
        row = advertisements(**{**OF_CLUSTER, **changes})
        objects = (blue, row, namespace("blue-ns"), *objects)
        return Cluster(node("w1", SUBNETS), w2, *objects, dynamic_udn=True)

    def test_a_network_is_advertised_where_it_has_a_pod_and_no_longer_than_that(self) -> None:
        cluster = self.cluster(source(), pod("blue-ns", "w1"))
        assert keys(cluster) == {"spine/w1"}
        assert cluster.condition().reason == "Accepted"
        cluster.remove("Pod", "p", "blue-ns")
        assert keys(cluster) == set()

    @pytest.mark.parametrize(
        ("annotation", "transit_router", "advertised"),
        [(None, False, False), ("red", False, False), ("lab", False, True), (None, True, True)],
    )
    def test_a_layer_2_network_waits_for_its_tunnel_id_unless_it_has_a_transit_router(
        self, annotation: str | None, transit_router: bool, advertised: bool
    ) -> None:
        w1 = node("w1", SUBNETS)
        if annotation is not None:
            ids = json.dumps({f"cluster_udn_{annotation}": "17"})
            name = "k8s.ovn.org/udn-layer2-node-gateway-router-lrp-tunnel-ids"
            w1["metadata"]["annotations"][name] = ids
        lab = attachment("lab", "10.70.0.0/20", config={"topology": "layer2"})
        row = advertisements(**OF_CLUSTER)
        objects = (w1, node("w2", SUBNETS, "10.88.0.12/24"), source(), lab, row)
        cluster = Cluster(
            *(*objects, namespace("lab-ns"), pod("lab-ns", "w1")),
            dynamic_udn=True,
            layer2_transit_router=transit_router,
        )
        assert keys(cluster) == ({"spine/w1"} if advertised else set())
        assert cluster.condition().reason == "Accepted"

    def test_a_metric_has_the_number_of_nodes_of_each_network(self) -> None:
        red = attachment("red", "10.62.0.0/16/24", number="6")
        cluster = self.cluster(source(), red, pod("blue-ns", "w1"), namespace("red-ns"))
        cluster.write()
        (metric,) = cluster.operator_metrics()
        assert metric.name == "ovnkube_clustermanager_udn_nodes_rendered"
        assert metric.samples == [(("cluster_udn_blue",), 1), (("cluster_udn_red",), 0)]

    def test_a_source_of_an_inactive_network_is_no_error(self) -> None:
        red = attachment("red", "10.62.0.0/16/24", number="6")
        cluster = self.cluster(
            of_vrf("blue"), of_vrf("red"), red, pod("blue-ns", "w1"), targetVRF="auto"
        )
        assert keys(cluster) == {"blue-src/w1"}
        assert cluster.condition().reason == "Accepted"


def test_a_default_network_and_others_have_one_object_for_each_source() -> None:
    cluster = Cluster(
        node("w1", SUBNETS),
        source(),
        attachment("blue", "10.61.0.0/16/24"),
        advertisements(networkSelectors=[DEFAULT_NETWORK, CLUSTER_NETWORKS]),
    )
    assert keys(cluster) == {"spine/w1"}
    (spec,) = cluster.generated().values()
    default, imported = spec["bgp"]["routers"]
    assert list(default["prefixes"]) == ["10.180.4.0/23", "10.61.3.0/24"]
    assert [row["vrf"] for row in default["imports"]] == ["blue"]
    assert (imported["vrf"], [row["vrf"] for row in imported["imports"]]) == ("blue", ["default"])


@pytest.mark.parametrize("address", ["fd00:88::11", "FD00:88:0:0::11", "fd00:0088::0.0.0.17"])
def test_a_node_is_no_neighbour_of_itself_however_its_address_is_written(address: str) -> None:
    own = node("w1", SUBNETS)
    own["metadata"]["annotations"]["k8s.ovn.org/node-primary-ifaddr"] = json.dumps(
        {"ipv4": "10.88.0.11/24", "ipv6": "fd00:88::11/64"}
    )
    neighbors = [{"address": one, "asn": 64701} for one in ("10.88.0.1", address)]
    cluster = Cluster(
        own, source("spine", {"asn": 64710, "neighbors": neighbors}), advertisements()
    )
    cluster.write()
    (spec,) = cluster.generated().values()
    (router,) = spec["bgp"]["routers"]
    assert [neighbor["address"] for neighbor in router["neighbors"]] == ["10.88.0.1"]


def test_host_bits_of_subnets_are_cleared() -> None:
    blue = attachment("blue", "10.61.0.1/16/24", config={"transport": "no-overlay"})
    lab = attachment("lab", "10.70.0.1/20", number="6", config={"topology": "layer2"})
    cluster = Cluster(node("w1", SUBNETS), source(), blue, lab, advertisements(**OF_CLUSTER))
    cluster.write()
    (spec,) = cluster.generated().values()
    router = spec["bgp"]["routers"][0]
    assert list(router["prefixes"]) == ["10.61.3.0/24", "10.70.0.0/20"]
    (neighbor,) = router["neighbors"]
    received = neighbor["toReceive"]["allowed"]["prefixes"]
    assert [one["prefix"] for one in received] == ["10.61.0.0/16"]


def test_the_node_itself_as_a_neighbour_is_left_out_whatever_else_it_has() -> None:
    neighbors = [
        {"address": "10.88.0.1", "asn": 64701},
        {"address": "10.88.0.11", "asn": 64710, "dualStackAddressFamily": True},
    ]
    spine = source("spine", {"asn": 64710, "neighbors": neighbors})
    cluster = Cluster(node("w1", SUBNETS), spine, advertisements())
    assert cluster.condition().reason == "Accepted"
    assert keys(cluster) == {"spine/w1"}


def test_prefixes_that_may_be_received_are_in_order_whatever_the_order_of_the_subnets() -> None:
    transport = {"transport": "no-overlay"}
    subnets = "fd00:61::/48/64,10.62.0.0/16/24,10.61.0.0/16/24"
    spine = source("spine", {"asn": 64710, "neighbors": [{"interface": "eth0", "asn": 64701}]})
    blue = attachment("blue", subnets, config=transport)
    cluster = Cluster(node("w1", SUBNETS), spine, blue, advertisements(**OF_CLUSTER))
    cluster.write()
    (spec,) = cluster.generated().values()
    (neighbor,) = spec["bgp"]["routers"][0]["neighbors"]
    received = [one["prefix"] for one in neighbor["toReceive"]["allowed"]["prefixes"]]
    assert received == ["10.61.0.0/16", "10.62.0.0/16", "fd00:61::/48"]


def test_the_underlay_of_evpn_receives_no_pods_of_networks_in_other_vrfs() -> None:
    """Neighbours of the default VRF may send what the source has, and addresses of VTEPs."""
    received = {"allowed": {"prefixes": [{"prefix": "172.20.0.0/16"}]}}
    fabric = {"address": "10.88.0.1", "asn": 64701, "toReceive": received}
    of_blue = {"asn": 64710, "vrf": "blue", "neighbors": [{"address": "172.31.60.1", "asn": 1}]}
    config = {"transport": "evpn", "evpn": {"vtep": "fabric", "ipVRF": {"vni": 5200}}}
    w1 = node("w1", {**SUBNETS, "cluster_udn_red": ["10.62.3.0/24"]})
    w1["metadata"]["annotations"]["k8s.ovn.org/vteps"] = '{"fabric": {"ips": ["100.72.0.11"]}}'
    cluster = Cluster(
        w1,
        source("spine", {"asn": 64710, "neighbors": [fabric]}, of_blue),
        attachment("blue", "10.61.0.0/16/24", config={"transport": "no-overlay"}),
        attachment("red", "10.62.0.0/16/24", number="6", config=config),
        {
            "apiVersion": "k8s.ovn.org/v1",
            "kind": "VTEP",
            "metadata": {"name": "fabric"},
            "spec": {"cidrs": ["100.72.0.0/24"], "mode": "Unmanaged"},
        },
        advertisements(targetVRF="auto", **OF_CLUSTER),
        evpn=True,
    )
    cluster.write()
    (spec,) = cluster.generated().values()
    by_vrf = {router.get("vrf", ""): router for router in spec["bgp"]["routers"]}
    allowed = {
        vrf: [
            one["prefix"] for one in by_vrf[vrf]["neighbors"][0]["toReceive"]["allowed"]["prefixes"]
        ]
        for vrf in ("", "blue")
    }
    assert allowed == {"": ["172.20.0.0/16", "100.72.0.0/24"], "blue": ["10.61.0.0/16"]}
