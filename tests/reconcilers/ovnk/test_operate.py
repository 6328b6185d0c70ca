"""The operator with an API server: what is written, what stays, and when another operator writes."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec.structs import replace

from reconcilers.ovnk import translation
from reconcilers.ovnk.options import OvnkOptions
from resources.option_declarations import InvalidOption
from tests.reconcilers.ovnk.operator_cluster import (
    CLUSTER_NETWORKS,
    DEFAULT_NETWORK,
    FRR,
    Cluster,
    advertisements,
    attachment,
    node,
    source,
)

KEY = "k8s.ovn.org/route-advertisements"
W1 = node("w1", {"default": ["10.180.4.0/23"], "cluster_udn_red": ["10.61.3.0/24"]})
W2 = node(
    "w2", {"default": ["10.180.6.0/23"], "cluster_udn_red": ["10.61.4.0/24"]}, "10.88.0.12/24"
)
RED = attachment("red", "10.61.0.0/16/24")


def test_only_what_differs_is_written() -> None:
    cluster = Cluster(W1, W2, source(), advertisements())
    first = cluster.write()
    assert {one.kind for one in first.outdated} == {
        "FRRConfiguration",
        "NetworkAttachmentDefinition",
    }
    assert len(cluster.generated()) == 2
    second = cluster.write()
    assert second.generated == ()
    cluster.put(node("w2", {"default": ["10.180.8.0/23"]}, "10.88.0.12/24"))
    third = cluster.write()
    (changed,) = (one for one in third.generated if one.object.kind == "FRRConfiguration")
    assert changed.content["metadata"]["annotations"] == {KEY: "north/spine/w2"}
    assert changed.content["spec"]["bgp"]["routers"][0]["prefixes"] == ["10.180.8.0/23"]


def test_the_last_good_state_stays_with_a_configuration_error_also_after_a_restart() -> None:
    cluster = Cluster(W1, source(), advertisements())
    cluster.write()
    cluster.put(node("w1", "not JSON"))
    for _ in range(2):
        intent = cluster.write()
        assert cluster.generated().keys() == {"north/spine/w1"}
        assert not intent.deletions
        cluster.restart()
    found = cluster.condition()
    assert (found.status, found.reason) == (False, "ConfigurationError")
    assert "w1" in found.message
    assert "k8s.ovn.org/node-subnets" in found.message
    assert found.summary == f"Not Accepted: {found.message}"


def test_invalid_route_advertisements_are_no_deleted_ones() -> None:
    cluster = Cluster(W1, source(), advertisements())
    cluster.write()
    cluster.put(advertisements(advertisements=["PodNetwork", "PodNetwork"]))
    cluster.restart()
    intent = cluster.write()
    assert cluster.generated().keys() == {"north/spine/w1"}
    (problem,) = intent.problems
    assert problem.field == "spec.advertisements"
    assert cluster.condition().reason == "ConfigurationError"


def test_what_is_pending_is_withdrawn() -> None:
    cluster = Cluster(W1, source(), advertisements())
    cluster.write()
    cluster.remove("FRRConfiguration", "spine", FRR)
    cluster.write()
    assert cluster.generated() == {}
    assert cluster.condition().message == "configuration pending: no FRRConfigurations selected"


def test_of_two_objects_with_one_key_that_with_the_name_of_the_key_is_kept() -> None:
    cluster = Cluster(W1, source(), advertisements())
    cluster.write()
    spare = source("another", labels={KEY: "north"})
    spare["metadata"]["annotations"] = {KEY: "north/spine/w1"}
    cluster.put(spare)
    intent = cluster.write()
    assert [one.object.name for one in intent.deletions] == ["another"]
    assert [one for one in intent.generated if one.object.kind == "FRRConfiguration"] == []


def test_of_two_objects_with_one_key_and_other_names_the_first_is_kept() -> None:
    spares = [source(name, labels={KEY: "north"}) for name in ("b", "a", "c")]
    for spare in spares:
        spare["metadata"]["annotations"] = {KEY: "north/spine/w1"}
    cluster = Cluster(W1, source(), advertisements(), *spares)
    intent = cluster.write()
    assert [one.object.name for one in intent.deletions] == ["b", "c"]
    (changed,) = (one for one in intent.generated if one.object.kind == "FRRConfiguration")
    assert changed.object.name == "a"


@pytest.mark.parametrize(
    ("labels", "annotations"),
    [
        ({KEY: "north"}, {KEY: "north/spine/w2"}),
        ({KEY: "north"}, {KEY: "north/spine/w9"}),
        ({KEY: "north"}, {KEY: "north"}),
        ({KEY: "north"}, {}),
        ({KEY: "south"}, {KEY: "north/spine/w1"}),
        ({KEY: "gone"}, {KEY: "north/spine/w1"}),
        ({}, {KEY: "north/spine/w1"}),
        ({}, {}),
    ],
)
def test_an_object_whose_label_or_annotation_was_edited_is_written_and_never_deleted(
    labels: dict[str, str], annotations: dict[str, str]
) -> None:
    cluster = Cluster(W1, W2, source(), advertisements(), advertisements("south"))
    first = cluster.write()
    whole = cluster.generated()
    (written,) = (
        one.content
        for one in first.generated
        if one.content["metadata"].get("annotations") == {KEY: "north/spine/w1"}
    )
    metadata = {**written["metadata"], "labels": labels, "annotations": annotations}
    cluster.put({**written, "metadata": metadata})
    intent = cluster.write()
    assert intent.deletions == ()
    assert cluster.generated() == whole
    assert cluster.write().generated == ()


def test_sources_of_one_name_in_two_namespaces_have_an_object_each() -> None:
    other = source()
    other["metadata"]["namespace"] = "other"
    cluster = Cluster(W1, source(), other, advertisements())
    found = [one.object for one in cluster.write().generated if one.object.kind != "Namespace"]
    assert {one.namespace for one in found if one.kind == "FRRConfiguration"} == {FRR, "other"}


def test_the_node_selector_has_the_label_of_the_node() -> None:
    labelled = node("w1", {"default": "10.180.4.0/23"})
    labelled["metadata"]["labels"]["kubernetes.io/hostname"] = "machine-1"
    cluster = Cluster(labelled, source(), advertisements())
    cluster.write()
    (spec,) = cluster.generated().values()
    assert spec["nodeSelector"]["matchLabels"] == {"kubernetes.io/hostname": "machine-1"}


def test_annotations_name_all_advertisers_and_are_taken_over() -> None:
    marked = attachment("red", "10.61.0.0/16/24")
    marked["metadata"]["annotations"][KEY] = '["gone","a"]'
    networks = {"networkSelectors": [CLUSTER_NETWORKS], "targetVRF": ""}
    cluster = Cluster(
        W1, source(), marked, advertisements("a", **networks), advertisements("b", **networks)
    )
    (found,) = cluster.operate().annotations
    assert (dict(found.annotations), found.take_over) == ({KEY: '["a","b"]'}, True)


def test_deleted_route_advertisements_leave_no_object_and_no_name() -> None:
    marked = attachment("red", "10.61.0.0/16/24")
    marked["metadata"]["annotations"][KEY] = '["north"]'
    unknown = source("ovnk-generated-of-a-former-source", labels={KEY: "north"})
    unknown["metadata"]["annotations"] = {KEY: "north/former/w9"}
    row = advertisements(networkSelectors=[CLUSTER_NETWORKS])
    cluster = Cluster(W1, source(), marked, unknown, row)
    cluster.write()
    assert cluster.operate().annotations == ()
    cluster.remove("RouteAdvertisements", "north")
    intent = cluster.write()
    assert cluster.generated() == {}
    (annotated,) = intent.annotations
    assert dict(annotated.annotations) == {KEY: "[]"}
    assert not [one for one in intent.conditions if one.object.kind == "RouteAdvertisements"]


def test_an_advertiser_in_error_stays_where_it_is() -> None:
    marked = attachment("red", "10.61.0.0/16/24")
    marked["metadata"]["annotations"][KEY] = '["a"]'
    row = advertisements("a", networkSelectors=[CLUSTER_NETWORKS], targetVRF="missing")
    assert Cluster(W1, source(), marked, row).operate().annotations == ()


def test_the_attachment_of_the_default_network_is_created_and_then_annotated() -> None:
    cluster = Cluster(W1, source(), advertisements())
    intent = cluster.write()
    (created,) = (o for o in intent.generated if o.object.kind == "NetworkAttachmentDefinition")
    assert (created.object.namespace, created.object.name) == ("ovn-kubernetes", "default")
    (annotated,) = cluster.write().annotations
    assert dict(annotated.annotations) == {KEY: '["north"]'}


def test_the_attachment_of_the_default_network_has_the_name_of_the_option() -> None:
    cluster = Cluster(W1, source(), advertisements(), cluster_default_nad="cni/pods")
    (created,) = (
        o.object
        for o in cluster.write().generated
        if o.object.kind == "NetworkAttachmentDefinition"
    )
    assert (created.namespace, created.name) == ("cni", "pods")
    (annotated,) = cluster.write().annotations
    assert (annotated.object.namespace, annotated.object.name) == ("cni", "pods")


@pytest.mark.parametrize("name", ["pods", "cni/", "/pods", "cni/pods/two"])
def test_the_name_of_the_default_attachment_has_a_namespace(name: str) -> None:
    with pytest.raises(InvalidOption, match=r"--ovnk-cluster-default-nad: .* NAMESPACE/NAME"):
        OvnkOptions(cluster_default_nad=name)


def written_at(time: str, name: str = "north") -> dict[str, Any]:
    row = advertisements(name)
    manager = "clustermanager-routeadvertisements-controller"
    row["metadata"]["managedFields"] = [
        {"manager": "kubectl", "time": "2026-11-23T11:00:00Z"},
        {"manager": manager, "time": time, "subresource": "status", "operation": "Apply"},
    ]
    return row


def test_a_second_writer_that_appears_stops_the_operator() -> None:
    cluster = Cluster(W1, source(), written_at("2026-11-23T10:00:00Z"))
    assert cluster.write().generated
    cluster.put(written_at("2026-11-23T12:00:00Z"), node("w1", {"default": ["10.180.8.0/23"]}))
    for _ in range(2):
        intent = cluster.write()
        assert (intent.generated, intent.deletions, intent.conditions) == ((), (), ())
        (problem,) = intent.problems
        assert "--ovnk=follow" in problem.message
    cluster.restart()
    assert cluster.write().generated


def test_new_route_advertisements_that_it_writes_show_the_second_writer() -> None:
    cluster = Cluster(W1, source(), advertisements())
    cluster.write()
    cluster.put(written_at("2026-11-23T12:00:00Z", "south"))
    assert cluster.write().problems


def test_a_second_writer_of_the_same_values_has_no_time() -> None:
    cluster = Cluster(W1, source(), advertisements())
    cluster.write()
    cluster.put(written_at(""))
    assert cluster.write().problems


def _edit(chance: random.Random, cluster: Cluster) -> None:
    number = chance.randrange(1, 5)
    subnets: dict[str, Any] = {"default": [f"10.180.{2 * chance.randrange(100)}.0/23"]}
    if chance.random() < 0.8:
        subnets["cluster_udn_red"] = [f"10.61.{chance.randrange(9)}.0/24"]
    targets = ("", "auto", "default", "red")
    router = {"asn": 64710, "vrf": "red", "neighbors": [{"address": "172.31.1.1", "asn": 64800}]}
    edits = (
        lambda: cluster.put(node(f"w{number}", subnets, f"10.88.0.{number}/24")),
        lambda: cluster.put(node(f"w{number}", "{", f"10.88.0.{number}/24")),
        lambda: cluster.remove("Node", f"w{number}"),
        lambda: cluster.put(source(f"s{number % 2}")),
        lambda: cluster.put(source(f"s{number % 2}", router)),
        lambda: cluster.remove("FRRConfiguration", f"s{number % 2}", FRR),
        lambda: cluster.put(attachment("red", "10.61.0.0/16/24", labels={"export": "yes"})),
        lambda: cluster.put(attachment("red", "10.61.0.0/16/24", labels={})),
        lambda: cluster.put(
            advertisements(
                f"ra{number % 3}",
                targetVRF=chance.choice(targets),
                networkSelectors=chance.choice(
                    ([DEFAULT_NETWORK], [CLUSTER_NETWORKS], [DEFAULT_NETWORK, CLUSTER_NETWORKS])
                ),
            )
        ),
        lambda: cluster.remove("RouteAdvertisements", f"ra{number % 3}"),
    )
    chance.choice(edits)()


@pytest.mark.parametrize("seed", range(3))
def test_after_each_of_200_edits_the_result_is_that_of_a_fresh_start(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311
    cluster = Cluster(W1, W2, source("s0"), RED, advertisements("ra0"))
    for _ in range(200):
        _edit(chance, cluster)
        found = cluster.operate()
        fresh = cluster.fresh_start()
        assert replace(found, state=None) == replace(fresh, state=None)
        if chance.random() < 0.7:
            cluster.write()


def test_a_change_of_one_node_generates_its_objects_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    generated: list[str] = []

    def generate(what: Any, row: Any, *arguments: Any, typed: bool) -> Any:  # noqa: ANN401
        generated.append(row.metadata.name)
        return whole(what, row, *arguments, typed=typed)

    whole = translation.generate
    monkeypatch.setattr(translation, "generate", generate)
    nodes = [node(f"w{i}", {"default": [f"10.180.{2 * i}.0/23"]}) for i in range(100)]
    cluster = Cluster(*nodes, source(), advertisements("a"), advertisements("b"))
    cluster.write()
    cluster.write()
    assert len(generated) == 200
    generated.clear()
    cluster.put(node("w7", {"default": ["10.181.0.0/23"]}))
    written = cluster.write().generated
    assert generated == ["w7", "w7"]
    assert len(written) == 2
