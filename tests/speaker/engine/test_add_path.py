"""ADD-PATH (RFC 7911): several paths of a prefix, received, sent and withdrawn."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speaker.api import (
    AddPathMode,
    GracefulRestart,
    InstanceConfig,
    PeerConfig,
    RouteAttributes,
    RouteView,
)
from speaker.engine.inputs import BytesReceived, RemovePeer, SendUpdates, SetInstance
from speaker.iana import IPV4_UNICAST
from tests.speaker.network import INSTANCE, Host, Network
from tests.support.examples import examples

HUB, WATCHER = "10.0.0.1", "10.0.0.2"


def config(name: str, address: str, asn: int, **changes: object) -> PeerConfig:
    """An open peer."""
    values: dict[str, object] = {"import_": "all", "export": "all", **changes}
    return PeerConfig(name=name, address=address, peer_asn=asn, **values)  # type: ignore[arg-type]


def star(
    leaves: int, *, hub: AddPathMode = "send", watcher: AddPathMode = "receive"
) -> tuple[Network, Host, Host, list[Host]]:
    """Leaves that feed a hub, and a watcher with ADD-PATH."""
    network = Network()
    middle = network.host("hub", HUB, 65000)
    eye = network.host("eye", WATCHER, 64999)
    middle.peer(config("eye", WATCHER, 64999, passive=True, add_path=hub))
    eye.peer(config("hub", HUB, 65000, add_path=watcher))
    feeders = []
    for n in range(leaves):
        leaf = network.host(f"leaf{n}", f"10.0.1.{n + 1}", 65001 + n)
        middle.peer(config(leaf.name, leaf.address, 65001 + n, passive=True, add_path="send"))
        leaf.peer(config("hub", HUB, 65000))
        feeders.append(leaf)
    network.run(3)
    assert eye.status().established
    return network, middle, eye, feeders


def paths(host: Host) -> dict[str, list[str]]:
    """The AS paths of each prefix in the Adj-RIB-In."""
    found: dict[str, list[str]] = {}
    for route in host.engine.views.routes_received(INSTANCE, None, IPV4_UNICAST):
        found.setdefault(route.prefix, []).append(route.as_path)
    return {prefix: sorted(each) for prefix, each in found.items()}


def views(host: Host) -> list[RouteView]:
    """The Adj-RIB-In."""
    return list(host.engine.views.routes_received(INSTANCE, None, IPV4_UNICAST))


def test_rfc7911_all_paths_are_advertised_each_with_its_identifier() -> None:
    network, hub, eye, leaves = star(3)
    for leaf in leaves:
        leaf.routes({"10.8.0.0/24": RouteAttributes()})
    hub.routes({"10.8.0.0/24": RouteAttributes()})
    network.run(1)
    assert paths(eye) == {"10.8.0.0/24": ["65000", "65000 65001", "65000 65002", "65000 65003"]}
    assert len({route.path_id for route in views(eye)}) == 4
    assert eye.status().families[0].received == 4
    assert hub.status("eye").families[0].advertised == 4
    # One path is best, and the others have the reason why they are not.
    available = list(eye.engine.views.routes_available(INSTANCE, IPV4_UNICAST))
    assert [route.as_path for route in available if route.best] == ["65000"]
    assert {route.reason for route in available if not route.best} == {"longer AS path"}


def test_a_peer_is_not_sent_its_own_paths() -> None:
    network = Network()
    hub = network.host("hub", HUB, 65000)
    leaves = []
    for n in range(2):
        leaf = network.host(f"leaf{n}", f"10.0.1.{n + 1}", 65001 + n)
        hub.peer(config(leaf.name, leaf.address, 65001 + n, passive=True, add_path="both"))
        leaf.peer(config("hub", HUB, 65000, add_path="both"))
        leaves.append(leaf)
    network.run(3)
    for leaf in leaves:
        leaf.routes({"10.8.0.0/24": RouteAttributes()})
    network.run(1)
    assert paths(leaves[0]) == {"10.8.0.0/24": ["65000 65002"]}
    assert paths(leaves[1]) == {"10.8.0.0/24": ["65000 65001"]}
    assert hub.status("leaf0").families[0].advertised == 1


def test_a_path_that_is_not_best_is_advertised_and_withdrawn() -> None:
    network, hub, eye, leaves = star(2)
    hub.routes({"10.8.0.0/24": RouteAttributes()})
    network.run(1)
    leaves[1].routes({"10.8.0.0/24": RouteAttributes(med=7)})
    network.run(1)
    assert paths(eye) == {"10.8.0.0/24": ["65000", "65000 65002"]}
    leaves[1].routes({"10.8.0.0/24": RouteAttributes(communities=(9,))})
    network.run(1)
    (route,) = (r for r in views(eye) if r.as_path == "65000 65002")
    assert route.communities == ("0:9",)
    leaves[1].routes({"10.8.0.0/24": None})
    network.run(1)
    assert paths(eye) == {"10.8.0.0/24": ["65000"]}


def test_a_lost_session_withdraws_its_paths() -> None:
    network, hub, eye, leaves = star(2)
    for leaf in leaves:
        leaf.routes({f"10.8.{n}.0/24": RouteAttributes() for n in range(20)})
    network.run(1)
    hub.give(RemovePeer(INSTANCE, "leaf0"))
    network.run(1)
    assert set(map(tuple, paths(eye).values())) == {("65000 65002",)}
    assert len(paths(eye)) == 20


@pytest.mark.parametrize(("hub", "watcher"), [("none", "receive"), ("send", "none")])
def test_rfc7911_4_without_the_peers_capability_only_the_best_path_is_advertised(
    hub: AddPathMode, watcher: AddPathMode
) -> None:
    network, middle, eye, leaves = star(2, hub=hub, watcher=watcher)
    for leaf in leaves:
        leaf.routes({"10.8.0.0/24": RouteAttributes()})
    network.run(1)
    assert len(paths(eye)["10.8.0.0/24"]) == 1
    assert [route.path_id for route in views(eye)] == [None]
    del middle


def test_a_route_refresh_advertises_all_paths_again() -> None:
    network, _, eye, leaves = star(2)
    for leaf in leaves:
        leaf.routes({"10.8.0.0/24": RouteAttributes()})
    network.run(1)
    before = paths(eye)
    eye.refresh("hub")
    network.run(1)
    assert paths(eye) == before
    assert len(before["10.8.0.0/24"]) == 2


def test_a_changed_export_sends_the_difference() -> None:
    network, hub, eye, leaves = star(2)
    for leaf in leaves:
        leaf.routes({"10.8.0.0/24": RouteAttributes()})
    hub.routes({"10.8.0.0/24": RouteAttributes()})
    network.run(1)
    hub.peer(config("eye", WATCHER, 64999, passive=True, add_path="send", export="local"))
    network.run(1)
    assert paths(eye) == {"10.8.0.0/24": ["65000"]}
    hub.peer(config("eye", WATCHER, 64999, passive=True, add_path="send"))
    network.run(1)
    assert len(paths(eye)["10.8.0.0/24"]) == 3
    assert eye.status().flaps == 0


def test_routes_of_a_route_set_that_was_empty_have_path_identifiers() -> None:
    network = Network()
    hub, eye = network.host("hub", HUB, 65000), network.host("eye", WATCHER, 64999)
    settings = {"passive": True, "add_path": "send", "export": "set", "route_set": "later"}
    hub.peer(config("eye", WATCHER, 64999, **settings))
    eye.peer(config("hub", HUB, 65000, add_path="receive"))
    network.run(3)
    assert eye.status().established
    hub.routes({"10.8.0.0/24": RouteAttributes()}, "later")
    network.run(1)
    assert eye.status().flaps == 0
    assert [(route.prefix, route.path_id) for route in views(eye)] == [("10.8.0.0/24", 1)]


def test_paths_of_a_peer_that_restarts_are_kept_by_identifier() -> None:
    restart = GracefulRestart(restart_time=60)
    network = Network()
    hub, eye = network.host("hub", HUB, 65000), network.host("eye", WATCHER, 64999)
    hub.peer(config("eye", WATCHER, 64999, passive=True, add_path="send", graceful_restart=restart))
    eye.peer(config("hub", HUB, 65000, add_path="receive", graceful_restart=restart))
    hub.routes({"10.8.0.0/24": RouteAttributes()})
    network.run(10)
    for number in list(eye.ends):
        network.cut(eye, number)
        eye.give_closed(number)
    assert set(eye.available(IPV4_UNICAST)) == {"10.8.0.0/24"}
    network.run(10)
    assert eye.status().established
    assert paths(eye) == {"10.8.0.0/24": ["65000"]}
    network.run(100)
    assert paths(eye) == {"10.8.0.0/24": ["65000"]}


def test_unused_path_identifiers_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("speaker.rib.path_cache.MAX_ATTRIBUTE_SETS", 50)
    _, _, eye, _ = star(1)
    (member,) = eye.engine.instance(INSTANCE).established.values()
    number = next(iter(eye.ends))
    attributes = bytes.fromhex("4001010040020602010000fde8400304 0a000001")
    for path_id in range(1, 500):
        nlri = path_id.to_bytes(4, "big") + bytes.fromhex("180a0800")
        for body in (
            bytes(2) + len(attributes).to_bytes(2, "big") + attributes + nlri,
            len(nlri).to_bytes(2, "big") + nlri + bytes(2),
        ):
            header = b"\xff" * 16 + (19 + len(body)).to_bytes(2, "big") + b"\x02"
            eye.give(BytesReceived(number, header + body))
    assert eye.status().established
    assert paths(eye) == {}
    assert eye.available(IPV4_UNICAST) == {}
    assert len(member.adj_in.path_ids.sources) <= 51


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_after_any_changes_the_add_path_peer_has_the_paths_of_the_hub(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311  a seed, no secret
    network, hub, eye, leaves = star(3)
    prefixes = [f"10.8.{n}.0/24" for n in range(6)]
    for _ in range(30):
        speaker = rng.choice([*leaves, hub])
        attributes = rng.choice([None, RouteAttributes(), RouteAttributes(med=rng.randrange(3))])
        chosen = rng.sample(prefixes, rng.randrange(1, 6))
        speaker.routes(dict.fromkeys(chosen, attributes))
        if rng.random() < 0.5:
            network.run(0.01)
        if rng.random() < 0.1:
            leaf = rng.choice(leaves)
            for number in list(leaf.ends):
                network.cut(leaf, number)
                leaf.give_closed(number)
    network.run(60)
    expected: dict[str, list[str]] = {}
    for route in hub.engine.views.routes_available(INSTANCE, IPV4_UNICAST):
        expected.setdefault(route.prefix, []).append(f"65000 {route.as_path}".strip())
    assert paths(eye) == {prefix: sorted(each) for prefix, each in expected.items()}
    assert hub.status("eye").families[0].advertised == len(views(eye))


def test_a_recreated_instance_has_no_pending_add_path_changes() -> None:
    network = Network()
    hub = network.host("hub", "10.0.0.1", 65000)
    eye = network.host("eye", "10.0.0.2", 64999)
    options = {"passive": True, "export": "set", "route_set": "s", "add_path": "send"}
    hub.peer(config("eye", "10.0.0.2", 64999, **options))
    eye.peer(config("hub", "10.0.0.1", 65000, add_path="receive"))
    hub.routes({"10.8.0.0/24": RouteAttributes()}, "s")
    network.run(3)
    assert list(eye.received(IPV4_UNICAST)) == ["10.8.0.0/24"]
    eye.listens = False
    for connection in list(eye.ends):
        network.cut(eye, connection)
    network.run(1)
    another = InstanceConfig(name=INSTANCE, local_asn=65000, router_id="10.0.0.99")
    hub.give(SetInstance(another))
    hub.routes({"10.9.0.0/24": RouteAttributes()}, "s")
    hub.give(SendUpdates())
    assert not hub.engine.updates_pending
