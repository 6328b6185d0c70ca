"""Every error of OVN-Kubernetes' controller: its class, and what the message names."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from reconcilers.model import ObjectRef
from reconcilers.ovnk import attached_networks, translation
from resources.ovnk.cni import CniConfig, parse_cni
from tests.reconcilers.ovnk.operator_cluster import (
    CLUSTER_NETWORKS,
    DEFAULT_NETWORK,
    Cluster,
    advertisements,
    attachment,
    node,
    source,
)

DEEP = '{"a": ' * 100_000
"""JSON that is nested more deeply than a parser follows."""
SUBNETS = {"default": ["10.180.4.0/23"], "cluster_udn_red": ["10.61.3.0/24"]}
W1 = node("w1", SUBNETS)
RED = attachment("red", "10.61.0.0/16/24")
OF_RED: dict[str, Any] = {"networkSelectors": [CLUSTER_NETWORKS]}
EIP: dict[str, Any] = {"advertisements": ["EgressIP"]}
VTEP = {
    "apiVersion": "k8s.ovn.org/v1",
    "kind": "VTEP",
    "metadata": {"name": "fabric"},
    "spec": {"cidrs": ["100.72.0.0/24"], "mode": "Unmanaged"},
}
EVPN = {"transport": "evpn", "evpn": {"vtep": "fabric", "ipVRF": {"vni": 5200}}}
OF_VRF = source(
    "spine", {"asn": 64710, "vrf": "red", "neighbors": [{"address": "172.31.1.1", "asn": 1}]}
)
PRIMARY_NETWORKS: dict[str, Any] = {
    "networkSelectionType": "PrimaryUserDefinedNetworks",
    "primaryUserDefinedNetworkSelector": {"namespaceSelector": {}, "networkSelector": {}},
}
ERROR, PENDING = "ConfigurationError", "ConfigurationPending"


def router(**neighbor: Any) -> dict[str, Any]:  # noqa: ANN401
    return source("spine", {"asn": 64710, "neighbors": [{"asn": 64701, **neighbor}]})


def evpn(*objects: dict[str, Any], **options: Any) -> Cluster:  # noqa: ANN401
    row = advertisements(targetVRF="auto", **OF_RED)
    network = attachment("red", "10.61.0.0/16/24", config=EVPN)
    found = {one["kind"]: one for one in (W1, source(), network, row, VTEP, *objects)}
    return Cluster(*found.values(), **{"evpn": True, **options})


def annotated(name: str, text: str, **labels: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(W1))
    found["metadata"]["annotations"][f"k8s.ovn.org/{name}"] = text
    found["metadata"]["labels"].update({f"k8s.ovn.org/{key}": one for key, one in labels.items()})
    return found


def dpu(name: str, text: str) -> Cluster:
    w1 = annotated(name, text, **{"dpu-host": ""})
    return Cluster(w1, source(), advertisements(), gateway_mode="shared")


def gateway(*addresses: str) -> Cluster:
    """Return a cluster with a node whose DPU has these addresses."""
    w1 = annotated("node-chassis-id", "c", **{"dpu-host": ""})
    text = json.dumps({"default": {"mode": "shared", "ip-addresses": addresses}})
    w1["metadata"]["annotations"]["k8s.ovn.org/l3-gateway-config"] = text
    return Cluster(w1, source(), advertisements(), gateway_mode="shared")


def uplink(name: str, state: dict[str, Any] | None) -> Cluster:
    """Return a cluster whose network has an Uplink, on a node with a DPU."""
    w1 = annotated("node-chassis-id", "c", **{"dpu-host": ""})
    gateway = {"default": {"mode": "shared", "ip-addresses": ["10.88.0.11/24"]}}
    w1["metadata"]["annotations"]["k8s.ovn.org/l3-gateway-config"] = json.dumps(gateway)
    network = {
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "ClusterUserDefinedNetwork",
        "metadata": {"name": "red"},
        "spec": {
            "namespaceSelector": {},
            "network": {
                "topology": "Layer3",
                "layer3": {"role": "Primary", "subnets": [{"cidr": "10.61.0.0/16"}]},
            },
            "uplinks": ["leaf"],
        },
    }
    row = advertisements(targetVRF="auto", **OF_RED)
    objects = [w1, OF_VRF, RED, network, row]
    if state is not None:
        spec = {"uplinkName": name, "nodeName": "w1"}
        objects.append(
            {
                "apiVersion": "k8s.ovn.org/v1alpha1",
                "kind": "UplinkState",
                "metadata": {"name": "leaf-w1"},
                "spec": spec,
                "status": state,
            }
        )
    return Cluster(*objects, gateway_mode="shared")


READY = [{"type": "HostDataReady", "status": "True"}]
CASES: list[tuple[str, Cluster, str, list[str]]] = [
    ("1", Cluster(W1, source(), advertisements(**EIP), egress_ip=False), ERROR, ["EgressIP"]),
    (
        "2",
        Cluster(W1, source(), advertisements(targetVRF="auto", **EIP)),
        ERROR,
        ["EgressIP", "auto"],
    ),
    ("3", Cluster(W1, source(), advertisements(**OF_RED)), PENDING, ["no networks selected"]),
    (
        "4",
        Cluster(W1, source(), RED, advertisements(networkSelectors=[PRIMARY_NETWORKS])),
        ERROR,
        ["PrimaryUserDefinedNetworks", "networkSelectionType"],
    ),
    (
        "4 unknown",
        Cluster(
            W1, source(), RED, advertisements(networkSelectors=[{"networkSelectionType": "All"}])
        ),
        ERROR,
        ["'All'", "networkSelectionType"],
    ),
    (
        "5",
        Cluster(
            W1,
            source(),
            attachment("red", "10.61.0.0/16/24", config={"role": "secondary"}),
            advertisements(**OF_RED),
        ),
        ERROR,
        ["red"],
    ),
    (
        "6",
        Cluster(
            W1,
            source(),
            attachment("red", "", config={"topology": "localnet"}),
            advertisements(**OF_RED),
        ),
        ERROR,
        ["red", "localnet"],
    ),
    (
        "7",
        Cluster(
            W1,
            source(),
            attachment("lab", "10.70.0.0/20", config={"topology": "layer2"}),
            advertisements(**OF_RED, **EIP),
        ),
        ERROR,
        ["currently not supported for Layer2 networks", "lab"],
    ),
    (
        "8",
        Cluster(
            W1,
            source(),
            attachment("mp7-udn-vrf", "10.61.0.0/16/24"),
            attachment("a-name-of-sixteen", "10.62.0.0/16/24", number="7"),
            advertisements(**OF_RED),
        ),
        ERROR,
        ["mp7-udn-vrf", "a-name-of-sixteen"],
    ),
    ("9", evpn(advertisements(targetVRF="", **OF_RED)), ERROR, ["red", "auto"]),
    (
        "10",
        Cluster(W1, source(), advertisements(nodeSelector={"matchLabels": {"zone": "a"}})),
        ERROR,
        ["spec.nodeSelector", "has to be empty"],
    ),
    (
        "11",
        Cluster(W1, source(), advertisements(**EIP, nodeSelector={"matchLabels": {"zone": "a"}})),
        PENDING,
        ["no nodes selected"],
    ),
    ("12", Cluster(W1, advertisements()), PENDING, ["no FRRConfigurations selected"]),
    ("13", evpn(evpn=False), ERROR, ["EVPN", "red"]),
    ("14", evpn(gateway_mode="shared"), ERROR, ["EVPN", "local gateway mode"]),
    ("15", evpn(OF_VRF), ERROR, ["default VRF", "red"]),
    ("17", evpn({**VTEP, "metadata": {"name": "other"}}), ERROR, ["VTEP", "fabric"]),
    ("18", evpn(annotated("vteps", "not-json")), ERROR, ["w1", "k8s.ovn.org/vteps"]),
    (
        "19 absent",
        Cluster(node("w1", {}), source(), advertisements()),
        ERROR,
        ["w1", "k8s.ovn.org/node-subnets", "default"],
    ),
    (
        "19 of another type",
        Cluster(node("w1", '["10.0.0.0/8"]'), source(), advertisements()),
        ERROR,
        ["w1", "k8s.ovn.org/node-subnets"],
    ),
    (
        "19 no subnet",
        Cluster(node("w1", {"default": ["10.180.4.0/99"]}), source(), advertisements()),
        ERROR,
        ["w1", "10.180.4.0/99"],
    ),
    (
        "20",
        Cluster(
            W1,
            source(),
            attachment("lab", "", config={"topology": "layer2"}),
            advertisements(**OF_RED),
        ),
        ERROR,
        ["lab", "no subnets"],
    ),
    (
        "21",
        Cluster(W1, router(), advertisements()),
        ERROR,
        ["spine", "neither address nor interface"],
    ),
    (
        "22",
        Cluster(W1, router(address="10.88.0.1", dualStackAddressFamily=True), advertisements()),
        ERROR,
        ["spine", "dualStackAddressFamily"],
    ),
    ("23", Cluster(W1, OF_VRF, advertisements()), ERROR, ["spine", "w1", "has no VRF matching"]),
    (
        "23 the node itself",
        Cluster(W1, router(address="10.88.0.11"), advertisements()),
        ERROR,
        ["has no VRF matching"],
    ),
    (
        "24",
        Cluster(
            W1,
            source(),
            RED,
            advertisements(targetVRF="auto", networkSelectors=[DEFAULT_NETWORK, CLUSTER_NETWORKS]),
        ),
        ERROR,
        ["red", "w1"],
    ),
    (
        "25 no chassis",
        dpu("l3-gateway-config", "{}"),
        PENDING,
        ["w1", "node-chassis-id"],
    ),
    (
        "25 no gateway",
        dpu("node-chassis-id", "c"),
        PENDING,
        ["w1", "l3-gateway-config"],
    ),
    ("25 no uplink", uplink("leaf", None), PENDING, ["leaf", "w1", "is not ready"]),
    ("25 another uplink", uplink("spare", {"conditions": READY}), PENDING, ["leaf", "w1"]),
    (
        "25 an uplink that is not ready",
        uplink("leaf", {"conditions": [{"type": "HostDataReady", "status": "False"}]}),
        PENDING,
        ["leaf", "w1"],
    ),
    (
        "25 an uplink with a wrong address",
        uplink("leaf", {"ipAddresses": ["10.9.0.1/99"], "conditions": READY}),
        ERROR,
        ["leaf-w1", "10.9.0.1/99"],
    ),
    (
        "25 an uplink that is not resolved",
        uplink("leaf", {"conditions": [{"type": "Resolved", "status": "False"}, *READY]}),
        PENDING,
        ["leaf", "w1"],
    ),
    (
        "25 an uplink without an address",
        uplink("leaf", {"conditions": READY}),
        ERROR,
        ["leaf-w1", "has no address"],
    ),
    (
        "25 a gateway without an address",
        gateway(),
        ERROR,
        ["w1", "k8s.ovn.org/l3-gateway-config", "has no address"],
    ),
    (
        "25 an uplink with a zone",
        uplink("leaf", {"ipAddresses": ["fe80::1%eth0/64"], "conditions": READY}),
        ERROR,
        ["leaf-w1", "fe80::1%eth0/64"],
    ),
    (
        "a name that is no label",
        Cluster(W1, source(), advertisements("n" * 64)),
        ERROR,
        ["64 characters"],
    ),
    (
        "wrong subnets of a network",
        Cluster(W1, source(), attachment("red", "10.61.0.0/33/24"), advertisements(**OF_RED)),
        ERROR,
        ["red", "10.61.0.0/33"],
    ),
]


@pytest.mark.parametrize(
    ("cluster", "reason", "texts"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_an_error_names_what_is_wrong(cluster: Cluster, reason: str, texts: list[str]) -> None:
    intent = cluster.operate()
    (found,) = (one for one in intent.conditions if one.object.kind == "RouteAdvertisements")
    assert (found.status, found.reason) == (False, reason)
    assert [text for text in texts if text not in found.message] == []
    assert [one for one in intent.generated if one.object.kind == "FRRConfiguration"] == []


def test_every_error_of_the_controller_has_a_case() -> None:
    """All numbers of OVN-Kubernetes' table; 16 is a part of 15."""
    numbers = {int(name.split()[0]) for name, *_ in CASES if name[0].isdigit()}
    assert numbers == set(range(1, 26)) - {16}


def _documented() -> list[re.Pattern[str]]:
    """The messages of the page's table: a word of one capital letter stands for anything."""
    page = Path(__file__).parents[3] / "docs" / "ovn-kubernetes.md"
    section = page.read_text().partition("## Errors")[2].partition("\n## ")[0]
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    messages = [message for row in rows for message in re.findall("`([^`]+)`", row)]
    return [
        re.compile(".+?".join(map(re.escape, re.split(r"\b[A-Z]\b", message))))
        for message in messages
    ]


@pytest.mark.parametrize("cluster", [c[1] for c in CASES], ids=[c[0] for c in CASES])
def test_the_page_has_the_cause_of_an_error(cluster: Cluster) -> None:
    (message,) = (
        one.message
        for one in cluster.operate().conditions
        if one.object.kind == "RouteAdvertisements"
    )
    assert [text for text in _documented() if text.search(message)], message


def test_the_next_hop_of_a_network_with_an_uplink_is_its_address_there() -> None:
    cluster = uplink("leaf", {"ipAddresses": ["10.9.0.1/24", "10.9.0.2/24"], "conditions": READY})
    cluster.write()
    (spec,) = cluster.generated().values()
    (neighbor,) = spec["bgp"]["routers"][0]["neighbors"]
    assert neighbor["toAdvertise"]["nextHop"]["ipv4"] == "10.9.0.2"


def test_a_defect_is_visible_and_stops_no_other_object(monkeypatch: pytest.MonkeyPatch) -> None:
    def generate(what: Any, *arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401
        if what.name == "broken":
            raise RuntimeError("a defect")
        return whole(what, *arguments, **keywords)

    whole = translation.generate
    monkeypatch.setattr(translation, "generate", generate)
    cluster = Cluster(W1, source(), advertisements("broken"), advertisements("north"))
    assert cluster.condition("broken").reason == "InternalError"
    assert cluster.condition("north").reason == "Accepted"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"plugins": 1}', '"' + "x" * 1_000_000, "null", "\x00", '{"ipam": ' + DEEP],
    ids=["empty", "cut", "list", "of-another-type", "long", "null", "nul", "deep"],
)
def test_a_broken_attachment_is_a_problem_and_no_network(text: str) -> None:
    broken = attachment("blue", "10.62.0.0/16/24", text=text)
    cluster = Cluster(W1, source(), RED, broken, advertisements(**OF_RED))
    intent = cluster.operate()
    assert all(one.field.startswith("spec.config") for one in intent.problems)
    assert all(len(one.message) < 2000 for one in intent.problems)
    assert cluster.condition().reason == "Accepted"
    assert {o.object.name for o in intent.annotations} == {"red"}


@pytest.mark.parametrize(
    "number",
    ["9" * 5000, "100000", "-1", "x", "", "\u0667", "7.0", "1e999"],
    ids=lambda text: ascii(text[:16]),
)
@pytest.mark.parametrize("name", ["a-name-of-sixteen", "default"])
def test_a_network_id_that_is_no_number_is_a_problem_of_the_attachment(
    name: str, number: str
) -> None:
    broken = attachment(name, "10.62.0.0/16/24", number=number)
    cluster = Cluster(W1, source(), RED, broken, advertisements(**OF_RED))
    intent = cluster.operate()
    (problem,) = intent.problems
    assert problem.objects == (ObjectRef("NetworkAttachmentDefinition", f"{name}-ns", name),)
    assert problem.field == "metadata.annotations[k8s.ovn.org/network-id]"
    assert "is not a number from 0 to 99999" in problem.message
    assert len(problem.message) < 200
    assert cluster.condition().reason == "Accepted"
    assert {o.object.name for o in intent.annotations} == {"red"}


LINES = "65000:1\n!\nrouter bgp 64710\n no neighbor 10.88.0.1"
"""A text of FRR with more lines than one."""


@pytest.mark.parametrize("name", ["a\nno router", "a b", "a/b", "..", "", "a%b"])
def test_a_network_whose_name_is_that_of_no_vrf_is_a_problem_of_the_attachment(name: str) -> None:
    broken = attachment("blue", "10.62.0.0/16/24")
    broken["metadata"]["ownerReferences"][0]["name"] = name
    cluster = Cluster(W1, source(), RED, broken, advertisements(**OF_RED))
    (problem,) = cluster.operate().problems
    assert problem.objects == (ObjectRef("NetworkAttachmentDefinition", "blue-ns", "blue"),)
    assert problem.field == "metadata.ownerReferences"
    assert cluster.condition().reason == "Accepted"


@pytest.mark.parametrize("target", [LINES, "65000:1\n", "65000", "x", "1" * 5000 + ":1"])
@pytest.mark.parametrize("vrf", ["macVRF", "ipVRF"])
def test_a_text_that_is_no_route_target_is_a_problem_of_the_attachment(
    vrf: str, target: str
) -> None:
    config = {**EVPN, "evpn": {"vtep": "fabric", vrf: {"vni": 5200, "routeTarget": target}}}
    broken = attachment("blue", "10.62.0.0/16/24", config=config)
    cluster = evpn(attachment("red", "10.61.0.0/16/24", config=EVPN))
    cluster.put(annotated("vteps", '{"fabric": {"ips": ["100.72.0.11"]}}'), broken)
    (problem,) = cluster.operate().problems
    assert (problem.objects[0].name, problem.field) == ("blue", "spec.config")
    assert "is not a route target" in problem.message
    assert len(problem.message) < 300
    assert cluster.condition().reason == "Accepted"


def test_a_network_that_has_no_number_yet_is_no_problem() -> None:
    waiting = attachment("a-name-of-sixteen", "10.62.0.0/16/24")
    del waiting["metadata"]["annotations"]["k8s.ovn.org/network-id"]
    intent = Cluster(W1, source(), waiting, advertisements(**OF_RED)).operate()
    assert intent.problems == ()
    assert [one.reason for one in intent.conditions] == ["ConfigurationPending"]


def test_a_defect_with_an_attachment_keeps_its_routes_and_stops_no_other_object(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def parse(text: str) -> CniConfig | str:
        if "10.62" in text:
            raise RuntimeError("a defect")
        return parse_cni(text)

    blue = attachment("blue", "10.62.0.0/16/24", labels={"export": "blue"})
    of_blue = json.loads(json.dumps(CLUSTER_NETWORKS).replace("yes", "blue"))
    w1 = node("w1", {**SUBNETS, "cluster_udn_blue": ["10.62.3.0/24"]})
    rows = advertisements(**OF_RED), advertisements("of-blue", networkSelectors=[of_blue])
    cluster = Cluster(w1, source(), RED, blue, *rows)
    cluster.write()
    before = cluster.generated()
    monkeypatch.setattr(attached_networks, "parse_cni", parse)
    intent = cluster.write()
    (problem,) = intent.problems
    assert (problem.objects[0].name, "a defect" in problem.message) == ("blue", True)
    assert cluster.condition("of-blue").reason == "ConfigurationError"
    assert cluster.condition("north").reason == "Accepted"
    assert cluster.generated() == before
    assert {name.split("/")[0] for name in before} == {"north", "of-blue"}


def test_400_subnets_and_1000_networks() -> None:
    many = ",".join(f"10.{i // 200}.{i % 200}.0/24/28" for i in range(400))
    networks = [attachment(f"n{i}", f"100.{64 + i // 250}.{i % 250}.0/24/28") for i in range(1000)]
    subnets = {f"cluster_udn_n{i}": f"100.{64 + i // 250}.{i % 250}.0/28" for i in range(1000)}
    w1 = node("w1", {**subnets, "cluster_udn_wide": ["10.0.0.0/28"]})
    cluster = Cluster(w1, source(), attachment("wide", many), *networks, advertisements(**OF_RED))
    assert cluster.condition().reason == "Accepted"
    cluster.put(attachment("again", "10.1.199.0/24/28"))
    found = cluster.condition()
    assert "overlapping" in found.message
    assert "wide" in found.message
    assert "again" in found.message


def test_an_invalid_selector_is_an_internal_error_of_what_selects_with_it() -> None:
    wrong = {"matchExpressions": [{"key": "zone", "operator": "In"}]}
    broken = source("broken", labels={"fabric": "other"})
    broken["spec"]["nodeSelector"] = wrong
    of_broken = {"matchLabels": {"fabric": "other"}}
    cluster = Cluster(
        W1,
        source(),
        broken,
        advertisements("a", frrConfigurationSelector=of_broken),
        advertisements("b", frrConfigurationSelector=wrong),
        advertisements("north"),
    )
    assert cluster.condition("a").reason == "InternalError"
    assert "broken" in cluster.condition("a").message
    assert cluster.condition("b").reason == "InternalError"
    assert cluster.condition("north").reason == "Accepted"
