"""Annotations that are no JSON, or JSON of another form: an error that names the node.

Each annotation that is read has a cluster in which it is, with the network and options that need it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import pytest

from resources.ovnk import node_annotations
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
from tests.reconcilers.ovnk.test_errors import DEEP, EVPN, VTEP
from tests.reconcilers.ovnk.test_scenarios import namespace, pod

PREFIX: Final = "k8s.ovn.org/"
TUNNEL_IDS: Final = "udn-layer2-node-gateway-router-lrp-tunnel-ids"
KEY: Final = "k8s.ovn.org/route-advertisements"
SUBNETS: Final = {"default": ["10.180.4.0/23"], "cluster_udn_red": ["10.61.3.0/24"]}
MANY: Final = "9" * 5000
ZONE: Final = "fe80::1%eth0"
OF_NETWORKS: Final[Json] = {"networkSelectors": [CLUSTER_NETWORKS]}
OF_W1: Final = advertisements("w1-only", advertisements=["EgressIP"],
    nodeSelector={"matchLabels": {"kubernetes.io/hostname": "w1"}})  # fmt: skip
"""RouteAdvertisements that do not select the node with the wrong annotation."""
WithText: TypeAlias = Callable[[str], Cluster]


def wrong(name: str, text: str, *, dpu: bool = False) -> Json:
    """Return a second node with an annotation."""
    found = node("w9", SUBNETS, "10.88.0.19/24")
    found["metadata"]["annotations"][f"{PREFIX}{name}"] = text
    if dpu:
        found["metadata"]["annotations"][f"{PREFIX}node-chassis-id"] = "c"
        found["metadata"]["labels"][f"{PREFIX}dpu-host"] = ""
    return found


def cluster(broken: Json, *objects: Json, **options: Any) -> Cluster:  # noqa: ANN401
    return Cluster(node("w1", SUBNETS), broken, source(), OF_W1, *objects, **options)


def of_default_network(name: str) -> WithText:
    return lambda text: cluster(wrong(name, text), advertisements())


def of_evpn(text: str) -> Cluster:
    network = attachment("red", "10.61.0.0/16/24", config=EVPN)
    row = advertisements(targetVRF="auto", **OF_NETWORKS)
    return cluster(wrong("vteps", text), network, row, VTEP, evpn=True)


def of_layer2(text: str) -> Cluster:
    network = attachment("lab", "10.70.0.0/20", config={"topology": "layer2"})
    objects = (network, namespace("lab-ns"), pod("lab-ns", "w9"))
    broken = wrong(TUNNEL_IDS, text)
    return cluster(broken, *objects, advertisements(**OF_NETWORKS), dynamic_udn=True)


def of_dpu(text: str) -> Cluster:
    broken = wrong("l3-gateway-config", text, dpu=True)
    return cluster(broken, advertisements(), gateway_mode="shared")


READ: Final[dict[str, WithText]] = {
    "node-subnets": of_default_network("node-subnets"),
    "node-primary-ifaddr": of_default_network("node-primary-ifaddr"),
    "vteps": of_evpn,
    TUNNEL_IDS: of_layer2,
    "l3-gateway-config": of_dpu,
}
"""By annotation of JSON text: a cluster in which it is read."""
NO_OBJECT: Final = {
    "empty": "",
    "cut": "{",
    "list": "[]",
    "number": "7",
    "text": '"x"',
    "null": "null",
    "nul": "\x00",
    "nan": '{"default": NaN}',
    "huge": '{"default": 1e999}',
    "many": f'{{"default": {MANY}}}',
    "surrogate": '{"default": "\\ud800"}',
    "deep": '{"default": ' + DEEP,
    "1 MiB": "x" * 2**20,
    "1 MiB of JSON": json.dumps("x" * 2**20),
}
OF_ANOTHER_FORM: Final[dict[str, tuple[Json, ...]]] = {
    "node-subnets": (
        {"default": 7},
        {"default": [7]},
        {"default": {}},
        {"default": "x" * 2**20},
        {"default": "10.0.0.0"},
        {"default": "10.0.0.0/33"},
        {"default": f"10.0.0.0/{MANY}"},
        {"default": f"{ZONE}/64"},
        {"default": "fe80::%eth0/64"},
        {"default": "::ffff:10.0.0.0/120"},
        {"other": f"{ZONE}/64"},
    ),
    "node-primary-ifaddr": (
        {"ipv4": 7},
        {"ipv4": ["10.88.0.19/24"]},
        {"ipv4": "10.88.0.19"},
        {"ipv4": f"10.88.0.19/{MANY}"},
        {"ipv4": "fd00::1/64"},
        {"ipv6": "10.88.0.19/24"},
        {"ipv6": f"{ZONE}/64"},
    ),
    "vteps": (
        {"fabric": 7},
        {"fabric": "100.72.0.9"},
        {"fabric": {"ips": 7}},
        {"fabric": {"ips": [7]}},
        {"fabric": {"ips": ["x" * 2**20]}},
        {"fabric": {"ips": [ZONE]}},
        {"fabric": {"ips": ["::ffff:100.72.0.9"]}},
        {"fabric": {"ips": ["100.72.0.9/24"]}},
    ),
    TUNNEL_IDS: (),
    "l3-gateway-config": (
        {},
        {"default": 7},
        {"default": {"ip-addresses": 7}},
        {"default": {"ip-addresses": [7]}},
        {"default": {"ip-addresses": ["10.88.0.19"]}},
        {"default": {"ip-addresses": [f"{ZONE}/64"]}},
        {"default": {"ip-address": f"{ZONE}/64"}},
    ),
}


def check_error(of: Cluster, annotation: str) -> None:
    found = of.condition("north")
    assert found.reason == "ConfigurationError"
    assert "w9" in found.message
    assert f"{PREFIX}{annotation}" in found.message
    assert len(found.message) < 500
    assert of.condition("w1-only").reason == "Accepted"


def test_each_annotation_of_a_node_that_is_read_has_a_cluster() -> None:
    names = (getattr(node_annotations, name) for name in vars(node_annotations) if name.isupper())
    read = {name for name in names if isinstance(name, str) and name.startswith(PREFIX)}
    # The chassis is any text.
    assert read == {*(f"{PREFIX}{name}" for name in READ), PREFIX, node_annotations.CHASSIS}


@pytest.mark.parametrize("text", list(NO_OBJECT.values()), ids=list(NO_OBJECT))
@pytest.mark.parametrize("annotation", list(READ))
def test_a_text_that_is_no_json_object_is_an_error_of_the_node(annotation: str, text: str) -> None:
    check_error(READ[annotation](text), annotation)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [(name, value) for name, values in OF_ANOTHER_FORM.items() for value in values],
    ids=lambda value: json.dumps(value)[:40],
)
def test_json_of_another_form_is_an_error_of_the_node(annotation: str, value: Any) -> None:  # noqa: ANN401
    check_error(READ[annotation](json.dumps(value)), annotation)


@pytest.mark.parametrize("annotation", list(READ))
def test_a_wrong_annotation_keeps_what_is_generated(annotation: str) -> None:
    of = READ[annotation]("[]")
    right = node("w9", SUBNETS, "10.88.0.19/24")
    annotations = right["metadata"]["annotations"]
    annotations[f"{PREFIX}{TUNNEL_IDS}"] = '{"cluster_udn_lab": "17"}'
    of.put(right)
    of.write()
    before = of.generated()
    assert any(name.endswith("/w9") for name in before)
    of.put(wrong(annotation, "{", dpu=annotation == "l3-gateway-config"))
    intent = of.write()
    assert (of.generated(), intent.deletions) == (before, ())


@pytest.mark.parametrize("text", list(NO_OBJECT.values()), ids=list(NO_OBJECT))
def test_a_wrong_annotation_of_an_attachment_is_written_again(text: str) -> None:
    red = attachment("red", "10.61.0.0/16/24")
    red["metadata"]["annotations"][KEY] = text
    both = advertisements(networkSelectors=[DEFAULT_NETWORK, CLUSTER_NETWORKS])
    intent = Cluster(node("w1", SUBNETS), source(), red, both).operate()
    (written,) = (one for one in intent.annotations if one.object.name == "red")
    assert dict(written.annotations) == {KEY: '["north"]'}


@pytest.mark.parametrize("text", list(NO_OBJECT.values()), ids=list(NO_OBJECT))
def test_any_name_of_a_network_is_a_name(text: str) -> None:
    red = attachment("red", "10.61.0.0/16/24")
    red["metadata"]["annotations"][f"{PREFIX}network-name"] = text
    of = Cluster(node("w1", SUBNETS), source(), red, advertisements(**OF_NETWORKS))
    found = of.condition()
    # OVN-Kubernetes' own name is in the configuration, too; an empty annotation is none.
    assert found.reason == ("ConfigurationError" if text else "Accepted")
    assert len(found.message) < 500


@pytest.mark.parametrize(
    "text", [*NO_OBJECT.values(), "north//", "/"], ids=[*NO_OBJECT, "parts", "slash"]
)
def test_a_generated_object_with_a_wrong_annotation_is_deleted(text: str) -> None:
    of = Cluster(node("w1", SUBNETS), source(), advertisements())
    of.write()
    left = source("ovnk-generated-left", labels={KEY: "north"})
    left["metadata"]["annotations"] = {KEY: text}
    of.put(left)
    of.write()
    assert "north/spine/w1" in of.generated()
    # As in OVN-Kubernetes, one without an annotation is not its own.
    assert (text in of.generated()) is (not text)
    assert of.condition().reason == "Accepted"
