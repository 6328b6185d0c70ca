"""Why a route is not advertised to a peer: each reason once, with the object of the rule."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

from reconcilers.cilium.dialect import CiliumDialect
from reconcilers.dialect import explained_kinds
from reconcilers.intent import explain as explain_module
from reconcilers.intent.explain import Explainer, NothingFoundError, parse_target
from reconcilers.model import RouteExplanation
from speaker.nlri import prefix_to_text
from tests.reconcilers.build import (
    NODE,
    Cluster,
    advertisement,
    cluster_config,
    endpoint_slice,
    node,
    peer,
    peer_config,
    service,
    usual,
)
from tests.support import kinds

ADVERT = "CiliumBGPAdvertisement/ad"


def ask(
    cluster: Cluster, target: str | None = None, peer: str | None = None
) -> list[RouteExplanation]:
    cluster.run()
    groups = cluster.compiler.explainer().explain(
        parse_target(target, explained_kinds([CiliumDialect])) if target is not None else None,
        lambda _, name, address: peer in (None, name, address),
    )
    return [verdict for group in groups for verdict in group]


def only(cluster: Cluster, target: str, type_: str | None = None) -> tuple[str, str | None]:
    """Give reason and rule of the only answer."""
    (found,) = (v for v in ask(cluster, target) if type_ in (None, v.type))
    assert not found.advertised
    assert found.message
    return found.reason, str(found.rule) if found.rule is not None else None


def test_an_advertised_route_is_explained_with_its_rule() -> None:
    (found,) = ask(usual(), "10.244.0.0/24")
    assert (found.reason, str(found.rule), found.instance, found.peer) == (
        "Advertised", ADVERT, "i", "p",
    )  # fmt: skip
    assert [prefix_to_text(found.family, n) for n in found.advertised if found.family] == [
        "10.244.0.0/24"
    ]


def test_an_address_without_an_object_of_its_own_has_the_longest_match() -> None:
    cluster = usual()
    cluster.put(kinds.SERVICE, service("web", "10.244.0.7"))
    (exact,) = (v for v in ask(cluster, "10.244.0.7") if v.type == "LoadBalancerIP")
    assert str(exact.object) == "Service/default/web"
    (longest,) = ask(cluster, "10.244.0.8")
    assert (str(longest.object), longest.reason) == (f"Node/{NODE}", "Advertised")
    # The nearest first; of a prefix that has nothing in common there is none.
    with pytest.raises(
        NothingFoundError, match=r"; the nearest: 10\.244\.0\.0/24, 10\.244\.0\.7/32$"
    ):
        ask(cluster, "10.245.0.8")
    with pytest.raises(NothingFoundError, match=r"contains 172\.16\.0\.1$"):
        ask(cluster, "172.16.0.1")


@pytest.mark.parametrize(
    ("target", "nearest"),
    [
        ("wbe", "; the nearest: Service/default/web"),
        ("default/wbe", "; the nearest: Service/default/web"),
        ("defaults/web", "; the nearest: Service/default/web"),
        (f"node/{NODE}x", f"; the nearest: Node/{NODE}"),
        ("node/web", ""),
        ("frobnicate", ""),
    ],
)
def test_an_unknown_name_has_the_nearest_of_its_kind(target: str, nearest: str) -> None:
    cluster = usual()
    cluster.put(kinds.SERVICE, service("web", "10.244.0.7"))
    with pytest.raises(NothingFoundError, match=rf"is called {target}{nearest}$"):
        ask(cluster, target)


def test_an_address_may_match_an_aggregate() -> None:
    cluster = usual()
    cluster.put(kinds.SERVICE, service("web", "198.51.100.1"))
    cluster.put(kinds.ADVERTISEMENT, advertisement(service={
        "addresses": ["LoadBalancerIP"], "aggregationLengthIPv4": 24
    }))  # fmt: skip
    (found,) = (v for v in ask(cluster, "198.51.100.200") if v.type == "LoadBalancerIP")
    assert found.advertised
    assert str(found.object) == "Service/default/web"


def headless(value: dict[str, Any]) -> None:
    value["spec"] |= {"type": "ClusterIP", "clusterIP": "None"}


def of_class(value: dict[str, Any]) -> None:
    value["spec"]["loadBalancerClass"] = "example.com/other"


def pending(value: dict[str, Any]) -> None:
    value["status"] = {}


def name_only(value: dict[str, Any]) -> None:
    value["spec"]["type"] = "ExternalName"


def local(value: dict[str, Any]) -> None:
    value["spec"]["externalTrafficPolicy"] = "Local"


def of_cluster(value: dict[str, Any]) -> None:
    value["spec"]["type"] = "ClusterIP"


@pytest.mark.parametrize(
    ("change", "type_", "reason"),
    [
        (headless, "ClusterIP", "Headless"),
        (of_class, "LoadBalancerIP", "LoadBalancerClass"),
        (pending, "LoadBalancerIP", "NoAddress"),
        (name_only, "LoadBalancerIP", "ExternalName"),
        (local, "LoadBalancerIP", "NoLocalEndpoint"),
        (of_cluster, "LoadBalancerIP", "NotLoadBalancer"),
    ],
)
def test_a_service_without_a_load_balancer_is_explained(
    change: Callable[[dict[str, Any]], None], type_: str, reason: str
) -> None:
    cluster = usual()
    every = {"addresses": ["LoadBalancerIP", "ClusterIP", "ExternalIP"]}
    cluster.put(kinds.ADVERTISEMENT, advertisement(service=every))
    value = service("web", "198.51.100.1")
    change(value)
    cluster.put(kinds.SERVICE, value)
    assert only(cluster, "default/web", type_) == (reason, ADVERT)


def test_a_service_without_endpoints_is_explained() -> None:
    cluster = usual(no_service_endpoints_routable=False)
    cluster.put(kinds.SERVICE, service("web", "198.51.100.1"))
    assert only(cluster, "198.51.100.1") == ("NoEndpoint", ADVERT)
    cluster.put(kinds.ENDPOINT_SLICE, endpoint_slice("e", "web", on="elsewhere"))
    (found,) = ask(cluster, "198.51.100.1")
    assert found.advertised


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"selector": {"matchLabels": {"app": "other"}}}, "NotSelected"),
        ({"service": {"addresses": ["ExternalIP"]}}, "AddressType"),
    ],
)
def test_addresses_that_a_rule_does_not_select_are_explained(
    entry: dict[str, Any], reason: str
) -> None:
    cluster = usual()
    cluster.put(kinds.ADVERTISEMENT, advertisement(**entry))
    cluster.put(kinds.SERVICE, service("web", "198.51.100.1"))
    assert only(cluster, "198.51.100.1/32") == (reason, ADVERT)


def test_the_selector_that_misses_by_least_is_named_with_what_the_object_has() -> None:
    cluster = usual()
    value = advertisement(selector={"matchLabels": {"app": "other", "tier": "gold"}})
    value["spec"]["advertisements"].append(
        {
            "advertisementType": "Service",
            "service": {"addresses": ["LoadBalancerIP"]},
            "selector": {
                "matchExpressions": [{"key": "app", "operator": "In", "values": ["shop", "api"]}]
            },
        }
    )
    cluster.put(kinds.ADVERTISEMENT, value)
    cluster.put(kinds.SERVICE, service("web", "198.51.100.1", app="web"))
    (found,) = ask(cluster, "198.51.100.1/32")
    assert found.message == (f"{ADVERT} selects app in (shop,api); Service/default/web has app=web")


def test_the_rule_that_fails_at_the_latest_condition_is_named() -> None:
    cluster = usual()
    cluster.put(kinds.SERVICE, service("web", "198.51.100.1"))
    value = advertisement()
    del value["spec"]["advertisements"][1]["selector"]
    cluster.put(kinds.ADVERTISEMENT, value)
    assert only(cluster, "web", "LoadBalancerIP") == ("NoSelector", ADVERT)
    closer = advertisement("closer", service={"addresses": ["ClusterIP"]})
    cluster.put(kinds.ADVERTISEMENT, closer)
    assert only(cluster, "web", "LoadBalancerIP") == (
        "AddressType",
        "CiliumBGPAdvertisement/closer",
    )


def test_an_object_without_a_rule_of_its_type_is_explained() -> None:
    cluster = usual()
    value = advertisement()
    del value["spec"]["advertisements"][0]
    cluster.put(kinds.ADVERTISEMENT, value)
    assert only(cluster, "10.244.0.0/24") == ("NoRule", None)


PC = "CiliumBGPPeerConfig/pc"


@pytest.mark.parametrize(
    ("config", "reason", "rule"),
    [
        (peer_config(families=[{"afi": "ipv4", "safi": "unicast"}]), "NoAdvertisements", PC),
        (peer_config(families=[]), "NoAdvertisements", PC),
        (peer_config(advertise="other"), "NoAdvertisement", PC),
        (
            peer_config(families=[{"afi": "ipv6", "safi": "unicast", "advertisements": {}}]),
            "Family",
            "CiliumBGPNodeConfig/test-node",
        ),
    ],
)
def test_routes_withheld_from_a_peer_are_explained(
    config: dict[str, Any], reason: str, rule: str
) -> None:
    cluster = usual()
    cluster.put(kinds.PEER_CONFIG, config)
    assert only(cluster, "10.244.0.0/24") == (reason, rule)


def test_a_peer_without_a_peer_config_is_explained() -> None:
    cluster = usual()
    cluster.put(kinds.CLUSTER_CONFIG, cluster_config(peers=[peer(peerConfigRef=None)]))
    assert only(cluster, "10.244.0.0/24") == ("NoPeerConfig", "CiliumBGPNodeConfig/test-node")


def test_an_invalid_peer_and_an_invalid_instance_are_explained() -> None:
    cluster = usual()
    value = cluster_config(peers=[peer("bad", peerAddress=None), peer()])
    value["spec"]["bgpInstances"].append({"name": "no-asn", "peers": [peer("q")]})
    cluster.put(kinds.CLUSTER_CONFIG, value)
    found = [(v.instance, v.peer, v.reason) for v in ask(cluster, "10.244.0.0/24")]
    assert found == [
        ("i", "bad", "LeftOut"),
        ("no-asn", None, "LeftOut"),
        ("i", "p", "Advertised"),
    ]
    assert [v.peer for v in ask(cluster, "10.244.0.0/24", peer="p")] == ["p"]


def test_a_node_without_a_configuration_is_explained() -> None:
    cluster = usual()
    cluster.put(kinds.NODE, node(bgp="no"))
    cluster.put(kinds.CLUSTER_CONFIG, cluster_config(nodeSelector={"matchLabels": {"bgp": "yes"}}))
    (found,) = ask(cluster, "10.244.0.0/24")
    assert (found.reason, found.peer) == ("NoPeers", None)


def _network(**device: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "metadata": {"name": NODE},
        "spec": {"devices": [{"name": "lo1", "addresses": ["192.0.2.77", "127.0.0.2"], **device}]},
    }


def _with_interface(name: str = "lo1", **device: Any) -> Cluster:  # noqa: ANN401
    cluster = usual()
    value = advertisement()
    value["spec"]["advertisements"] = [
        {"advertisementType": "Interface", "interface": {"name": name}}
    ]
    cluster.put(kinds.ADVERTISEMENT, value)
    cluster.put(kinds.NODE_NETWORK, _network(**device))
    return cluster


def test_interfaces_are_explained() -> None:
    assert ask(_with_interface(), "192.0.2.77")[0].advertised
    assert only(_with_interface(), "127.0.0.2") == ("NotAdvertisable", ADVERT)
    assert only(_with_interface(adminUp=False), "192.0.2.77") == ("InterfaceDown", ADVERT)
    assert only(_with_interface(operState="down"), "192.0.2.77") == ("InterfaceDown", ADVERT)
    assert only(_with_interface("eth9"), "192.0.2.77") == ("NotSelected", ADVERT)
    assert only(_with_interface("eth9"), "Interface/eth9") == ("NoInterface", ADVERT)


def test_pools() -> None:
    cluster = usual()
    value = advertisement()
    selector = {"matchLabels": {"metal": "gold"}}
    value["spec"]["advertisements"] = [
        {"advertisementType": "CiliumPodIPPool", "selector": selector}
    ]
    cluster.put(kinds.ADVERTISEMENT, value)
    allocated = [{"pool": "gold", "cidrs": ["10.50.3.0/24"]}]
    cluster.put(
        kinds.CILIUM_NODE,
        {
            "metadata": {"name": NODE, "labels": {"bgp": "yes"}},
            "spec": {"ipam": {"pools": {"allocated": allocated}}},
        },
    )
    assert only(cluster, "10.50.3.0/24") == ("NoPool", ADVERT)
    cluster.put(kinds.POD_IP_POOL, {"metadata": {"name": "gold"}, "spec": {}})
    assert only(cluster, "CiliumPodIPPool/gold") == ("NotSelected", ADVERT)
    labelled = {"metadata": {"name": "gold", "labels": {"metal": "gold"}}, "spec": {}}
    cluster.put(kinds.POD_IP_POOL, labelled)
    assert ask(cluster, "10.50.3.0/24")[0].advertised


def test_an_aggregate_is_explained_by_its_parts_and_an_address_by_what_covers_it() -> None:
    cluster = usual()
    entry = {"addresses": ["LoadBalancerIP"], "aggregationLengthIPv4": 24}
    cluster.put(kinds.ADVERTISEMENT, advertisement(service=entry))
    for number in (1, 2):
        cluster.put(kinds.SERVICE, service(f"s{number}", f"198.51.100.{number}"))
    found = ask(cluster, "198.51.100.0/24")
    assert [v.object.name for v in found if v.object is not None] == ["s1", "s2"]
    assert {v.reason for v in found} == {"Advertised"}
    (covered,) = ask(cluster, "10.244.0.7")
    assert str(covered.object) == "Node/test-node"


def test_a_prefix_of_an_object_costs_no_explanation_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An aggregate that is the prefix of another object is explained by both, and by its parts."""
    cluster = usual()
    aggregated = {"addresses": ["LoadBalancerIP"], "aggregationLengthIPv4": 24}
    cluster.put(kinds.ADVERTISEMENT, advertisement(service=aggregated))
    cluster.put(kinds.SERVICE, service("within", "10.244.0.7"))
    for number in range(20):
        cluster.put(kinds.SERVICE, service(f"s{number}", f"198.51.100.{number}"))
    targets = ("10.244.0.0/24", "198.51.100.7", "198.51.100.0/24", "10.244.0.8", "10.244.0.0/16")

    def answers() -> list[list[RouteExplanation] | str]:
        results: list[list[RouteExplanation] | str] = []
        for target in targets:
            try:
                results.append(ask(cluster, target))
            except NothingFoundError as error:
                results.append(str(error))
        return results

    explained: list[int] = []
    explain = Explainer._explained

    def counting(it: Explainer, of: Any, at: Any, some: Any) -> list[RouteExplanation]:  # noqa: ANN401
        explained.append(len(some))
        return explain(it, of, at, some)

    monkeypatch.setattr(Explainer, "_explained", counting)
    of_pods = [(str(v.object), v.type) for v in ask(cluster, targets[0])]
    assert of_pods == [(f"Node/{NODE}", "PodCIDR"), ("Service/default/within", "LoadBalancerIP")]
    explained.clear()
    assert len(ask(cluster, "198.51.100.7")) == sum(explained) == 1
    selected = answers()

    def all_of_them(
        candidates: Any,  # noqa: ANN401
        *_: object,
    ) -> Generator[tuple[()], None, Any]:
        yield ()
        return candidates

    monkeypatch.setattr(explain_module, "_of_prefix", all_of_them)
    assert answers() == selected


@pytest.mark.parametrize("target", ["203.0.113.9", "default/none", "Node/other", "Interface/x"])
def test_an_unknown_target_is_an_error(target: str) -> None:
    with pytest.raises(NothingFoundError, match=target):
        ask(usual(), target)


@pytest.mark.parametrize("text", ["a/b/c/d", "x//y", "192.0.2.1/99", "Service/"])
def test_an_invalid_target_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=text):
        parse_target(text, explained_kinds([CiliumDialect]))
