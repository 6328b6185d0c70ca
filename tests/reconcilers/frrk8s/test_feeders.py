"""Several dialects that feed FRR-k8s: what one object does to others depends on conflicts alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.frrk8s.options import Frrk8sOptions, OnConflict
from reconcilers.metallb.dialect import MetalLBDialect
from tests.reconcilers.frrk8s.agent_in_memory import AgentInMemory
from tests.reconcilers.frrk8s.build import configuration, neighbor, router
from tests.reconcilers.frrk8s.feeders import feeder, tower
from tests.reconcilers.metallb.objects import advertisement, peer
from tests.reconcilers.metallb.test_node import FRONT, endpoints, service

ANT, ANT_KIND = feeder("Ant")
BEE, BEE_KIND = feeder("Bee")
CAT, CAT_KIND = feeder("Cat")
KINDS = ("Ant", "Bee", "Cat")
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "type": "kubernetes.io/basic-auth",
    "metadata": {"name": "k", "namespace": "frr-k8s-system"},
    "data": {"password": "Z2VoZWlt"},
}
ADDRESSES = [f"203.0.113.{i}" for i in range(1, 6)]


class Node(AgentInMemory):
    """A node with FRR-k8s and dialects that feed it."""

    def __init__(self, mode: OnConflict = "isolate") -> None:
        dialects = (Frrk8sDialect, MetalLBDialect, ANT, BEE, CAT)
        super().__init__("n1", dialects, {"frrk8s": Frrk8sOptions(on_conflict=mode)})

    def put(self, *objects: dict[str, Any]) -> None:
        """Write objects, and compile them."""
        self.write(objects)
        self.compiler.run()

    def sessions(self) -> dict[str, list[str]]:
        """Return the prefixes that each peer is advertised, by its address."""
        return {
            one["address"]: [route["prefix"] for route in one["advertise"]]
            for instance in self.render()["instances"]
            for one in instance["peers"]
        }

    def advertised(self) -> dict[str, list[dict[str, Any]]]:
        """Return the routes that each peer is advertised, by its address."""
        return {
            item["address"]: item["advertise"]
            for instance in self.render()["instances"]
            for item in instance["peers"]
        }

    def reported(self) -> list[tuple[str, list[str]]]:
        """Return category and objects of each problem."""
        found = self.render()["problems"]
        return [(one["category"], one["objects"]) for one in found]


def test_a_conflict_in_one_feed_keeps_the_routes_of_another_feed() -> None:
    node = Node()
    node.put(tower("Bee", "b", ADDRESSES[1], prefixes=["10.1.0.0/16"]))
    node.put(peer("a"), peer("z"))
    assert node.sessions()[ADDRESSES[1]] == ["10.1.0.0/16"]
    assert node.reported() == [
        ("conflict", ["BGPPeer/metallb-system/a", "BGPPeer/metallb-system/z"])
    ]


def test_objects_of_all_feeds_are_one_order() -> None:
    node = Node()
    old = tower("Cat", "old", ADDRESSES[0], port=1, created=at(1))
    own = frr("f", ADDRESSES[0], 2, created=at(2))
    young = tower("Ant", "young", ADDRESSES[0], port=3, created=at(3))
    node.put(young, own)
    assert node.reported() == [("conflict", ["Ant/young", "FRRConfiguration/frr-k8s-system/f"])]
    node.put(old)
    assert node.reported() == [
        ("conflict", ["Ant/young", "Cat/old"]),
        ("conflict", ["Cat/old", "FRRConfiguration/frr-k8s-system/f"]),
    ]


def test_a_conflict_that_no_unit_has_is_its_feeds_own() -> None:
    node = Node()
    node.put(
        tower("Ant", "a", ADDRESSES[0], zone="x", created=at(1)),
        tower("Ant", "b", ADDRESSES[1], zone="x", created=at(2)),
        tower("Bee", "c", ADDRESSES[2], zone="x", created=at(3)),
        frr("f", ADDRESSES[0], 9, created=at(4)),
    )
    assert sorted(node.sessions()) == [ADDRESSES[0], ADDRESSES[2]]
    assert ("conflict", ["Ant/b", "Ant/a"]) in node.reported()


@pytest.mark.parametrize("mode", ["keep", "clear"])
def test_a_feed_that_is_wrong_by_itself_stops_no_other(mode: OnConflict) -> None:
    node = Node(mode)
    node.put(tower("Bee", "b", ADDRESSES[1], prefixes=["10.1.0.0/16"]), peer("a"))
    before = node.sessions()
    node.put(peer("z"), tower("Cat", "c", ADDRESSES[2], prefixes=["10.2.0.0/16"]))
    after = node.sessions()
    assert after[ADDRESSES[1]] == ["10.1.0.0/16"]
    assert after[ADDRESSES[2]] == ["10.2.0.0/16"]
    assert (before.keys() <= after.keys()) is (mode == "keep")


SERVICE = "198.18.30.1/32"
PREFERENCE = 100
"""The local preference of MetalLB's advertisement of the Service."""
METALLB = (
    peer("a"),
    FRONT,
    advertisement("x", localPref=PREFERENCE),
    service("s", SERVICE.removesuffix("/32")),
    endpoints("s"),
)
METALLB_PEER = "203.0.113.9"


def preferring(created: str, kind: str = "Ant") -> dict[str, Any]:
    """Return an object with another local preference of the Service, on MetalLB's session."""
    prefixes = [SERVICE]
    return tower(kind, "p", METALLB_PEER, prefixes=prefixes, localPref=200, created=created)


@pytest.mark.parametrize("unrelated", [[], [1, 2]], ids=["alone", "beside an unrelated conflict"])
@pytest.mark.parametrize("mode", ["isolate", "keep"])
def test_a_local_preference_in_another_feed_is_a_conflict(
    mode: OnConflict, unrelated: list[int]
) -> None:
    node = Node(mode)
    node.put(preferring(at(1)), *METALLB[:-2])
    node.put(*(tower("Ant", f"{n}", ADDRESSES[n], zone="x", created=at(n)) for n in unrelated))
    node.put(*METALLB[-2:])
    conflict = ("conflict", ["Ant/p", "BGPAdvertisement/metallb-system/x"])
    assert conflict in node.reported()
    if mode == "isolate":
        assert [route["localPreference"] for route in node.advertised()[METALLB_PEER]] == [
            PREFERENCE
        ]


class Session(NamedTuple):
    """One object: of a feed, or an FRRConfiguration."""

    kind: str
    name: str
    address: str
    port: int
    zone: str
    day: int

    @property
    def prefix(self) -> str:
        """A prefix that no other object has."""
        return f"10.{['FRR', *KINDS].index(self.kind)}.{int(self.name)}.0/24"

    def conflicts_with(self, other: Session) -> bool:
        """True if both cannot be in effect."""
        same_zone = self.kind == other.kind != "FRR" and self.zone and self.zone == other.zone
        return bool(same_zone) or (self.address == other.address and self.port != other.port)

    def value(self) -> dict[str, Any]:
        """Return the object as JSON."""
        created = at(self.day)
        if self.kind == "FRR":
            return frr(self.name, self.address, self.port, self.prefix, created=created)
        settings: dict[str, Any] = {"port": self.port, "zone": self.zone}
        settings["prefixes"] = [self.prefix]
        return tower(self.kind, self.name, self.address, created=created, **settings)


def at(day: int) -> str:
    return f"2026-01-{day:02}T00:00:00Z"


def frr(name: str, address: str, port: int, *prefixes: str, created: str) -> dict[str, Any]:
    advertise = {"allowed": {"mode": "all"}}
    neighbor = {"address": address, "asn": 64950, "port": port, "toAdvertise": advertise}
    routers = [router(neighbor, prefixes=list(prefixes))]
    return configuration(name, {"bgp": {"routers": routers}}, created)


SESSIONS = st.lists(
    st.builds(
        Session,
        st.sampled_from(("FRR", *KINDS)),
        st.integers(0, 4).map(str),
        st.sampled_from(ADDRESSES),
        st.sampled_from([179, 179, 1179]),
        st.sampled_from(["", "", "x", "y"]),
        st.integers(1, 9),
    ),
    max_size=12,
    unique_by=lambda one: (one.kind, one.name),
)


def in_effect(node: Node) -> set[str]:
    return {prefix for prefixes in node.sessions().values() for prefix in prefixes}


@settings(max_examples=60)
@given(SESSIONS)
def test_an_object_that_conflicts_with_no_other_is_in_effect(sessions: list[Session]) -> None:
    node = Node()
    node.put(*(one.value() for one in sessions))
    found = in_effect(node)
    for one in sessions:
        if not any(one.conflicts_with(other) for other in sessions if other is not one):
            assert one.prefix in found
    assert found == expected(sessions)


def expected(sessions: Iterable[Session]) -> set[str]:
    """Return the prefixes of the objects that go with all older objects that are in effect."""
    accepted: list[Session] = []
    for one in sorted(sessions, key=age):
        if not any(one.conflicts_with(other) for other in accepted):
            accepted.append(one)
    return {one.prefix for one in accepted}


def age(one: Session) -> tuple[object, ...]:
    is_own = one.kind == "FRR"
    namespace = "frr-k8s-system" if is_own else ""
    return one.day, namespace, one.name, "FRRConfiguration" if is_own else one.kind


@settings(max_examples=30)
@given(SESSIONS, SESSIONS)
def test_the_way_to_the_objects_of_all_feeds_does_not_matter(
    before: list[Session], after: list[Session]
) -> None:
    walked, at_once = Node(), Node()
    walked.put(*(one.value() for one in before))
    for one in before:
        walked.remove(one.value())
    walked.put(*(one.value() for one in after))
    at_once.put(*(one.value() for one in after))
    assert walked.render() == at_once.render()


@settings(max_examples=30)
@given(SESSIONS, st.sampled_from(KINDS), st.sampled_from(["", *map(at, range(1, 10))]))
def test_a_conflict_changes_nothing_of_unrelated_objects(
    sessions: list[Session], kind: str, created: str
) -> None:
    alone, beside = Node(), Node()
    objects = [preferring(created, kind), *METALLB, *(one.value() for one in sessions)]
    alone.put(*objects)
    pair = [tower(kind, f"{n}", f"203.0.113.{n}", zone="z", created=at(20)) for n in (20, 21)]
    beside.put(*objects, *pair)
    # The older one of the pair is in effect, and advertises nothing.
    assert beside.advertised() == {**alone.advertised(), "203.0.113.20": []}


@pytest.mark.parametrize("mode", ["keep", "clear"])
def test_a_secret_of_an_frrconfiguration_that_is_missing_at_the_start_stops_no_feed(
    mode: OnConflict,
) -> None:
    node = Node(mode)
    own, of_feed = ADDRESSES[0], ADDRESSES[1]
    secured = neighbor(address=own, passwordSecret={"name": "k"})
    node.put(configuration("own", {"bgp": {"routers": [router(secured)]}}))
    node.put(tower("Bee", "b", of_feed, prefixes=["10.1.0.0/16"]))
    assert node.sessions() == {of_feed: ["10.1.0.0/16"]}
    assert [category for category, _ in node.reported()] == ["unresolved"]
    # What the other dialect changes is applied meanwhile.
    node.put(tower("Bee", "b", of_feed, prefixes=["10.2.0.0/16"]))
    assert node.sessions() == {of_feed: ["10.2.0.0/16"]}
    node.put(SECRET)
    assert node.sessions() == {own: [], of_feed: ["10.2.0.0/16"]}
    assert node.reported() == []


def test_of_other_frrconfigurations_the_last_good_ones_stay_beside_a_new_one_without_its_secret() -> (
    None
):
    node = Node("keep")
    first, second, of_feed = ADDRESSES[:3]
    node.put(configuration("first", {"bgp": {"routers": [router(neighbor(address=first))]}}))
    secured = neighbor(address=second, passwordSecret={"name": "k"})
    node.put(configuration("second", {"bgp": {"routers": [router(secured)]}}))
    node.put(tower("Bee", "b", of_feed, prefixes=["10.1.0.0/16"]))
    assert node.sessions() == {first: [], of_feed: ["10.1.0.0/16"]}


def test_a_session_of_a_feed_waits_for_the_password_that_an_frrconfiguration_has_for_it() -> None:
    node = Node("keep")
    shared, other = ADDRESSES[:2]
    secured = neighbor(address=shared, passwordSecret={"name": "k"})
    node.put(configuration("own", {"bgp": {"routers": [router(secured)]}}))
    node.put(tower("Bee", "b", shared), tower("Bee", "c", other))
    assert shared not in node.sessions()


def test_a_password_in_use_that_goes_away_leaves_all_sessions_as_they_are() -> None:
    node = Node("keep")
    own, of_feed = ADDRESSES[:2]
    secured = neighbor(address=own, passwordSecret={"name": "k"})
    node.put(SECRET)
    node.put(configuration("own", {"bgp": {"routers": [router(secured)]}}))
    node.put(tower("Bee", "b", of_feed))
    assert set(node.sessions()) == {own, of_feed}
    node.remove(SECRET)
    node.compiler.run()
    assert set(node.sessions()) == {own, of_feed}
