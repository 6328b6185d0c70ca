"""``waggle explain`` on a node that no selector selects: the nearest object and its label."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from waggle.__main__ import main

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1", "labels": {"rack": "r1", "role": "worker"}},
    "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.11"}]},
}


def selecting(**labels: str) -> dict[str, Any]:
    return {"matchLabels": labels}


def item(api: str, kind: str, name: str, spec: dict[str, Any], space: str = "") -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": space} if space else {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def cluster_config(name: str, **labels: str) -> dict[str, Any]:
    peers = [{"name": "tor", "peerASN": 65000, "peerAddress": "192.0.2.1"}]
    instance = {"name": "main", "localASN": 65001, "peers": peers}
    spec = {"nodeSelector": selecting(**labels), "bgpInstances": [instance]}
    return item("cilium.io/v2", "CiliumBGPClusterConfig", name, spec)


def policy(name: str, **labels: str) -> dict[str, Any]:
    spec = {
        "nodeSelector": selecting(**labels),
        "localASN": 65001,
        "advertisements": {"service": {"ipTypes": ["ClusterIP"]}},
        "bgpPeers": [{"address": "192.0.2.1", "asn": 65000}],
    }
    return item("crd.antrea.io/v1alpha1", "BGPPolicy", name, spec)


def bgp_peer(name: str, *selectors: dict[str, Any]) -> dict[str, Any]:
    spec = {"myASN": 65001, "peerASN": 65000, "peerAddress": "192.0.2.1"}
    if selectors:
        spec["nodeSelectors"] = [*selectors]
    return item("metallb.io/v1beta2", "BGPPeer", name, spec, "metallb-system")


def frr_configuration(name: str, *prefixes: str, **labels: str) -> dict[str, Any]:
    neighbor = {"address": "192.0.2.1", "asn": 65000, "toAdvertise": {"allowed": {"mode": "all"}}}
    routers = [{"asn": 65001, "prefixes": [*prefixes], "neighbors": [neighbor]}]
    spec = {"nodeSelector": selecting(**labels), "bgp": {"routers": routers}}
    return item("frrk8s.metallb.io/v1beta1", "FRRConfiguration", name, spec, "frr-k8s-system")


def explain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *objects: dict[str, Any], target: str = ""
) -> list[dict[str, Any]]:
    path = tmp_path / "all.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, *objects]}))
    words = [target] if target else ["--all"]
    assert main(["explain", *words, "-f", str(path), "--node", "n1", "-o", "json"]) == 0
    items: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["items"]
    return items


@pytest.mark.parametrize(
    ("objects", "nearest"),
    [
        (
            [cluster_config("far", rack="r2", role="spine"), cluster_config("near", rack="r2")],
            "CiliumBGPClusterConfig/near",
        ),
        ([policy("far", rack="r2", role="x"), policy("near", rack="r2")], "BGPPolicy/near"),
        (
            [bgp_peer("near", selecting(rack="r2"), selecting(rack="r2", role="x"))],
            "BGPPeer/metallb-system/near",
        ),
        (
            [frr_configuration("near", "10.1.0.0/16", rack="r2")],
            "FRRConfiguration/frr-k8s-system/near",
        ),
    ],
)
def test_a_node_without_peers_has_the_nearest_object_and_its_label(
    objects: list[dict[str, Any]],
    nearest: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (found,) = explain(tmp_path, capsys, *objects)
    assert (found["reason"], found["rule"]["name"]) == ("NoPeers", "near")
    assert found["message"].startswith(
        f"node n1 has no peers: nearest to selecting it is nodeSelector rack=r2 of {nearest}; "
        "node n1 has rack=r1"
    )


def test_an_object_that_selects_the_node_is_no_miss(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = cluster_config("empty", rack="r1")
    empty["spec"]["bgpInstances"] = []
    (found, *_) = explain(tmp_path, capsys, empty)
    assert "what selects it lists none" in found["message"]


def test_an_advertisement_for_other_nodes_is_named_with_the_label(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = item(
        "metallb.io/v1beta1",
        "IPAddressPool",
        "front",
        {"addresses": ["198.51.100.0/24"]},
        "metallb-system",
    )
    other = {**pool, "metadata": {**pool["metadata"], "name": "back"}}
    other = {**other, "spec": {"addresses": ["203.0.113.0/24"]}}

    def advertisement(name: str, pool: str, **labels: str) -> dict[str, Any]:
        spec = {"ipAddressPools": [pool], "nodeSelectors": [selecting(**labels)]}
        return item("metallb.io/v1beta1", "BGPAdvertisement", name, spec, "metallb-system")

    web = item("v1", "Service", "web", {"type": "LoadBalancer", "clusterIP": "10.96.0.1"}, "shop")
    web["status"] = {"loadBalancer": {"ingress": [{"ip": "198.51.100.10"}]}}
    objects = [
        *(bgp_peer("tor"), pool, other, web),
        advertisement("of-other-pool", "back", rack="r9"),
        advertisement("far", "front", rack="r2", role="x"),
        advertisement("near", "front", rack="r2"),
    ]
    (found,) = explain(tmp_path, capsys, *objects, target="shop/web")
    assert (found["reason"], found["rule"]["name"]) == ("NotOwner", "near")
    assert found["message"] == (
        "no BGPAdvertisement for this node selects pool front; the nearest is nodeSelectors rack=r2 "
        "of BGPAdvertisement/metallb-system/near; node n1 has rack=r1"
    )


@pytest.mark.parametrize("target", ["FRRConfiguration/far", "10.2.3.4"])
def test_an_frrconfiguration_for_other_nodes_is_found_with_the_label(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = [
        frr_configuration("own", "10.1.0.0/16"),
        frr_configuration("far", "10.2.0.0/16", rack="r2"),
    ]
    (found,) = explain(tmp_path, capsys, *objects, target=target)
    assert (found["peer"], found["prefix"]) == ("192.0.2.1", "10.2.0.0/16")
    assert (found["reason"], found["rule"]["name"]) == ("NotSelected", "far")
    assert found["message"] == (
        "the object is for other nodes: nodeSelector rack=r2; node n1 has rack=r1"
    )
    # All that the node advertises has none of other nodes.
    assert [row["prefix"] for row in explain(tmp_path, capsys, *objects)] == ["10.1.0.0/16"]
