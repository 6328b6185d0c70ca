"""Route sets and update groups: compared once, encoded once, sent exactly."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from speaker.api import PeerConfig, RouteAttributes
from speaker.engine.inputs import BytesReceived, RemoveRouteSet
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST
from speaker.message import KEEPALIVE
from speaker.peer.actions import Write
from tests.speaker.network import INSTANCE, Host, Network
from tests.speaker.raw import Raw
from tests.support.examples import examples

HUB = "10.0.0.1"


def star(leaves: int, **options: object) -> tuple[Network, Host, list[Host]]:
    """A hub with leaves that connect to it."""
    network = Network()
    hub = network.host("hub", HUB, 65000)
    hosts = []
    for n in range(leaves):
        leaf = network.host(f"leaf{n}", f"10.0.1.{n + 1}", 65001 + n)
        settings_: dict[str, object] = {"route_set": "s", "import_": "all", **options}
        hub.peer(
            PeerConfig(
                name=leaf.name,
                address=leaf.address,
                peer_asn=65001 + n,
                passive=True,
                **settings_,  # type: ignore[arg-type]
            )
        )
        leaf.peer(PeerConfig(name="hub", address=HUB, peer_asn=65000, import_="all", export="all"))
        hosts.append(leaf)
    network.run(3)
    assert all(leaf.status().established for leaf in hosts)
    return network, hub, hosts


def test_the_same_octets_object_goes_to_every_peer_of_a_set() -> None:
    network, hub, leaves = star(10)
    hub.writes.clear()
    hub.routes({f"10.8.{n}.0/24": RouteAttributes() for n in range(250)}, "s")
    network.run(0.1)
    assert len(hub.writes) == len(leaves)
    assert len({id(part) for write in hub.writes for part in write.parts}) == 1
    assert {write.prefixes for write in hub.writes} == {250}


def test_a_session_that_comes_up_gets_the_same_cached_octets_as_the_others() -> None:
    network = Network()
    hub = network.host("hub", HUB, 65000)
    hub.routes({f"10.8.{n}.0/24": RouteAttributes() for n in range(250)}, "s")
    for n in range(5):
        leaf = network.host(f"leaf{n}", f"10.0.1.{n + 1}", 65001 + n)
        hub.peer(
            PeerConfig(name=leaf.name, address=leaf.address, peer_asn=65001 + n, passive=True,
                       route_set="s")
        )  # fmt: skip
        leaf.peer(PeerConfig(name="hub", address=HUB, peer_asn=65000, import_="all"))
    network.run(3)
    tables = [part for write in hub.writes if write.prefixes for part in write.parts]
    assert len(tables) == 5
    assert len(set(map(id, tables))) == 1


def test_unchanged_routes_cost_nothing_on_the_wire() -> None:
    network, hub, _ = star(2)
    hub.routes({"10.8.0.0/24": RouteAttributes(), "10.9.0.0/24": RouteAttributes()}, "s")
    network.run(0.1)
    hub.writes.clear()
    hub.routes({"10.8.0.0/24": RouteAttributes(), "10.7.0.0/24": None}, "s")
    hub.routes({"10.9.0.0/24": None}, "s")
    hub.routes({"10.9.0.0/24": RouteAttributes()}, "s")
    network.run(0.1)
    assert [write for write in hub.writes if write.prefixes] == []


def test_one_changed_route_is_one_small_message_per_peer() -> None:
    network, hub, _ = star(3)
    hub.routes({f"10.8.{n}.0/24": RouteAttributes() for n in range(250)}, "s")
    network.run(0.1)
    hub.writes.clear()
    hub.routes({"10.8.7.0/24": RouteAttributes(med=5)}, "s")
    network.run(0.01)
    assert [(write.prefixes, len(b"".join(write.parts)) < 100) for write in hub.writes] == [
        (1, True)
    ] * 3


def test_a_removed_route_set_is_withdrawn() -> None:
    network, hub, leaves = star(2)
    hub.routes({"10.8.0.0/24": RouteAttributes(), "fd00::/64": RouteAttributes()}, "s")
    network.run(0.1)
    assert all(leaf.received(IPV6_UNICAST) for leaf in leaves)
    hub.give(RemoveRouteSet(INSTANCE, "s"))
    network.run(0.1)
    assert not any(leaf.received(IPV4_UNICAST) for leaf in leaves)
    assert not any(leaf.received(IPV6_UNICAST) for leaf in leaves)
    hub.routes({"10.8.0.0/24": RouteAttributes()}, "s")
    network.run(0.1)
    assert all(leaf.received(IPV4_UNICAST) for leaf in leaves)


def test_the_advertised_count_follows_the_updates() -> None:
    network, hub, _ = star(2)
    hub.routes({f"10.8.{n}.0/24": RouteAttributes() for n in range(9)}, "s")
    network.run(0.1)
    hub.routes({"10.8.0.0/24": None, "10.8.1.0/24": RouteAttributes(med=1)}, "s")
    network.run(0.1)
    assert [s.families[0].advertised for s in hub.engine.views.peers(network.now)] == [8, 8]
    assert len(list(hub.engine.views.routes_advertised(INSTANCE, "leaf0", IPV4_UNICAST))) == 8


def test_a_peer_is_not_sent_its_own_routes_and_all_others_are() -> None:
    network, hub, leaves = star(3, export="all", route_set=None)
    leaves[0].routes({"10.5.0.0/16": RouteAttributes()})
    network.run(0.5)
    assert "10.5.0.0/16" not in leaves[0].received(IPV4_UNICAST)
    assert all("10.5.0.0/16" in leaf.received(IPV4_UNICAST) for leaf in leaves[1:])
    # A better path from another peer: now the first one is sent it, and the new source is not.
    hub.routes({"10.5.0.0/16": RouteAttributes()})
    network.run(0.5)
    assert all("10.5.0.0/16" in leaf.received(IPV4_UNICAST) for leaf in leaves)
    hub.routes({"10.5.0.0/16": None})
    network.run(0.5)
    assert "10.5.0.0/16" not in leaves[0].received(IPV4_UNICAST)
    assert all("10.5.0.0/16" in leaf.received(IPV4_UNICAST) for leaf in leaves[1:])


def test_a_lost_session_withdraws_its_routes_everywhere() -> None:
    network, _, leaves = star(3, export="all", route_set=None)
    leaves[0].routes({"10.5.0.0/16": RouteAttributes()})
    network.run(0.5)
    for connection in list(leaves[0].ends):
        network.cut(leaves[0], connection)
    network.run(0.1)
    assert not any(leaf.received(IPV4_UNICAST) for leaf in leaves)


PREFIXES = [f"10.{n}.0.0/16" for n in range(6)]


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.sampled_from(PREFIXES),
            st.sampled_from([None, RouteAttributes(), RouteAttributes(med=3)]),
            st.booleans(),
        ),
        max_size=30,
    ),
    st.integers(0, 2**16),
)
def test_after_quiescence_every_peer_holds_the_adj_rib_out_of_the_hub(
    steps: list[tuple[int, str, RouteAttributes | None, bool]], seed: int
) -> None:
    network, hub, leaves = star(3, export="all", route_set=None)
    speakers = [*leaves, hub]
    rng = random.Random(seed)  # noqa: S311  a seed, no secret
    for name, prefix, attributes, settle in steps:
        speakers[name].routes({prefix: attributes})
        if settle:
            network.run(rng.random() / 100)
    network.run(1)
    for leaf in leaves:
        held = {prefix: r.as_path for prefix, r in leaf.received(IPV4_UNICAST).items()}
        advertised = {
            r.prefix: r.as_path
            for r in hub.engine.views.routes_advertised(INSTANCE, leaf.name, IPV4_UNICAST)
        }
        assert held == advertised
        status = next(s for s in hub.engine.views.peers(network.now) if s.name == leaf.name)
        assert status.families[0].advertised == len(held)
        best = hub.available(IPV4_UNICAST)
        assert set(held) == {p for p, r in best.items() if r.peer != leaf.name}


def test_each_peer_gets_one_write_per_send_updates() -> None:
    network, hub, leaves = star(4)
    hub.writes.clear()
    hub.routes({"10.8.0.0/24": RouteAttributes(), "fd00::/64": RouteAttributes(med=2)}, "s")
    network.run(0.001)
    assert len([w for w in hub.writes if isinstance(w, Write) and w.prefixes]) == len(leaves)


def test_the_initial_table_is_sent_once_end_of_rib_is() -> None:
    raw = Raw(export="all")
    assert not raw.status.initial_table_sent
    raw.to_open_confirm()
    raw.engine_only(BytesReceived(raw.connection, KEEPALIVE))
    assert raw.status.established
    assert not raw.status.initial_table_sent
    raw.flush()
    assert raw.status.initial_table_sent
    raw.drop()
    assert not raw.status.initial_table_sent
