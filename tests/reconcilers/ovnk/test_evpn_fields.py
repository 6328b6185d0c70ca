"""EVPN in the fields of FRRConfigurations: the same as the text, for FRR-k8s's newer definition."""

from __future__ import annotations

from resources.frrk8s.kinds import FRR_CONFIGURATION
from tests.reconcilers.ovnk.cases import case
from tests.reconcilers.ovnk.cluster import Cluster, Json


def spec_of(name: str, node: str = "w1") -> Json:
    """Return the generated spec of a case's node, with EVPN in fields."""
    objects = [one for one in case(name)["objects"] if one["kind"] != "Pod"]
    cluster = Cluster(*objects, evpn=True, evpn_form="fields")
    found = {
        one.content["metadata"]["annotations"]["k8s.ovn.org/route-advertisements"]: one.content
        for one in cluster.operate().generated
        if one.object.kind == "FRRConfiguration"
    }
    content = found[f"north/spine/{node}"]
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
    assert [one["addressFamilies"] for one in routers[""]["neighbors"]] == [["unicast", "evpn"]]
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
