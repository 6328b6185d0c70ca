"""Which of several policies configures a node, and what a successor changes."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from reconcilers.antrea.operate import OPERATION
from reconcilers.dialect import ReportedStatuses
from tests.reconcilers.antrea.build import NEW, Cluster, node, policy, service


def test_the_oldest_policy_that_selects_the_node_is_effective() -> None:
    it = Cluster(node(), policy("young", created=NEW), policy("old"))
    assert it.reasons() == {"old": "Effective", "young": "OlderPolicyEffective"}


@pytest.mark.parametrize("order", list(itertools.permutations("abc")))
def test_of_one_age_the_first_by_name_is_effective(order: tuple[str, ...]) -> None:
    it = Cluster(node(), *(policy(name) for name in order))
    assert it.reasons()["a"] == "Effective"


def test_labels_of_the_node_choose() -> None:
    it = Cluster(node(labels={}), policy("edge"), policy("all", created=NEW, selector={}))
    assert it.reasons() == {"edge": "NodeNotSelected", "all": "Effective"}
    it.put(node())
    assert it.reasons() == {"edge": "Effective", "all": "OlderPolicyEffective"}


def test_without_a_policy_or_without_the_node_there_is_no_instance() -> None:
    it = Cluster(policy())
    assert it.render()["instances"] == []
    assert it.reasons() == {"edge-export": "NodeNotSelected"}
    it.put(node())
    assert it.instance()["name"] == "antrea"
    it.delete("BGPPolicy", "edge-export")
    assert it.render()["instances"] == []


def test_the_condition_is_never_to_be_written() -> None:
    it = Cluster(node(), policy())
    assert OPERATION.condition_kinds == ()
    assert it.dialect.each(ReportedStatuses) == ()


def test_a_compatible_successor_changes_no_instance_and_no_peer_that_stays() -> None:
    first = policy("one", "ClusterIP", peers=[{"address": "10.30.4.1", "asn": 64600}])
    then = policy(
        "two",
        "ClusterIP",
        created=NEW,
        peers=[{"address": "10.30.4.1", "asn": 64600}, {"address": "10.30.4.2", "asn": 64600}],
    )
    it = Cluster(node(), first, then, service(clusterIPs=["10.98.14.20"]))
    before, peer = it.instance(), it.peers()["10.30.4.1"]
    it.delete("BGPPolicy", "one")
    after = it.instance()
    assert {**after, "peers": []} == {**before, "peers": []}
    assert it.peers()["10.30.4.1"] == peer
    assert sorted(it.peers()) == ["10.30.4.1", "10.30.4.2"]
    # Routes follow the effective policy.
    row = next(iter(it.intent.routes.all(it.db.snapshot())))
    assert row.contributions[0].origin.rule.name == "two"


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"listenPort": 1790}, "listenPort"),
        ({"localASN": 64621}, "localASN"),
        ({"confederation": {"identifier": 65010}}, "confederation"),
    ],
)
def test_another_process_has_the_same_name(changes: dict[str, Any], key: str) -> None:
    it = Cluster(node(), policy("one"), policy("two", created=NEW, **changes))
    before = it.instance()
    it.delete("BGPPolicy", "one")
    after = it.instance()
    assert (after["name"], before["name"]) == ("antrea", "antrea")
    assert after[key] != before[key]


def test_an_invalid_policy_leaves_the_others() -> None:
    it = Cluster(node(), policy("bad", localASN=65536), policy("good", created=NEW))
    assert it.reasons() == {"bad": "FieldNotAccepted", "good": "Effective"}
    (problem,) = it.render()["problems"]
    assert (problem["objects"], problem["field"]) == (["BGPPolicy/bad"], "spec.localASN")
    assert "--antrea-next-fields" in problem["message"]


def test_with_the_flag_as_numbers_have_four_octets() -> None:
    peers = [{"address": "10.30.4.1", "asn": 4200000001}]
    it = Cluster(node(), policy(localASN=4200000000, peers=peers), next_fields=True)
    assert it.instance()["localASN"] == 4200000000
    assert it.peers()["10.30.4.1"]["peerASN"] == 4200000001
    assert it.problems() == []
