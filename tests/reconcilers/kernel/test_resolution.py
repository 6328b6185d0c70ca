"""Passes over forwarding classes: in slices, to their end, and seen as a whole."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reconcilers.kernel.forwarding import ForwardingClass, ForwardingRules, NextHopSets
from reconcilers.kernel.resolution import ChangedClass, Moves, Resolution, moves_of_earlier_routes
from reconcilers.kernel.routing import HostRoute, HostRouting, NotKnown
from reconcilers.kernel.writer.protocol_messages import NextHop, NextHopSet
from resources.host import Host
from speaker.api import PathSet
from speaker.nlri import IPV4_UNICAST
from tests.reconcilers.kernel.build import HOST, internal, octets, path, paths

VRFS = {"main": "", "red": "red"}
BLACKHOLE_COMMUNITY = 65535 << 16 | 666
ONE, TWO = ("main", "10.88.0.1"), ("main", "10.88.0.2")
BOTH = paths(path("10.88.0.1"), path("10.88.0.2"))


class Changing:
    """The routing of a host that changes."""

    def __init__(self) -> None:
        self.present = HostRouting(HOST)
        self.looked_up: list[bytes] = []

    def lookup(self, vrf: str, address: bytes, *, neighbor: bool = False) -> HostRoute | None:
        self.looked_up.append(address)
        return self.present.lookup(vrf, address, neighbor=neighbor)

    def __getattr__(self, name: str) -> object:
        return getattr(self.present, name)


class Passes:
    """Instances and the resolution of their classes, with what it publishes."""

    def __init__(self, instances: int = 1, *, blackhole: bool = False) -> None:
        self.routing = Changing()
        self.lost: set[tuple[str, str | None]] = set()
        sets = NextHopSets()
        self.instances = [
            ForwardingRules(
                self.routing,  # type: ignore[arg-type]
                VRFS,
                maximum=64,
                blackhole=blackhole,
                lost=self.lost,
                sets=sets,
            )
            for _ in range(instances)
        ]
        self.rules = self.instances[0]
        self.changed: list[ForwardingClass] = []
        self.moves: Moves = {}
        self.slices = 0
        self.resolution = Resolution(
            self.routing,  # type: ignore[arg-type]
            sets,
            self._publish,
            lambda: None,
        )

    def _publish(self, changed: Sequence[ChangedClass], moves: Moves) -> None:
        self.changed += [change.of for change in changed]
        self.moves |= moves

    def have(self, *some: PathSet) -> list[NextHopSet | None]:
        """Return what path sets lead to."""
        return [self.rules.of(one, IPV4_UNICAST).next_hops for one in some]

    def refresh(self) -> None:
        self.resolution.refresh(self.instances)

    def finish(self) -> Moves:
        """Finish all passes; returns the moves since the last time."""
        self.changed = []
        self.moves = {}
        while self.resolution.resolving:
            self.resolution.step()
        return self.moves

    def host_changed(self, host: Host) -> Moves:
        self.routing.present = HostRouting(host)
        self.refresh()
        return self.finish()

    def session_lost(self, *peers: tuple[str, str]) -> Moves:
        self.lost.update(peers)
        self.refresh()
        return self.finish()

    def session_restored(self, *peers: tuple[str, str]) -> Moves:
        self.lost.difference_update(peers)
        self.refresh()
        return self.finish()


@pytest.fixture
def ten_classes_of_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconcilers.kernel.resolution.RESOLVED", 10)


def hops(*gateways: str) -> NextHopSet:
    return tuple(NextHop(octets(gateway)) for gateway in gateways)


def some_sets(count: int) -> list[PathSet]:
    """Return path sets with a next hop of their own, and the first peer's."""
    return [
        paths(path("10.88.0.1"), internal(f"10.88.0.{n}", peer="10.88.0.2"))
        for n in range(20, 20 + count)
    ]


def test_a_host_that_changes_has_other_next_hops_for_the_paths_that_it_concerns() -> None:
    passes = Passes()
    near, far = paths(path("10.88.0.1")), paths(internal("192.0.2.9"))
    assert passes.have(near, far) == [hops("10.88.0.1"), hops("10.88.0.254")]
    assert passes.host_changed(Host(HOST.devices)) == {hops("10.88.0.254"): None}
    assert passes.changed == [passes.rules.class_of(far, IPV4_UNICAST)]
    assert passes.have(near, far) == [hops("10.88.0.1"), None]
    assert passes.host_changed(Host(HOST.devices)) == {}
    assert passes.changed == []


def test_the_paths_of_a_session_that_is_lost_are_not_used_until_it_is_back() -> None:
    passes = Passes()
    (before,) = passes.have(BOTH)
    assert passes.session_lost(ONE) == {before: hops("10.88.0.2")}
    assert passes.rules.of(BOTH, IPV4_UNICAST).unresolved[0][1].message == (
        "the session with 10.88.0.1 has ended"
    )
    assert passes.session_restored(ONE) == {hops("10.88.0.2"): before}
    assert passes.have(BOTH) == [before]


def test_a_set_that_another_class_uses_is_not_moved() -> None:
    passes = Passes()
    one, two = paths(path("10.88.0.1")), paths(internal("10.88.0.1", peer="10.88.0.2"))
    passes.have(one, two)
    assert passes.session_lost(ONE) == {}
    assert passes.changed == [passes.rules.class_of(one, IPV4_UNICAST)]


def test_a_set_that_another_instance_uses_is_not_moved() -> None:
    passes = Passes(2)
    passes.have(paths(path("10.88.0.1")))
    passes.instances[1].of(paths(internal("10.88.0.1", peer="10.88.0.2")), IPV4_UNICAST)
    assert passes.session_lost(ONE) == {}
    assert len(passes.changed) == 1


def test_a_set_whose_classes_lead_to_several_ones_is_not_moved() -> None:
    passes = Passes()
    two, same = internal("10.88.0.1", peer="10.88.0.2"), internal("10.88.0.1")
    passes.have(paths(path("10.88.0.1"), two), paths(same))
    assert passes.session_lost(ONE) == {}, "a class keeps the next hop by another path"
    assert passes.session_lost(TWO) == {hops("10.88.0.1"): None}


def test_path_sets_with_other_communities_are_resolved_once() -> None:
    """A full table has ten thousands of them, and its peer is lost in one turn of the loop."""
    passes = Passes()
    some = [
        paths(path("10.88.0.1", communities=(n,)), path("10.88.0.2", communities=(n,)))
        for n in range(100)
    ]
    (before,) = set(passes.have(*some))
    looked_up = passes.routing.looked_up
    assert looked_up == [octets("10.88.0.1"), octets("10.88.0.2")]
    assert len(passes.session_lost(ONE)) == len(passes.changed) == 1
    assert set(passes.have(*some)) == {hops("10.88.0.2")}
    passes.session_restored(ONE)
    assert set(passes.have(*some)) == {before}
    assert len(looked_up) == 6, "each next hop once in a pass, also of the lost peer"


def test_a_blackhole_of_a_lost_peer_stays_until_it_is_withdrawn() -> None:
    passes = Passes(blackhole=True)
    discarded = paths(path("10.88.0.1", communities=(BLACKHOLE_COMMUNITY,)))
    (before,) = passes.have(discarded)
    assert passes.session_lost(ONE) == {}
    assert passes.have(discarded) == [before]


def test_equal_sets_are_one_object_after_a_pass_as_well() -> None:
    passes = Passes(2)
    (before,) = passes.have(BOTH)
    passes.host_changed(HOST)
    assert passes.have(BOTH)[0] is before
    assert passes.instances[1].of(BOTH, IPV4_UNICAST).next_hops is before


@pytest.mark.usefixtures("ten_classes_of_a_slice")
def test_a_slice_resolves_classes_of_all_instances_up_to_a_limit() -> None:
    passes = Passes(9)
    for number, rules in enumerate(passes.instances):
        for one in range(4):
            rules.of(paths(path(f"10.88.0.{20 + 4 * number + one}")), IPV4_UNICAST)
    looked_up = passes.routing.looked_up
    passes.refresh()
    resolved = []
    while passes.resolution.resolving:
        looked_up.clear()
        passes.resolution.step()
        resolved.append(len(looked_up))
    assert resolved == [10, 10, 10, 6]


@pytest.mark.usefixtures("ten_classes_of_a_slice")
def test_no_class_changes_before_all_are_resolved() -> None:
    """No route is written by half a pass."""
    passes = Passes()
    some = some_sets(25)
    before = passes.have(*some)
    passes.lost.add(ONE)
    passes.refresh()
    changed = []
    while passes.resolution.resolving:
        passes.resolution.step()
        after = passes.have(*some)
        changed.append(sum(old != new for old, new in zip(before, after, strict=True)))
    assert changed == [0, 0, 10, 20, 25]
    assert len(passes.moves) == 25


@pytest.mark.usefixtures("ten_classes_of_a_slice")
def test_classes_that_share_a_set_change_at_once() -> None:
    passes = Passes()
    some = [paths(internal(f"192.0.2.{n}")) for n in range(1, 26)]
    passes.have(*some)
    passes.routing.present = HostRouting(Host(HOST.devices))
    passes.refresh()
    for _ in range(3):
        assert not passes.moves
        passes.resolution.step()
    assert passes.moves == {hops("10.88.0.254"): None}
    assert len(passes.changed) == 25


@pytest.mark.usefixtures("ten_classes_of_a_slice")
def test_classes_without_a_route_before_change_in_slices() -> None:
    passes = Passes()
    some = [paths(internal(f"192.0.2.{n}")) for n in range(1, 26)]
    passes.have(*some)
    passes.host_changed(Host(HOST.devices))
    passes.routing.present = HostRouting(HOST)
    passes.refresh()
    passes.changed = []
    found = []
    while passes.resolution.resolving:
        passes.resolution.step()
        found.append(len(passes.changed))
    assert found == [0, 0, 10, 20, 25]
    assert set(passes.have(*some)) == {hops("10.88.0.254")}


@pytest.mark.usefixtures("ten_classes_of_a_slice")
def test_a_pass_ends_despite_changes_and_another_pass_follows() -> None:
    """With an event in each slice the moves of a lost peer are sent all the same."""
    passes = Passes()
    some = some_sets(25)
    passes.have(*some)
    passes.lost.add(ONE)
    passes.refresh()
    for _ in range(5):
        passes.resolution.step()
        passes.refresh()
    assert passes.resolution.passes == 1
    assert len(passes.moves) == 25
    passes.finish()
    assert passes.resolution.passes == 2


@pytest.mark.usefixtures("ten_classes_of_a_slice")
def test_an_event_during_a_pass_is_seen_by_what_it_still_comes_to_and_by_the_next_one() -> None:
    passes = Passes()
    some = some_sets(25)
    before = passes.have(*some)
    passes.lost.add(ONE)
    passes.refresh()
    passes.resolution.step()
    passes.session_lost(TWO)
    assert passes.have(*some) == [None] * 25
    passes.session_restored(ONE, TWO)
    assert passes.have(*some) == before


@pytest.mark.usefixtures("ten_classes_of_a_slice")
def test_a_class_that_comes_during_a_pass_keeps_its_set_from_being_moved() -> None:
    passes = Passes()
    some = some_sets(25)
    before = passes.have(*some)
    passes.lost.add(ONE)
    passes.refresh()
    passes.resolution.step()
    same = paths(internal("10.88.0.1", peer="10.88.0.2"), internal("10.88.0.20", peer="10.88.0.2"))
    assert passes.have(same) == before[:1]
    passes.resolution.step()
    passes.finish()
    assert before[0] not in passes.moves
    assert len(passes.moves) == 24


@pytest.mark.usefixtures("ten_classes_of_a_slice")
def test_a_class_whose_next_hops_are_looked_up_keeps_its_routes() -> None:
    """A host's VRF with another table: the kernel is to be queried again."""
    passes = Passes()
    (before,) = passes.have(BOTH)

    def lookup(_vrf: str, _address: bytes, *, neighbor: bool = False) -> HostRoute | None:
        del neighbor
        raise NotKnown(pending=True)

    passes.routing.lookup = lookup  # type: ignore[assignment,method-assign]
    passes.refresh()
    assert before not in passes.finish()
    assert passes.rules.of(BOTH, IPV4_UNICAST).pending


def test_routes_of_an_earlier_process_lose_next_hops_and_get_no_others() -> None:
    one, two = hops("10.88.0.1"), hops("10.88.0.2")
    both = (*one, *two)
    assert moves_of_earlier_routes({both: two}, remove=False) == {both: two}
    assert moves_of_earlier_routes({one: both}, remove=False) == {}
    assert moves_of_earlier_routes({one: two}, remove=True) == {}
    assert moves_of_earlier_routes({one: None}, remove=False) == {}
    assert moves_of_earlier_routes({one: None}, remove=True) == {one: None}
