"""The views of the RIBs, limited to some prefixes: equal to the whole view, filtered."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from types import FrameType

import pytest

from speaker.api import (
    Match,
    PeerConfig,
    PeerCounts,
    PeerStatus,
    Policy,
    PrefixRule,
    RouteAttributes,
    RouteView,
    Term,
    UnknownName,
)
from speaker.engine import Engine
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST
from speaker.nlri import Family, prefix_to_wire
from speaker.rib.path import Path
from tests.speaker.network import INSTANCE, Host, Network

HUB = "10.0.0.1"
PREFIXES = ("0.0.0.0/0", "10.0.0.0/8", "10.8.0.0/16", "10.8.1.0/24", "10.9.0.0/16", "fd00::/64")
ABSENT = ("10.8.0.0/15", "10.8.1.1/32", "fd00::/65")
LOOPED = "10.7.0.0/16"
TENS = Policy(terms=(Term(match=Match(prefixes=(PrefixRule("10.0.0.0/8", le=32),))),))


def peer(name: str, address: str, asn: int, **changes: object) -> PeerConfig:
    values: dict[str, object] = {"import_": "all", "export": "all", "add_path": "both", **changes}
    return PeerConfig(name=name, address=address, peer_asn=asn, **values)  # type: ignore[arg-type]


def lab(**hub_options: object) -> Host:
    """A hub with routes of its own and of two peers, and with a peer that has a route set."""
    network = Network()
    hub = network.host("hub", HUB, 65000)
    leaves = []
    for n in range(2):
        leaf = network.host(f"leaf{n}", f"10.0.1.{n + 1}", 65001 + n)
        hub.peer(peer(leaf.name, leaf.address, 65001 + n, passive=True, **hub_options))
        leaf.peer(peer("hub", HUB, 65000))
        leaves.append(leaf)
    watcher = network.host("watcher", "10.0.1.9", 65009)
    hub.peer(peer("watcher", watcher.address, 65009, passive=True, route_set="s", import_="none"))
    watcher.peer(peer("hub", HUB, 65000))
    # Its AS is that of the hub: ineligible there (RFC 4271 section 9.1.2).
    twin = network.host("twin", "10.0.1.8", 65000)
    leaves[0].peer(peer("twin", twin.address, 65000, passive=True))
    twin.peer(peer("leaf0", leaves[0].address, 65001))
    network.run(3)
    attributes = RouteAttributes(med=5)
    for place, host in enumerate((hub, *leaves)):
        host.routes(dict.fromkeys(PREFIXES[place:], attributes))
    hub.routes(dict.fromkeys(PREFIXES[::2], RouteAttributes(communities=(65000 << 16 | 1,))), "s")
    watcher.routes({PREFIXES[3]: attributes})
    twin.routes({LOOPED: attributes})
    network.run(2)
    return hub


def tables(
    engine: Engine, family: Family, prefixes: Iterable[bytes] | None
) -> dict[str, list[RouteView]]:
    """The three views; those by peer for every peer alone."""
    # Each view consumes its prefixes.
    wanted = None if prefixes is None else list(prefixes)
    found = {"available": list(engine.views.routes_available(INSTANCE, family, wanted))}
    for name in ("leaf0", "leaf1", "watcher"):
        found[f"advertised {name}"] = list(
            engine.views.routes_advertised(INSTANCE, name, family, wanted)
        )
        found[f"received {name}"] = list(
            engine.views.routes_received(INSTANCE, name, family, wanted)
        )
    return found


@pytest.mark.parametrize(
    "options",
    [
        {"add_path": "none"},
        {"add_path": "both"},
        {"add_path": "none", "import_": TENS},
        {"add_path": "both", "import_": TENS},
        {"import_": "none"},
        {"export": "none"},
        {"add_path": "none", "export_policy": TENS},
        {"add_path": "both", "export_policy": TENS},
    ],
)
def test_a_view_of_some_prefixes_is_the_whole_view_filtered(options: dict[str, object]) -> None:
    engine = lab(**options).engine
    for family in (IPV4_UNICAST, IPV6_UNICAST):
        whole = tables(engine, family, None)
        assert whole["available"]
        if family == IPV4_UNICAST:
            assert LOOPED in {view.prefix for view in whole["received leaf0"]}
            assert LOOPED not in {view.prefix for view in whole["available"]}
        for text in (*PREFIXES, *ABSENT, LOOPED):
            of, nlri = prefix_to_wire(text)
            if of != family:
                continue
            assert tables(engine, family, [nlri]) == {
                name: [view for view in views if view.prefix == text]
                for name, views in whole.items()
            }


def test_routes_come_in_the_order_of_the_prefixes() -> None:
    engine = lab().engine
    texts = ["10.8.1.0/24", "10.8.1.1/32", "0.0.0.0/0", "10.8.0.0/16"]
    wanted = [prefix_to_wire(text)[1] for text in texts]
    for name, views in tables(engine, IPV4_UNICAST, wanted).items():
        found = list(dict.fromkeys(view.prefix for view in views))
        assert found == [text for text in texts if text in found], name
    assert {
        view.prefix for view in engine.views.routes_available(INSTANCE, IPV4_UNICAST, wanted)
    } == {
        texts[0],
        texts[2],
        texts[3],
    }


def test_a_route_of_a_peer_alone_is_not_originated() -> None:
    hub = lab()
    hub.routes({PREFIXES[2]: None})
    views = hub.engine.views
    (_, known), (_, of_peers), (_, absent) = (
        prefix_to_wire(text) for text in (PREFIXES[1], PREFIXES[2], ABSENT[0])
    )
    assert list(views.routes_available(INSTANCE, IPV4_UNICAST, [of_peers]))
    found = [views.originates(INSTANCE, IPV4_UNICAST, nlri) for nlri in (known, of_peers, absent)]
    assert found == [True, False, False]


def test_a_view_is_read_in_slices_between_which_the_tables_may_change() -> None:
    hub = lab(add_path="none")
    own = {f"10.{100 + (n >> 8)}.{n & 255}.0/24": RouteAttributes() for n in range(1000)}
    leaf = hub.network.hosts["10.0.1.1"]
    hub.routes(own)
    leaf.routes({prefix.replace("10.", "172.", 1): one for prefix, one in own.items()})
    hub.network.run(2)
    views = {
        "available": hub.engine.views.routes_available(INSTANCE, IPV4_UNICAST),
        "advertised": hub.engine.views.routes_advertised(INSTANCE, "leaf1", IPV4_UNICAST),
        "received": hub.engine.views.routes_received(INSTANCE, "leaf0", IPV4_UNICAST),
    }
    first = {name: next(view.slices) for name, view in views.items()}
    assert all(0 < len(routes) <= 300 for routes in first.values())
    gone = list(own)[500:]
    hub.routes(dict.fromkeys(gone))
    leaf.routes(dict.fromkeys(prefix.replace("10.", "172.", 1) for prefix in gone))
    hub.routes({"10.200.0.0/16": RouteAttributes()})
    hub.network.run(2)
    for name, view in views.items():
        slices = [first[name], *view.slices]
        assert max(map(len, slices)) <= 300
        shown = [route.prefix for routes in slices for route in routes]
        later = [route.prefix for routes in slices[1:] for route in routes]
        held = {prefix for prefix in (*own, *PREFIXES) if prefix not in gone}
        if name == "received":
            held = {prefix.replace("10.", "172.", 1) for prefix in own if prefix not in gone}
        # All that stayed, nothing twice, and nothing that is gone.
        stayed = [prefix for prefix in shown if prefix in held]
        assert set(stayed) >= held - {"fd00::/64"}
        assert len(later) == len(set(later)) or name == "available"
        withdrawn = {*gone, *(prefix.replace("10.", "172.", 1) for prefix in gone)}
        assert not withdrawn & set(later)


def test_the_paths_of_one_peer_are_selected_by_the_table() -> None:
    hub = lab(add_path="both")
    every = list(hub.engine.views.routes_available(INSTANCE, IPV4_UNICAST))
    for name in ("leaf0", "leaf1", "watcher"):
        found = list(hub.engine.views.routes_available(INSTANCE, IPV4_UNICAST, peer=name))
        assert found == [route for route in every if route.peer == name]
    assert {route.peer for route in every} == {None, "leaf0", "leaf1"}
    with pytest.raises(UnknownName):
        hub.engine.views.routes_available(INSTANCE, IPV4_UNICAST, peer="absent")


def test_a_listing_decodes_nothing_for_good() -> None:
    network = Network()
    hub, leaf = network.host("hub", HUB, 65000), network.host("leaf", "10.0.1.1", 65001)
    hub.peer(peer("leaf", leaf.address, 65001, passive=True, add_path="none", export="none"))
    leaf.peer(peer("hub", HUB, 65000, add_path="none"))
    leaf.routes({"172.16.0.0/24": RouteAttributes(med=5)})
    network.run(3)
    instance = hub.engine.instance(INSTANCE)
    (established,) = instance.established.values()
    attributes = leaf.engine.instance(INSTANCE).outbound.loc.tables[IPV4_UNICAST]
    ((_, (sent,)),) = attributes.items()
    undecoded = Path(None, established.source, None, 0, b"field", lambda _: sent.attributes)
    established.adj_in.announce(IPV4_UNICAST, undecoded, [prefix_to_wire("172.16.1.0/24")[1]])
    for view in (
        hub.engine.views.routes_received(INSTANCE, "leaf", IPV4_UNICAST),
        hub.engine.views.routes_available(INSTANCE, IPV4_UNICAST),
    ):
        assert [route.med for route in view] == [5, 5]
        assert undecoded.encoded
    assert undecoded.attributes == sent.attributes
    assert not undecoded.encoded


def test_of_a_prefix_that_this_router_originates_one_path_is_the_best() -> None:
    network = Network()
    hub, leaf = network.host("hub", HUB, 65000), network.host("leaf", "10.0.1.1", 65001)
    hub.peer(peer("leaf", leaf.address, 65001, passive=True, add_path="none", route_set="s"))
    leaf.peer(peer("hub", HUB, 65000, add_path="none"))
    prefix = "172.16.0.0/24"
    leaf.routes({prefix: RouteAttributes()})
    network.run(3)

    def paths() -> list[tuple[str | None, bool, str]]:
        views = hub.engine.views.routes_available(
            INSTANCE, IPV4_UNICAST, [prefix_to_wire(prefix)[1]]
        )
        return [(view.peer, view.best, view.reason) for view in views]

    assert paths() == [("leaf", True, "best")]
    # Advertised to the peers of the set alone, as routes of Services.
    hub.routes({prefix: RouteAttributes(med=1)}, "s")
    preferred = ("leaf", False, "a route of this router is preferred")
    assert paths() == [preferred, (None, True, "best")]
    hub.routes({prefix: RouteAttributes(med=2)}, "t")
    in_place = (None, False, "advertised in place of the best path to some peers")
    assert paths() == [preferred, (None, True, "best"), in_place]
    # By the instance itself, as prefixes of an FRRConfiguration.
    hub.routes({prefix: RouteAttributes()})
    assert paths() == [(None, True, "best"), preferred, in_place, in_place]


@pytest.mark.parametrize("options", [{}, {"import_": TENS}, {"keep_received": False}])
def test_the_counts_of_a_session_are_the_sums_of_its_status(options: dict[str, object]) -> None:
    hub = lab(**options)
    hub.peer(peer("absent", "10.0.1.77", 65077))

    def sums(status: PeerStatus) -> PeerCounts:
        families, up = status.families, status.established
        return PeerCounts(
            instance=status.instance,
            name=status.name,
            received=sum(family.received for family in families) if up else None,
            advertised=sum(family.advertised for family in families) if up else None,
            updates_received=status.updates_received,
            updates_sent=status.updates_sent,
        )

    views = hub.engine.views
    counts = views.peer_counts()
    assert counts == [sums(status) for status in views.peers(hub.network.now)]
    by_name = {item.name: (item.received, item.advertised) for item in counts}
    assert by_name["absent"] == (None, None)
    assert all(by_name["leaf0"]), "it has sent routes, and is sent some"


def test_the_counts_of_a_session_take_three_calls_for_each_family() -> None:
    hub = lab()
    called: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        called[frame.f_code.co_qualname] += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        of_sessions = hub.engine.views.peer_counts()
    finally:
        sys.setprofile(before)
    assert all(item.advertised is not None for item in of_sessions)
    families = sum(len(of.families) for of in hub.engine.views.peers(hub.network.now))
    assert max(called.values()) == families > len(of_sessions)
    assert [number for number in called.values() if number > 1] == [families] * 3
