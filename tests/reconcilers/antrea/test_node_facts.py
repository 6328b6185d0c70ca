"""Enabled families, transport addresses, router IDs and their annotation."""

from __future__ import annotations

import pytest

from reconcilers.antrea.dialect import AntreaDialect
from reconcilers.antrea.node_facts import hashed_router_id, node_facts
from reconcilers.antrea.options import AntreaOperatorOptions
from reconcilers.operator import Planner
from reconcilers.sliced_work import finish
from resources.core.kinds import NODE as NODE_KIND
from speaker.nlri import IPV6_UNICAST
from tests.reconcilers.antrea.build import (
    NODE,
    PEER,
    PEER6,
    ROUTER_ID,
    Cluster,
    dual,
    node,
    policy,
)

V6 = {"cidrs": ["2001:db8:c9:7::/64"], "addresses": ["2001:db8:30::17"]}
PEERS = [PEER, PEER6]


@pytest.mark.parametrize(
    ("name", "router_id"), [("local", "156.67.103.8"), ("edge-7", "181.89.6.28")]
)
def test_the_hash_of_a_name(name: str, router_id: str) -> None:
    assert hashed_router_id(name) == router_id


def test_peers_of_families_without_pod_cidr_are_left_out_with_a_condition() -> None:
    it = Cluster(node(addresses=["10.30.4.17", "2001:db8:30::17"]), policy(peers=PEERS))
    assert list(it.peers()) == ["10.30.4.1"]
    assert it.problems() == []
    assert "2001:db8:30::1" in it.render()["conditions"][0]["message"]


def test_without_any_pod_cidr_the_addresses_enable_families() -> None:
    it = Cluster(dual(cidrs=[]), policy(peers=PEERS, pod=True))
    assert {name: p["families"] for name, p in it.peers().items()} == {
        "10.30.4.1": ["ipv4-unicast"],
        "2001:db8:30::1": ["ipv6-unicast"],
    }
    assert it.prefixes() == []
    assert it.problems() == []


def test_a_pod_cidr_without_an_address_of_its_family_is_a_problem_and_the_other_goes_on() -> None:
    it = Cluster(node(cidrs=["10.201.7.0/24", "2001:db8:c9:7::/64"]), policy(peers=PEERS, pod=True))
    assert it.problems() == [(f"Node/{NODE}", "spec.podCIDRs[1]")]
    assert it.prefixes() == ["10.201.7.0/24"]


def test_an_address_with_a_zone_is_no_local_end_of_a_session() -> None:
    zoned = NODE_KIND.decode(node(cidrs=V6["cidrs"], addresses=["fe80::1%eth0", *V6["addresses"]]))
    assert node_facts(zoned).transport == {IPV6_UNICAST: "2001:db8:30::17"}


def test_a_node_without_addresses_has_no_peers_and_a_problem() -> None:
    it = Cluster(node(addresses=[], cidrs=[]), policy())
    assert (it.peers(), it.problems()) == ({}, [(f"Node/{NODE}", "status.addresses")])


@pytest.mark.parametrize(
    ("fields", "router_id"),
    [
        ({"router_id": "10.255.0.7"}, "10.255.0.7"),
        ({"router_id": None}, "10.30.4.17"),
        ({"router_id": None, **V6}, "181.89.6.28"),
        ({"router_id": "192.0.2.77", **V6}, "192.0.2.77"),
    ],
)
def test_annotation_then_transport_address_then_hash(
    fields: dict[str, object], router_id: str
) -> None:
    it = Cluster(node(**fields), policy(peers=PEERS))  # type: ignore[arg-type]
    assert it.instance()["routerID"] == router_id


@pytest.mark.parametrize("text", ["router-7", "0.0.0.0", "", "10.1", "::1", "10.0.0.1 ", "٣.1.1.1"])
def test_an_unusable_annotation_is_a_problem_and_is_not_overwritten(text: str) -> None:
    it = Cluster(node(router_id=text), policy())
    assert it.instance()["routerID"] == "10.30.4.17"
    assert it.problems() == [(f"Node/{NODE}", f"metadata.annotations[{ROUTER_ID}]")]
    assert it.render()["annotations"] == []


def test_render_shows_the_annotation_of_its_node_only() -> None:
    it = Cluster(node(router_id=None), node("edge-9", router_id=None), policy())
    assert it.render()["annotations"] == [
        {"kind": "Node", "namespace": None, "name": NODE, "set": {ROUTER_ID: "10.30.4.17"}}
    ]


def test_the_operator_annotates_every_node_with_an_effective_policy_once() -> None:
    it = Cluster(
        node(router_id=None),
        node("edge-9", router_id=None, addresses=["10.30.4.19"]),
        node("edge-8", router_id="10.30.4.18"),
        node("bad", router_id="x"),
        node("other", router_id=None, labels={}),
        policy(),
    )
    dialect = AntreaDialect(it.resources, AntreaOperatorOptions())
    planner = Planner(it.db, [dialect], "kube-system")
    plan = finish(planner.plan())
    assert plan is not None
    found = {write.object.name: write.content["metadata"] for write in plan.objects}  # type: ignore[union-attr]
    assert found == {
        "edge-7": {"name": "edge-7", "uid": "uid-edge-7", "annotations": {ROUTER_ID: "10.30.4.17"}},
        "edge-9": {"name": "edge-9", "uid": "uid-edge-9", "annotations": {ROUTER_ID: "10.30.4.19"}},
    }
    assert plan.conditions == {}
    it.put(node(), node("edge-9", router_id="10.30.4.19"))
    plan = finish(planner.plan())
    assert plan is not None
    assert plan.objects == ()
