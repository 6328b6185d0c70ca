"""EVPN in the fields of FRRConfigurations: the same as the text, for FRR-k8s's newer definition."""

from __future__ import annotations

from resources.crds.generate import custom_resource_definition
from resources.frrk8s.kinds import FRR_CONFIGURATION
from tests.reconcilers.ovnk.cases import case
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
from tests.reconcilers.ovnk.test_vteps import vtep


def generated(cluster: Cluster) -> dict[str, Json]:
    """Return the generated objects by their annotation."""
    return {
        one.content["metadata"]["annotations"]["k8s.ovn.org/route-advertisements"]: one.content
        for one in cluster.operate().generated
        if one.object.kind == "FRRConfiguration"
    }


def spec_of(name: str, node: str = "w1") -> Json:
    """Return the generated spec of a case's node, with EVPN in fields."""
    objects = [one for one in case(name)["objects"] if one["kind"] != "Pod"]
    content = generated(Cluster(*objects, evpn=True, evpn_form="fields"))[f"north/spine/{node}"]
    assert FRR_CONFIGURATION.decode(content).broken_rules == ()
    spec: Json = content["spec"]
    return spec


def test_an_ip_vrf_is_the_layer_3_vni_of_its_router() -> None:
    spec = spec_of("ovnk-evpn-ip-vrf")
    routers = {one.get("vrf", ""): one for one in spec["bgp"]["routers"]}
    assert routers["blue"]["evpn"] == {
        "l3vni": {
            "vni": 5200,
            "importRTs": ["64710:5200"],
            "exportRTs": ["64710:5200"],
            "advertisePrefixes": ["unicast"],
        }
    }
    assert routers[""]["evpn"] == {"advertiseVNIs": "All"}
    assert [one["addressFamilies"] for one in routers[""]["neighbors"]] == [["evpn", "unicast"]]
    assert "l2vpn" not in spec["raw"]["rawConfig"]
    assert "neighbor 10.88.0.1 allowas-in origin" in spec["raw"]["rawConfig"]


def test_a_node_without_a_vtep_has_the_session_too() -> None:
    routers = {
        one.get("vrf", ""): one for one in spec_of("ovnk-evpn-ip-vrf", "w2")["bgp"]["routers"]
    }
    assert routers[""]["evpn"] == {"advertiseVNIs": "All"}
    assert [one["address"] for one in routers[""]["neighbors"]] == ["10.88.0.1"]


def test_a_mac_vrf_with_a_route_target_is_a_layer_2_vni() -> None:
    (router,) = spec_of("ovnk-evpn-mac-vrf")["bgp"]["routers"]
    targets = {"importRTs": ["64710:5300"], "exportRTs": ["64710:5300"]}
    assert router["evpn"] == {"advertiseVNIs": "All", "l2vnis": [{"vni": 5300, **targets}]}


def test_layer_2_vnis_are_in_the_order_of_their_numbers() -> None:
    (router,) = spec_of("ovnk-more-evpn-mac-vrfs-in-the-order-of-vnis")["bgp"]["routers"]
    assert [one["vni"] for one in router["evpn"]["l2vnis"]] == [6500, 6900]


def test_a_router_that_only_imports_is_not_that_of_the_underlay() -> None:
    evpn = {"vtep": "fabric", "ipVRF": {"vni": 5200}}
    red = attachment("red", "10.61.0.0/16/24", config={"transport": "evpn", "evpn": evpn})
    neighbors = [{"address": "10.99.0.1", "asn": 64801}]
    default = {"asn": 64710, "neighbors": [{"address": "10.88.0.1", "asn": 64701}]}
    of_red = {"asn": 64710, "vrf": "red", "neighbors": neighbors}
    selectors = [DEFAULT_NETWORK, CLUSTER_NETWORKS]
    row = advertisements(targetVRF="red", networkSelectors=selectors)
    subnets = {"default": ["10.180.4.0/23"], "cluster_udn_red": ["10.61.3.0/24"]}
    objects = (
        node("w1", subnets),
        source("spine", default, of_red),
        red,
        row,
        vtep("fabric", "100.72.0.0/24"),
    )
    cluster = Cluster(*objects, evpn=True, evpn_form="fields")
    routers = generated(cluster)["north/spine/w1"]["spec"]["bgp"]["routers"]
    imports, underlay = (one for one in routers if not one.get("vrf"))
    assert imports == {"asn": 64710, "imports": [{"vrf": "red"}]}
    assert underlay["evpn"] == {"advertiseVNIs": "All"}
    assert [one["addressFamilies"] for one in underlay["neighbors"]] == [["evpn", "unicast"]]


def definition(*, evpn: bool) -> Json:
    """Return the definition of FRRConfiguration, as a version of FRR-k8s has it."""
    found = custom_resource_definition(FRR_CONFIGURATION)
    (version,) = found["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    router = spec["bgp"]["properties"]["routers"]["items"]["properties"]
    assert "evpn" in router
    if not evpn:
        del router["evpn"]
    return found


def test_the_form_is_that_of_the_definition_in_the_cluster() -> None:
    objects = [one for one in case("ovnk-evpn-ip-vrf")["objects"] if one["kind"] != "Pod"]
    cluster = Cluster(*objects, evpn=True)

    def has_fields() -> bool:
        spec = generated(cluster)["north/spine/w1"]["spec"]
        in_text = "l2vpn evpn" in spec["raw"]["rawConfig"]
        in_fields = any("evpn" in router for router in spec["bgp"]["routers"])
        assert in_text is not in_fields
        return in_fields

    assert not has_fields()
    cluster.put(definition(evpn=False))
    assert not has_fields()
    cluster.put(definition(evpn=True))
    assert has_fields()
    cluster.write()
    assert not cluster.operate().outdated
    cluster.put(definition(evpn=False))
    assert not has_fields()


def test_an_option_has_the_form_whatever_the_definition() -> None:
    objects = [one for one in case("ovnk-evpn-ip-vrf")["objects"] if one["kind"] != "Pod"]
    cluster = Cluster(*objects, definition(evpn=True), evpn=True, evpn_form="text")
    assert "l2vpn evpn" in generated(cluster)["north/spine/w1"]["spec"]["raw"]["rawConfig"]
