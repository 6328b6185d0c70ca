"""The admission review of MetalLB's objects, and of FRRConfigurations beside them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcilers.admission import Request, Reviewer, Verdict
from reconcilers.compile_manifests import kinds_of
from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.frrk8s.options import Frrk8sClusterOptions
from reconcilers.metallb.dialect import MetalLBDialect
from reconcilers.metallb.options import MetalLBOperatorOptions
from resources.tables import Tables
from statedb import Database
from tests.reconcilers.metallb.objects import advertisement, community, peer, pool
from tests.reconcilers.metallb.test_node import FRONT, frr_configuration, node

WIDE = advertisement("wide", aggregationLength=23)


class Cluster:
    """One node, and stored objects."""

    def __init__(self, *stored: dict[str, Any]) -> None:
        self.db = Database()
        self.kinds = kinds_of([MetalLBDialect, Frrk8sDialect])
        tables = Tables(self.db, self.kinds)
        for value in (node(), *stored):
            kind = self.kinds.find(value["apiVersion"], value["kind"])
            assert kind is not None
            with self.db.write(tables.of(kind)) as txn:
                tables.of(kind).upsert(txn, kind.decode(value))
        dialects = [
            MetalLBDialect(tables, MetalLBOperatorOptions()),
            Frrk8sDialect(tables, Frrk8sClusterOptions()),
        ]
        self.reviewer = Reviewer(self.db, tables, dialects)

    def review(self, value: dict[str, Any], old: Any = None) -> Verdict:  # noqa: ANN401
        verb = "CREATE" if old is None else "UPDATE"
        request = Request(verb, value["apiVersion"], value["kind"], value, old)
        return self.reviewer.review(request)


def test_what_agrees_is_admitted() -> None:
    cluster = Cluster(peer("a"), FRONT)
    assert cluster.review(advertisement("x")) == Verdict(allowed=True)


@pytest.mark.parametrize(
    ("stored", "value", "words"),
    [
        ([], peer("a", myASN=0), ["spec.myASN"]),
        ([peer("a")], peer("b"), ["BGPPeer/metallb-system/a", "peerAddress"]),
        ([FRONT], pool("again", "198.18.30.0/25"), ["IPAddressPool/metallb-system/front"]),
        ([], peer("a", "tor"), ["spec.peerAddress"]),
        ([FRONT], WIDE, ["aggregationLength", "IPAddressPool/metallb-system/front"]),
        ([WIDE], FRONT, ["aggregationLength", "BGPAdvertisement/metallb-system/wide"]),
        (
            [frr_configuration("x", {"asn": 64951})],
            peer("a"),
            ["FRRConfiguration/frr-k8s-system/x", "spec.peerASN", "n1"],
        ),
        ([peer("a")], frr_configuration("x", {"asn": 64951}), ["BGPPeer/metallb-system/a"]),
        ([community("c", vip="1:1")], community("d", vip="1:1"), ["Community/metallb-system/c"]),
    ],
)
def test_what_is_wrong_is_denied_with_its_reason(
    stored: list[dict[str, Any]], value: dict[str, Any], words: list[str]
) -> None:
    verdict = Cluster(*stored).review(value)
    assert not verdict.allowed
    assert all(word in verdict.message for word in words), verdict.message


@pytest.mark.parametrize(
    "value",
    [
        peer("a", bfdProfile="gone"),
        advertisement("x", communities=["vip"]),
    ],
)
def test_a_reference_to_what_is_not_there_yet_is_a_warning(value: dict[str, Any]) -> None:
    verdict = Cluster().review(value)
    assert verdict.allowed
    assert len(verdict.warnings) == 1


def test_secrets_are_not_reviewed_as_the_operator_reads_none() -> None:
    assert Cluster().review(peer("a", passwordSecret={"name": "any"})) == Verdict(allowed=True)


def test_a_repair_that_makes_nothing_worse_is_admitted() -> None:
    cluster = Cluster(peer("a"), peer("b"))
    assert cluster.review(peer("b", holdTime="90s"), peer("b")).allowed
    assert cluster.review(peer("b", "203.0.113.10"), peer("b")) == Verdict(allowed=True)


def test_an_object_for_nodes_that_come_later_is_compared() -> None:
    selectors = [{"matchLabels": {"rack": "9"}}]
    cluster = Cluster(peer("a", nodeSelectors=selectors))
    assert not cluster.review(peer("b", nodeSelectors=selectors)).allowed


def test_an_object_whose_second_selector_selects_a_node_is_not_compared_with_later_ones() -> None:
    later = {"matchLabels": {"rack": "9"}}
    here = {"matchExpressions": [{"key": "rack", "operator": "DoesNotExist"}]}
    cluster = Cluster(peer("a", nodeSelectors=[later]))
    assert cluster.review(peer("b", nodeSelectors=[later, here])) == Verdict(allowed=True)


def test_a_change_of_graceful_restart_is_a_warning() -> None:
    before = frr_configuration("x", {"asn": 64950})
    after = frr_configuration("x", {"asn": 64950, "enableGracefulRestart": True})
    assert Cluster(before).review(after, before).warnings == (
        (
            "spec.bgp.routers[0].neighbors[0].enableGracefulRestart: neighbor 203.0.113.9: the "
            "change resets the session"
        ),
    )
    assert Cluster(after).review(after, after).warnings == ()
    assert Cluster().review(after).warnings == ()


def test_the_conflict_of_one_neighbor_is_not_that_of_another() -> None:
    """Both have the same field of the same objects."""

    def two(first: int, second: int) -> dict[str, Any]:
        value = frr_configuration("x", {"asn": first})
        (router,) = value["spec"]["bgp"]["routers"]
        router["neighbors"].append({"address": "203.0.113.10", "asn": second})
        return value

    other = frr_configuration("y", {"asn": 64950})
    other["spec"]["bgp"]["routers"][0]["neighbors"].append(
        {"address": "203.0.113.10", "asn": 64950}
    )
    before = two(64951, 64950)
    cluster = Cluster(before, other)
    assert cluster.review(two(64952, 64950), before).allowed, "the same conflict"
    assert not cluster.review(two(64950, 64952), before).allowed


PASSWORD = "correct-horse-battery"
placed = st.sampled_from(("password", "passwordSecret", "Password", "passwordsecret"))
shapes = st.sampled_from(
    (
        *(PASSWORD, PASSWORD * 5, f"{PASSWORD}\n", [PASSWORD], 7),
        *({"name": [PASSWORD]}, {"password": PASSWORD}, {"value": {"x": PASSWORD}}),
    )
)


@settings(max_examples=60)
@given(placed, shapes, placed, shapes, st.booleans())
def test_no_answer_has_a_password(
    name: str,
    value: Any,  # noqa: ANN401
    second: str,
    other: Any,  # noqa: ANN401
    stored: bool,
) -> None:
    present = [frr_configuration("y", {"asn": 64950, "password": f"{PASSWORD}-2"})]
    cluster = Cluster(*(present if stored else []), peer("z", "203.0.113.10", password=PASSWORD))
    for candidate in (
        frr_configuration("x", {"asn": 64950, name: value, second: other}),
        peer("a", **{name: value, second: other}),
    ):
        for old in (None, candidate):
            verdict = cluster.review(candidate, old)
            assert PASSWORD not in f"{verdict.message} {verdict.warnings}"


def test_another_namespace_and_disable_mp_are_warnings() -> None:
    other = peer("a", disableMP=True)
    other["metadata"]["namespace"] = "team"
    verdict = Cluster().review(other)
    assert verdict.allowed
    assert len(verdict.warnings) == 2


def test_a_router_of_an_imported_vrf_may_come_later() -> None:
    importing = frr_configuration("x", {"asn": 64950})
    router = importing["spec"]["bgp"]["routers"][0]
    router["imports"] = [{"vrf": "red"}]
    router["neighbors"][0]["toAdvertise"] = {"allowed": {"prefixes": ["198.18.90.0/24"]}}
    verdict = Cluster().review(importing)
    assert verdict.allowed
    assert [warning.split(": ")[1] for warning in verdict.warnings] == [
        "spec.bgp.routers[0].imports[0].vrf"
    ]
