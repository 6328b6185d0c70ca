"""A route set is removed in steps: its members keep what is announced meanwhile, and nothing else."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from speaker.api import RouteAttributes
from speaker.engine.configuration import ConfigurationReads
from speaker.engine.inputs import (
    RemovePeer,
    RemoveRouteSet,
    SendUpdates,
    SetInstance,
    Shutdown,
    UpdateRoutes,
)
from speaker.engine.instance import route_sets
from speaker.engine.sliced_work import SlicedWork, Steps
from speaker.iana import IPV4_UNICAST
from speaker.nlri import parsed_prefix
from speaker.recording import Player
from tests.speaker.engine.small_steps import set_small_steps
from tests.speaker.engine.test_group_changes import MOST, PREFIXES, Lab, seen
from tests.speaker.network import INSTANCE

OTHER = "10.250.0.0/16"
SETS = {"export": "set", "route_set": "one"}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    set_small_steps(monkeypatch)
    monkeypatch.setattr(route_sets, "STEP_ROUTES", 7)


def removing(*, add_path: bool = False, record: bool = False) -> Lab:
    """Return a lab whose route set is being removed: some steps are performed, some are left."""
    lab = Lab(add_path=add_path, record=record, export="set", route_set="one")
    lab.hub.routes(dict.fromkeys(PREFIXES, RouteAttributes()), "one")
    lab.network.run(1)
    lab.hub.writes.clear()
    lab.hub.give(RemoveRouteSet(INSTANCE, "one"))
    lab.hub.give(SendUpdates())
    assert 0 < held(lab) < len(PREFIXES)
    return lab


def held(lab: Lab) -> int:
    """Return the number of routes that the set has."""
    ribs = lab.hub.engine.instance(INSTANCE).outbound.route_sets.tables.get("one")
    return 0 if ribs is None else sum(map(len, ribs.tables.values()))


def prefixes(lab: Lab) -> list[str]:
    """Return what the watcher has."""
    return [prefix for prefix, *_ in seen(lab.watchers[0])]


def reads(lab: Lab) -> ConfigurationReads:
    return ConfigurationReads(lab.hub.engine)


def settled(lab: Lab) -> None:
    """Check that no removal is left, and that nothing failed."""
    assert not lab.hub.engine.instance(INSTANCE).outbound.route_sets.removals
    assert not [event for event in lab.hub.events if type(event).__name__ == "Fault"]


@pytest.mark.parametrize("add_path", [False, True], ids=["best paths", "ADD-PATH"])
def test_no_turn_withdraws_more_than_a_few_prefixes(*, add_path: bool) -> None:
    lab = removing(add_path=add_path)
    left, turns = held(lab), 0
    while lab.hub.engine.updates_pending:
        lab.hub.give(SendUpdates())
        assert left - held(lab) <= MOST
        left, turns = held(lab), turns + 1
    assert left == 0
    assert turns > 2
    lab.network.run(1)
    assert prefixes(lab) == []
    settled(lab)


def test_reads_of_the_configuration_show_what_remains() -> None:
    lab = removing()
    kept = PREFIXES[3]
    (family, nlri), (_, other) = parsed_prefix(kept), parsed_prefix(PREFIXES[4])
    assert reads(lab).route_sets(INSTANCE) == ["two"]
    assert reads(lab).route_set_prefixes(INSTANCE, "one") is None
    assert reads(lab).routes_of_set(INSTANCE, "one", {family: [nlri]}) is None
    lab.hub.routes({kept: RouteAttributes(med=7)}, "one")
    assert set(reads(lab).route_sets(INSTANCE)) == {"one", "two"}
    assert reads(lab).route_set_prefixes(INSTANCE, "one") == {IPV4_UNICAST: [nlri]}
    assert reads(lab).routes_of_set(INSTANCE, "one", {family: [nlri, other]}) == {
        IPV4_UNICAST: {nlri: RouteAttributes(med=7), other: None}
    }
    lab.network.run(1)
    assert prefixes(lab) == [kept]
    assert list(reads(lab).route_set_prefixes(INSTANCE, "one") or ()) == [IPV4_UNICAST]
    settled(lab)


def test_a_second_removal_removes_what_came_after_the_first_one() -> None:
    lab = removing()
    lab.hub.routes({OTHER: RouteAttributes(), PREFIXES[-1]: RouteAttributes(med=7)}, "one")
    lab.hub.give(RemoveRouteSet(INSTANCE, "one"))
    lab.hub.routes({PREFIXES[0]: RouteAttributes()}, "one")
    lab.network.run(1)
    assert prefixes(lab) == [PREFIXES[0]]
    settled(lab)


def test_a_set_without_peers_is_gone_at_the_end_unless_it_is_filled_anew() -> None:
    lab = Lab()
    sets = lab.hub.engine.instance(INSTANCE).outbound.route_sets
    lab.hub.give(RemoveRouteSet(INSTANCE, "one"))
    lab.hub.give(RemoveRouteSet(INSTANCE, "two"))
    lab.hub.routes({OTHER: RouteAttributes()}, "two")
    lab.network.run(1)
    assert list(sets.tables) == ["two"]
    assert list(reads(lab).route_set_prefixes(INSTANCE, "two") or {}) == [IPV4_UNICAST]
    assert len(sets.tables["two"][IPV4_UNICAST]) == 1
    settled(lab)


def test_another_router_has_the_set_without_what_was_being_removed() -> None:
    lab = removing()
    lab.hub.routes({OTHER: RouteAttributes()}, "one")
    config = lab.hub.engine.instance(INSTANCE).config
    lab.hub.give(SetInstance(replace(config, router_id="10.0.0.77")))
    lab.network.run(90)
    assert lab.hub.status("w0").established
    assert prefixes(lab) == [OTHER]
    lab.hub.routes({PREFIXES[0]: RouteAttributes()}, "one")
    lab.network.run(1)
    assert prefixes(lab) == [PREFIXES[0], OTHER]
    settled(lab)


def test_a_table_that_waited_takes_no_changes_from_another_router(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab = Lab(export="set", route_set="one")
    lab.hub.routes(dict.fromkeys(PREFIXES, RouteAttributes()), "one")
    lab.network.run(1)
    waiting: list[Steps] = []
    with monkeypatch.context() as patch:
        # A busy speaker performs the steps of other tables meanwhile.
        patch.setattr(SlicedWork, "add", lambda _, steps, **_kind: waiting.append(steps))
        lab.watch()
        lab.network.run(5)
    (steps,) = waiting
    config = lab.hub.engine.instance(INSTANCE).config
    lab.hub.give(SetInstance(replace(config, router_id="10.0.0.77")))
    lab.network.run(90)
    assert OTHER not in prefixes(lab)
    (family, nlri) = parsed_prefix(OTHER)
    change = UpdateRoutes(INSTANCE, "one", {family: {nlri: RouteAttributes()}})
    lab.hub.engine.handle(change, lab.network.now)
    for _ in steps:
        pass
    lab.network.run(1)
    assert OTHER in prefixes(lab)


@pytest.mark.parametrize(
    "end",
    [
        lambda lab: lab.lose(lab.watchers[0]),
        lambda lab: lab.hub.give(RemovePeer(INSTANCE, "w0")),
        lambda lab: lab.hub.give(Shutdown()),
    ],
    ids=["session ends", "peer is removed", "shutdown"],
)
def test_the_steps_outlive_a_session_and_end_with_the_speaker(
    end: Callable[[Lab], object],
) -> None:
    lab = removing()
    end(lab)
    lab.network.run(90)
    assert not lab.hub.engine.updates_pending
    settled(lab)
    assert prefixes(lab) == []


def test_a_session_that_comes_in_between_has_none_of_the_routes_in_the_end() -> None:
    lab = removing()
    newcomer = lab.watch()
    lab.network.run(30)
    assert lab.hub.status(newcomer.name).established
    assert seen(newcomer) == []
    settled(lab)


def test_a_recording_replays_a_removal() -> None:
    lab = removing(record=True)
    lab.hub.routes({PREFIXES[0]: RouteAttributes()}, "one")
    lab.network.run(5)
    recorder = lab.hub.recorder
    assert recorder is not None
    recorder.finish(lab.network.now)
    player = Player(lab.hub.lines)
    for _ in player.play():
        pass
    assert player.difference is None


@pytest.mark.parametrize("add_path", [False, True], ids=["best paths", "ADD-PATH"])
@pytest.mark.parametrize("seed", range(12))
def test_whatever_changes_meanwhile_the_set_has_what_was_announced_since(
    seed: int, *, add_path: bool
) -> None:
    lab = Lab(seed, 2, add_path=add_path, export="set", route_set="one")
    rng = random.Random(seed)  # noqa: S311  a test
    lab.hub.routes(dict.fromkeys(PREFIXES, RouteAttributes()), "one")
    lab.network.run(1)
    expected = set(PREFIXES)
    for _ in range(60):
        match rng.randrange(6):
            case 0:
                lab.hub.give(RemoveRouteSet(INSTANCE, "one"))
                expected = set()
            case 1:
                lab.lose(rng.choice(lab.watchers))
            case 2:
                settings = rng.choice([SETS, {**SETS, "next_hop_ipv4": "10.0.0.99"}])
                lab.change_settings(settings, lab.watchers)
            case _:
                some = rng.sample(PREFIXES, 20)
                attributes = rng.choice([None, lab.attributes()])
                lab.hub.routes(dict.fromkeys(some, attributes), "one")
                expected = expected - set(some) if attributes is None else expected | set(some)
        for _ in range(rng.randrange(3)):
            lab.hub.give(SendUpdates())
    lab.network.run(90)
    assert set(prefixes(lab)) == expected
    settled(lab)
    lab.check()
