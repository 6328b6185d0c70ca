"""RIBs rebuilt from BMP equal the speaker's, after announcements, withdrawals, flaps and restarts.

Random networks in virtual time. The station connects at any moment, so that tables are dumped while
they change.
"""

from __future__ import annotations

import random

import pytest

from speaker.api import (
    GracefulRestart,
    Match,
    PeerConfig,
    Policy,
    PrefixRule,
    RouteAttributes,
    Set,
    Term,
)
from speaker.engine.inputs import ResetPeer, SendUpdates, SetPeer
from speaker.engine.instance import Instance
from speaker.nlri import IPV4_UNICAST, prefix_to_text
from tests.speaker.engine.monitoring import collector
from tests.speaker.engine.monitoring.collector import Collector, assert_same
from tests.speaker.network import INSTANCE, Host, Network
from tests.support.bmp import Station

HUB = "10.0.0.1"
POLICY = Policy(
    terms=(
        Term(match=Match(prefixes=(PrefixRule("10.1.0.0/16", le=32),)), action="reject"),
        Term(match=Match(communities=("65001:7",)), set=Set(local_preference=7, prepend=(65099,))),
        Term(set=Set(add_communities=("65000:1",))),
    )
)
IMPORTS = ("all", "none", POLICY, (PrefixRule("10.2.0.0/16", le=32),))


def attributes(rng: random.Random) -> RouteAttributes:
    return RouteAttributes(
        med=rng.choice([None, 5]),
        communities=tuple(rng.sample([0xFDE90007, 0xFDE90008], rng.randint(0, 2))),
        large_communities=((65001, 1, 2),) if rng.random() < 0.3 else (),
    )


def prefix(rng: random.Random) -> str:
    if rng.random() < 0.3:
        return f"fd00:{rng.randint(0, 9)}::/32"
    return f"10.{rng.randint(1, 3)}.{rng.randint(0, 19)}.0/24"


def build(network: Network, rng: random.Random) -> tuple[Host, list[Host]]:
    """A hub with leaves, some of them with ADD-PATH, some with graceful restart."""
    hub = network.host("hub", HUB, 65000)
    leaves = []
    for n in range(3):
        leaf = network.host(f"leaf{n}", f"10.0.1.{n + 1}", 65001 + n)
        shared = {
            "export": "all",
            "add_path": rng.choice(["none", "both"]),
            "graceful_restart": rng.choice([None, GracefulRestart(restart_time=30)]),
        }
        hub.peer(
            PeerConfig(
                name=leaf.name, address=leaf.address, peer_asn=65001 + n, passive=True,
                import_=rng.choice(IMPORTS), **shared,  # type: ignore[arg-type]
            )
        )  # fmt: skip
        leaf.peer(
            PeerConfig(
                name="hub",
                address=HUB,
                peer_asn=65000,
                import_="all",
                connect_retry_time=1,
                **shared,  # type: ignore[arg-type]
            )
        )
        leaves.append(leaf)
    return hub, leaves


def instance_of(host: Host) -> Instance:
    return host.engine.instance(INSTANCE)


def settle(network: Network, host: Host, seconds: float) -> None:
    """Let time pass, and let the engine do what it does once per turn of the loop."""
    network.run(seconds)
    while host.engine.updates_pending:
        host.give(SendUpdates())


def step(network: Network, rng: random.Random, hub: Host, leaves: list[Host]) -> None:
    leaf = rng.choice(leaves)
    match rng.randint(0, 9):
        case 0 | 1 | 2 | 3:
            leaf.routes({prefix(rng): attributes(rng) for _ in range(rng.randint(1, 12))})
        case 4 | 5:
            leaf.routes({prefix(rng): None for _ in range(rng.randint(1, 12))})
        case 6:
            hub.routes({prefix(rng): rng.choice([None, attributes(rng)])})
        case 7:
            peer = instance_of(hub).peer(leaf.name)
            values = {f: getattr(peer.config, f) for f in peer.config.__struct_fields__}
            values["import_"] = rng.choice(IMPORTS)
            hub.give(SetPeer(INSTANCE, PeerConfig(**values)))
        case 8:
            hub.give(ResetPeer(INSTANCE, leaf.name))
        case 9:
            # The network cuts it: a peer with graceful restart has its routes kept.
            for number in list(leaf.ends):
                network.cut(leaf, number)
                leaf.give_closed(number)
            # What it withdraws meanwhile is swept when it is back.
            tables = instance_of(leaf).outbound.loc.tables
            if IPV4_UNICAST in tables:
                held = tables[IPV4_UNICAST].prefixes()[:5]
                leaf.routes({prefix_to_text(IPV4_UNICAST, nlri): None for nlri in held})


@pytest.mark.parametrize("seed", range(8))
def test_a_station_has_the_tables_of_the_speaker(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Slices so small that tables change while they are exported.
    monkeypatch.setattr("speaker.engine.monitoring.table_dump.SLICE_ROUTES", 3)
    rng = random.Random(seed)  # noqa: S311  a seed, no secret
    connects = rng.randint(0, 30)
    network = Network(seed, latency=(0.001, 0.02))
    hub, leaves = build(network, rng)
    watch = Collector(hub.engine, hub.give)
    watch.configure()
    for moment in range(60):
        if moment == connects:
            watch.accept()
        step(network, rng, hub, leaves)
        network.run(rng.choice([0.0, 0.01, 0.5, 3.0]))
    settle(network, hub, 60.0)
    assert all(leaf.status().established for leaf in leaves)
    assert_same(watch.station, instance_of(hub))
    assert_told(watch.station, leaves)
    # Another station, to which all of it is one table, knows the same.
    watch.lose()
    settle(network, hub, 60.0)
    late = watch.accept()
    settle(network, hub, 1.0)
    assert_same(late, instance_of(hub))
    assert_told(late, leaves)


def assert_told(station: Station, leaves: list[Host]) -> None:
    """Compare Adj-RIBs-Out with what the other sides have received."""
    for leaf in leaves:
        (member,) = instance_of(leaf).established.values()
        exported = station.of(leaf.address).adj_rib_out.routes
        received = collector.held_before_policy(member)
        assert {family: routes for family, routes in exported.items() if routes} == received
