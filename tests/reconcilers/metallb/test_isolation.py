"""Isolation of MetalLB's objects and FRRConfigurations in one order, by their age."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcilers.age import Age, age_by_name
from reconcilers.frrk8s.in_effect import InEffect
from reconcilers.frrk8s.merge import Merger
from reconcilers.frrk8s.unit_parts import Unit
from reconcilers.metallb.feed import translated_units
from reconcilers.metallb.findings import findings
from reconcilers.metallb.objects import Objects
from reconcilers.model import ObjectRef, Problem, ref_to
from reconcilers.sliced_work import Pieces, finish
from resources.frrk8s.kinds import FRR_CONFIGURATION
from tests.reconcilers.frrk8s.build import configuration, neighbor, resolve, router
from tests.reconcilers.metallb.build import MetalLBNode, isolated, no_secrets
from tests.reconcilers.metallb.objects import (
    NAMESPACE,
    advertisement,
    community,
    peer,
    pool,
    profile,
    rows,
)
from tests.reconcilers.metallb.test_node import endpoints, node, service
from tests.support.examples import examples

Json = dict[str, Any]
STEADY = settings(derandomize=True, max_examples=examples(40))
"""The same examples in every run: an object that one run alone isolates is a case of its own here."""
OTHER = "203.0.113.10"
"""The address of another peer."""


def at(day: int) -> str:
    return f"2026-01-{day:02}T00:00:00Z"


def frr(name: str, day: int, *neighbors: Json, **bgp: Any) -> Json:  # noqa: ANN401
    """Make an FRRConfiguration with these neighbours of the default VRF."""
    routers = [router(*neighbors)] if neighbors else []
    return configuration(name, {"bgp": {"routers": routers, **bgp}}, at(day))


def configurations(objects: Iterable[Json]) -> list[Unit]:
    """Return the units of the FRRConfigurations."""
    found = [FRR_CONFIGURATION.decode(one) for one in objects if is_configuration(one)]
    return [Unit(ref_to(FRR_CONFIGURATION, row), row) for row in found]


def is_configuration(value: Json) -> bool:
    return bool(value["kind"] == "FRRConfiguration")


def metallb(objects: Iterable[Json]) -> Objects:
    return rows(*(one for one in objects if not is_configuration(one)))


def problems(found: InEffect) -> Sequence[Problem]:
    """Return the problems of MetalLB's own rules."""
    return found.outcomes["metallb"].problems


def out(*objects: Json) -> list[str]:
    """Return the names of the objects that are not in effect."""
    names = {one["metadata"]["name"] for one in objects}
    return sorted(names - {ref.name for ref in isolated(objects).accepted})


def reported(*objects: Json) -> list[tuple[str, list[str]]]:
    """Return category and names of the objects of each problem of MetalLB's own rules."""
    found = problems(isolated(objects))
    return sorted((one.category, [ref.name for ref in one.objects]) for one in found)


class TestMetalLBAlone:
    def test_the_younger_of_two_is_left_out_whatever_its_name(self) -> None:
        old, young = peer("z", created=at(1)), peer("a", created=at(2))
        assert out(old, young) == ["a"]
        assert out(young) == []

    def test_the_third_goes_on_where_it_agrees_with_the_first(self) -> None:
        ids = {"a": "192.0.2.1", "b": "192.0.2.2", "c": "192.0.2.1"}
        objects = [
            peer(name, f"203.0.113.{i}", routerID=ids[name], created=at(i))
            for i, name in enumerate(ids, start=1)
        ]
        assert out(*objects) == ["b"]

    def test_what_refers_to_an_object_that_is_left_out_is_left_out(self) -> None:
        wrong = profile("f", receiveInterval=1)
        objects = peer("a", bfdProfile="f"), peer("b", OTHER), wrong
        assert out(*objects) == ["a", "f"]
        assert reported(*objects) == [("invalid", ["f"]), ("unresolved", ["a"])]

    def test_a_reference_to_a_younger_object_is_used(self) -> None:
        use = peer("a", bfdProfile="f", created=at(1))
        assert out(use, profile("f", created=at(2))) == []
        named = advertisement("x", communities=["vip"], created=at(1))
        assert out(named, community("c", vip="1:1", created=at(2))) == []

    def test_what_was_left_out_for_an_object_without_its_referent_is_accepted(self) -> None:
        use = peer("a", bfdProfile="f", created=at(1))
        same = peer("b", created=at(2))
        wrong = profile("f", receiveInterval=1, created=at(3))
        assert out(use, same, wrong) == ["a", "f"]

    def test_a_finding_names_the_object_and_the_older_ones(self) -> None:
        objects = [
            peer("a", "203.0.113.1", created=at(1)),
            peer("b", "203.0.113.2", created=at(2)),
            peer("c", "203.0.113.3", myASN=64901, created=at(3)),
            peer("d", "203.0.113.4", created=at(4)),
        ]
        assert reported(*objects) == [("conflict", ["a", "b", "c"])]

    def test_an_advertisement_that_another_contradicts_in_a_pool_that_is_out_is_accepted(
        self,
    ) -> None:
        first = advertisement("x", ipAddressPools=["p", "q"], localPref=1, created=at(1))
        second = advertisement("y", ipAddressPools=["q"], localPref=2, created=at(2))
        pools = [
            pool("p", "198.18.30.0/24", created=at(3)),
            pool("q", "198.18.30.0/25", created=at(4)),
        ]
        assert out(first, second, *pools) == ["q"]
        apart = pool("q", "198.18.40.0/24", created=at(4))
        assert out(first, second, pools[0], apart) == ["y"]

    def test_a_pool_gives_way_to_advertisements_that_were_taken_without_it(self) -> None:
        objects = [
            advertisement("x", ipAddressPools=["q"], localPref=1, created=at(1)),
            advertisement("y", ipAddressPools=["p", "q"], localPref=2, created=at(2)),
            advertisement(
                "z", ipAddressPools=["p", "q"], localPref=1, aggregationLength=20, created=at(3)
            ),
            pool("p", "2001:db8::/64", created=at(4)),
            pool("q", "198.18.30.0/24", "2001:db8:1::/64", created=at(5)),
        ]
        # z stands in the way of q, so that x and y have no pool in common; y stands in the way of z.
        assert out(*objects) == ["q", "z"]
        assert ("conflict", ["x", "y", "q"]) in reported(*objects)

    def test_pools_with_one_address_in_common_overlap(self) -> None:
        first = pool("p", "198.18.30.0-198.18.30.10", created=at(1))
        apart = pool("q", "198.18.30.11-198.18.30.20", created=at(2))
        touching = pool("r", "198.18.30.20-198.18.30.30", created=at(3))
        around = pool("s", "198.18.0.0/16", created=at(4))
        assert out(first, apart, touching, around) == ["r", "s"]

    def test_the_youngest_of_an_aggregate_and_its_pool_is_left_out(self) -> None:
        for days, left in (((1, 2), "p"), ((2, 1), "x")):
            wide = advertisement("x", aggregationLength=20, created=at(days[0]))
            narrow = pool("p", "198.18.30.0/24", created=at(days[1]))
            assert out(wide, narrow) == [left]

    def test_the_youngest_object_with_the_echo_mode_is_left_out(self) -> None:
        for youngest in range(4):
            days = [9 if i == youngest else i + 1 for i in range(4)]
            objects = [
                profile("f", echoMode=True, created=at(days[0])),
                peer("a", bfdProfile="f", created=at(days[1])),
                advertisement("x", created=at(days[2])),
                pool("p", "2001:db8::/64", created=at(days[3])),
            ]
            # Without its profile the peer is rejected, too, and the profile has nothing against it.
            assert out(*objects) == [["a"], ["a"], ["x"], ["p"]][youngest]

    def test_a_name_that_an_object_defines_twice_is_its_own_fault(self) -> None:
        twice = community("c", vip="1:1", created=at(1))
        twice["spec"]["communities"] *= 2
        assert out(twice, community("d", vip="1:2", created=at(2))) == ["c"]


class TestBoth:
    X = frr("x", 1, neighbor(port=1179))

    def test_what_gave_way_to_an_object_that_is_left_out_is_accepted(self) -> None:
        first, second = peer("a", created=at(2)), peer("b", peerPort=1179, created=at(3))
        objects = self.X, first, second
        assert out(first, second) == ["b"]
        assert out(*objects) == ["a"]
        found = isolated(objects)
        assert problems(found) == ()
        assert [[ref.name for ref in one.objects] for one in found.merge.problems] == [["a", "x"]]

    def test_the_sessions_and_problems_of_a_node(self) -> None:
        found = MetalLBNode("isolate")
        found.put(node(), pool("p", "198.18.30.0/24"), advertisement("v"))
        found.put(service("s", "198.18.30.5"), endpoints("s"))
        first, second = peer("a", created=at(2)), peer("b", peerPort=1179, created=at(3))
        found.put(first, second)
        assert found.problems() == [("conflict", ["a", "b"])]
        found.put(self.X)
        (instance,) = found.render()["instances"]
        (session,) = instance["peers"]
        assert session["peerPort"] == 1179
        assert [route["prefix"] for route in session["advertise"]] == ["198.18.30.5/32"]
        assert found.problems() == [("conflict", ["a", "x"])]
        found.delete(self.X)
        assert found.problems() == [("conflict", ["a", "b"])]

    def test_a_peer_with_a_profile_that_gives_way_to_a_configuration_is_left_out(self) -> None:
        profiles = [{"name": "f", "receiveInterval": 100}]
        theirs = frr("x", 1, bfdProfiles=profiles)
        own = profile("f", receiveInterval=200, created=at(2))
        use = peer("a", bfdProfile="f", created=at(3))
        assert out(theirs, own, use) == ["a", "f"]
        found = MetalLBNode("isolate")
        found.put(node(), theirs, own, use)
        assert found.render()["instances"] == []
        assert found.problems() == [("conflict", ["f", "x"]), ("unresolved", ["a"])]

    def test_a_younger_configuration_that_gave_way_to_a_peer_without_profile_is_accepted(
        self,
    ) -> None:
        wrong = profile("f", receiveInterval=1)
        use = peer("a", bfdProfile="f", created=at(1))
        assert out(wrong, use, frr("x", 2, neighbor(port=1179))) == ["a", "f"]

    def test_a_vrf_of_a_peer_that_is_left_out_is_no_vrf(self) -> None:
        importing = configuration(
            "x", {"bgp": {"routers": [router(imports=[{"vrf": "red"}])]}}, at(1)
        )
        red = peer("a", vrf="red", created=at(3))
        assert out(importing, red) == []
        assert out(importing, peer("b", OTHER, vrf="red", myASN=64901, created=at(2)), red) == ["a"]
        wrong = peer("a", vrf="red", myASN=0, created=at(3))
        assert out(importing, wrong) == ["a", "x"]

    def test_a_node_follows_the_order_of_both_where_a_vrf_depends_on_it(self) -> None:
        importing = configuration(
            "x", {"bgp": {"routers": [router(imports=[{"vrf": "red"}])]}}, at(1)
        )
        objects = [
            importing,
            peer("a", OTHER, myASN=64901, created=at(2)),
            peer("b", OTHER, routerID="192.0.2.1", created=at(3)),
            peer("c", "203.0.113.11", vrf="red", created=at(4)),
        ]
        # With x a is rejected, so that b is accepted, and with b c is rejected, which x refers to.
        assert out(*objects) == ["b", "x"]
        found = MetalLBNode("isolate")
        found.put(node(), *objects)
        assert sorted(found.routes()) == [OTHER, "203.0.113.11"]
        problems = found.problems()
        assert ("conflict", ["a", "b"]) in problems
        assert ("conflict", ["a", "x"]) in problems


# Random objects


def aged(value: Json, day: int) -> Json:
    return {**value, "metadata": {**value["metadata"], "creationTimestamp": at(day)}}


FREE: list[Json] = [
    peer("p1"),
    peer("p2", peerPort=1179),
    peer("p3", OTHER, routerID="192.0.2.1"),
    peer("p4", OTHER, myASN=64901),
    peer("p5", "203.0.113.11", vrf="red"),
    pool("q1", "198.18.30.0/24"),
    pool("q2", "198.18.30.0/25", "2001:db8::/64"),
    pool("q3", "198.18.40.0/24"),
    community("c", vip="1:1"),
    community("d", vip="1:2"),
    advertisement("x", aggregationLength=25),
    advertisement("y", peers=["p1"]),
    frr("f1", 1, neighbor(port=1179)),
    frr("f2", 1, neighbor(address=OTHER, asn=64951)),
    configuration("f3", {"bgp": {"routers": [router(asn=64902, vrf="red")]}}),
    frr("f4", 1, neighbor(), bfdProfiles=[{"name": "b", "receiveInterval": 100}]),
]
"""Without references and local preferences: the order alone decides."""
REFERRING: list[Json] = [
    *FREE,
    peer("p6", "203.0.113.12", bfdProfile="b"),
    profile("b", receiveInterval=200, echoMode=True),
    peer("p7", bfdProfile="gone"),
    advertisement("v", communities=["vip"], localPref=2),
    advertisement("w", localPref=3, ipAddressPools=["q1", "q2"]),
    advertisement("z", localPref=2, ipAddressPools=["q2", "q4"], aggregationLength=20),
    advertisement("t", localPref=1, ipAddressPools=["q2", "q4"]),
    pool("q4", "2001:db8:4::/64"),
    configuration("f5", {"bgp": {"routers": [router(imports=[{"vrf": "red"}])]}}),
]


def chosen_of(specimens: Sequence[Json]) -> st.SearchStrategy[list[Json]]:
    """Choose objects, each with a day of its creation."""
    days = st.lists(st.integers(1, 9), min_size=len(specimens), max_size=len(specimens))
    flags = st.lists(st.booleans(), min_size=len(specimens), max_size=len(specimens))
    return st.builds(
        lambda days, flags: [
            aged(one, day) for one, day, flag in zip(specimens, days, flags, strict=True) if flag
        ],
        days,
        flags,
    )


def by_age(objects: Iterable[Json]) -> list[tuple[Age, Json]]:
    def age(value: Json) -> Age:
        metadata = value["metadata"]
        ref = ObjectRef(value["kind"], metadata["namespace"], metadata["name"])
        return age_by_name(metadata["creationTimestamp"], ref)

    return sorted(((age(one), one) for one in objects), key=lambda item: item[0])


def go_together(objects: Sequence[Json]) -> bool:
    own = metallb(objects)
    if findings(own, no_secrets, NAMESPACE):
        return False
    fed_units = (Unit(one.origin, one.row, one.fields) for one in translated_units(own))
    units = [*configurations(objects), *fed_units]
    return finish(Merger().merge(units, resolve(), Pieces())).routers is not None


@STEADY
@given(chosen_of(FREE))
def test_objects_are_taken_one_after_another(objects: list[Json]) -> None:
    accepted: list[Json] = []
    for _, one in by_age(objects):
        if go_together([*accepted, one]):
            accepted.append(one)
    found = isolated(objects).accepted
    assert sorted(ref.name for ref in found) == sorted(one["metadata"]["name"] for one in accepted)


@STEADY
@given(chosen_of(REFERRING), st.randoms(use_true_random=True))
def test_what_is_taken_goes_together_and_each_other_object_has_its_reason(
    objects: list[Json], order: random.Random
) -> None:
    result = isolated(objects)
    names = {ref.name for ref in result.accepted}
    accepted = [one for one in objects if one["metadata"]["name"] in names]
    assert go_together(accepted)
    for one in objects:
        if one not in accepted:
            assert not go_together([*accepted, one])
    reported = (*problems(result), *result.merge.problems)
    named = {ref.name for one in reported for ref in one.objects}
    assert {one["metadata"]["name"] for one in objects} <= names | named
    order.shuffle(objects)
    again = isolated(objects)
    assert (again.accepted, again.merge.problems) == (result.accepted, result.merge.problems)
    assert problems(again) == problems(result)


@settings(derandomize=True)
@given(chosen_of(REFERRING))
def test_a_node_has_the_result_of_the_accepted_objects_alone(objects: list[Json]) -> None:
    names = {ref.name for ref in isolated(objects).accepted}
    services = [
        node(), service("s", "198.18.30.5"), endpoints("s"), service("t", "198.18.40.5"), endpoints("t")
    ]  # fmt: skip
    whole, part = MetalLBNode("isolate"), MetalLBNode("keep")
    whole.put(*services, *objects)
    part.put(*services, *(one for one in objects if one["metadata"]["name"] in names))
    assert whole.render()["instances"] == part.render()["instances"]


def test_an_object_is_compared_with_those_alone_that_contradict_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[int] = []

    def counted(objects: Objects, *given: Any) -> list[Problem]:  # noqa: ANN401
        compared.append(sum(map(len, objects)))
        return findings(objects, *given)

    monkeypatch.setattr("reconcilers.metallb.relations.findings", counted)
    objects = [
        peer(f"p{i:03}", f"203.0.113.{i % 50 + 1}", created=at(1 + i // 50)) for i in range(200)
    ]
    assert len(out(*objects)) == 150
    assert compared == [2] * 150
