"""Two to five speakers, anything that can happen to them, and in the end exactly the right routes.

Random topologies, policies, announcements, lost connections and restarts, in virtual time and with the
octets cut anywhere; when nothing moves any more every RIB is that of `reference`. A seed is one run.
``WAGGLE_MODEL_RUNS`` makes more of them.
"""

from __future__ import annotations

import os
import random

import pytest

from speaker.api import (
    AddPathMode,
    GracefulRestart,
    InstanceConfig,
    Match,
    PeerConfig,
    Policy,
    PrefixRule,
    RouteAttributes,
    RouteView,
    Set,
    Term,
)
from speaker.engine import Engine
from speaker.engine.inputs import SetInstance
from speaker.iana import IPV4_UNICAST, WELL_KNOWN_COMMUNITIES
from tests.speaker.model.reference import Edge, Node, Results, Route, solve
from tests.speaker.network import INSTANCE, Host, Network

RUNS = int(os.environ.get("WAGGLE_MODEL_RUNS", "60"))
PREFIXES = [f"10.{n}.0.0/16" for n in range(6)]
EXPORTS = ("all", "all", "all", "local", "none")
COMMUNITIES = {
    "65000:1": 65000 << 16 | 1,
    "65000:2": 65000 << 16 | 2,
    "no-export": WELL_KNOWN_COMMUNITIES["no-export"],
    "no-advertise": WELL_KNOWN_COMMUNITIES["no-advertise"],
}


class Lab:
    """A random network and its model, side by side."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)  # noqa: S311  a seed, no secret
        self.network = Network(seed, latency=(0.0, 0.05), segment=rng.choice([None, 7, 64]))
        self.graceful = GracefulRestart(30, stale_time=20) if rng.random() < 0.3 else None
        self.add_path: AddPathMode = "both" if rng.random() < 0.3 else "none"
        size = rng.randint(2, 5)
        asns = [65001, 65002, 65003] if rng.random() < 0.6 else [65001 + n for n in range(5)]
        self.nodes: dict[str, Node] = {}
        self.hosts: dict[str, Host] = {}
        self.links: set[frozenset[str]] = set()
        for n in range(size):
            name, asn = f"r{n}", rng.choice(asns)
            address = f"10.99.0.{n + 1}"
            self.hosts[name] = self.network.host(name, address, asn)
            number = (10 << 24) + (99 << 16) + n + 1
            self.nodes[name] = Node(name, asn, number, number)
        names = list(self.nodes)
        for left in names:
            for right in names:
                if left < right and rng.random() < 0.8:
                    self.links.add(frozenset((left, right)))
        for name in names:
            for other in names:
                if other != name:
                    self.nodes[name].edges[other] = self.edge()
            self.configure(name)

    def edge(self) -> Edge:
        rng = self.rng
        return Edge(
            imports=rng.random() < 0.9,
            export=rng.choice(EXPORTS),
            add_community="65000:2" if rng.random() < 0.2 else None,
            only=frozenset(rng.sample(PREFIXES, 4)) if rng.random() < 0.2 else None,
        )

    def configure(self, name: str) -> None:
        """Configure the peers of a speaker."""
        for other in self.nodes:
            if frozenset((name, other)) in self.links:
                self.hosts[name].peer(self.config(name, other))

    def config(self, name: str, other: str) -> PeerConfig:
        edge = self.nodes[name].edges[other]
        policy = None
        if edge.add_community is not None:
            policy = Policy(terms=(Term(set=Set(add_communities=(edge.add_community,))),))
        imports: object = "all" if edge.imports else "none"
        if edge.imports and edge.only is not None:
            rules = tuple(PrefixRule(prefix) for prefix in sorted(edge.only))
            imports = Policy(terms=(Term(match=Match(prefixes=rules)),))
        return PeerConfig(
            name=other,
            address=self.hosts[other].address,
            peer_asn=self.nodes[other].asn,
            # Both ends connect, so that connections collide.
            connect_retry_time=5,
            hold_time=60,
            keepalive_time=20,
            graceful_restart=self.graceful,
            add_path=self.add_path,
            export=edge.export,  # type: ignore[arg-type]
            export_policy=policy,
            import_=imports,  # type: ignore[arg-type]
        )

    # ---------------------------------------------------------------- events

    def announce(self) -> None:
        rng = self.rng
        name = rng.choice(list(self.nodes))
        node = self.nodes[name]
        for prefix in rng.sample(PREFIXES, rng.randint(1, 4)):
            if rng.random() < 0.3:
                node.local.pop(prefix, None)
                self.hosts[name].routes({prefix: None})
                continue
            communities = tuple(rng.sample(sorted(COMMUNITIES), rng.choice([0, 0, 1])))
            # The preference is the AS's own, and no MED decides; see `reference`.
            preference = 100 + 10 * (node.asn % 3)
            node.local[prefix] = Route(prefix, (), preference, 0, communities)
            self.hosts[name].routes(
                {
                    prefix: RouteAttributes(
                        med=0,
                        local_preference=preference,
                        communities=tuple(COMMUNITIES[c] for c in communities),
                    )
                }
            )

    def flap(self) -> None:
        host = self.hosts[self.rng.choice(list(self.hosts))]
        if host.ends:
            number = self.rng.choice(list(host.ends))
            self.network.cut(host, number)
            host.give_closed(number)

    def restart(self) -> None:
        name = self.rng.choice(list(self.hosts))
        host, node = self.hosts[name], self.nodes[name]
        for number in list(host.ends):
            self.network.cut(host, number)
        host.engine = Engine(
            random.Random(self.rng.random()),  # noqa: S311  a seed, no secret
            restarting=self.graceful is not None and self.rng.random() < 0.5,
        )
        host.give(
            SetInstance(
                InstanceConfig(
                    name=INSTANCE,
                    local_asn=node.asn,
                    router_id=host.address,
                    selection_deferral_time=10,
                )
            )
        )
        self.configure(name)
        host.routes(
            {
                prefix: RouteAttributes(
                    med=route.med,
                    local_preference=route.local_preference,
                    communities=tuple(COMMUNITIES[c] for c in route.communities),
                )
                for prefix, route in node.local.items()
            }
        )

    def reconfigure(self) -> None:
        name, other = self.rng.sample(list(self.nodes), 2)
        self.nodes[name].edges[other] = self.edge()
        if frozenset((name, other)) in self.links:
            self.hosts[name].peer(self.config(name, other))

    def run(self) -> None:
        events = [self.announce] * 5 + [self.flap] * 2 + [self.reconfigure] * 2 + [self.restart]
        for _ in range(self.rng.randint(5, 25)):
            self.rng.choice(events)()
            self.network.run(self.rng.choice([0.0, 0.02, 0.3, 4.0]))
        # Long enough for every session, and for everything that is kept for a time.
        self.network.run(300)


def summary(route: RouteView) -> tuple[object, ...]:
    """What the model knows of a route."""
    return (route.as_path, route.local_preference, route.med, frozenset(route.communities))


def expected(route: Route) -> tuple[object, ...]:
    """The same of the model's."""
    communities = frozenset(
        f"{COMMUNITIES[c] >> 16}:{COMMUNITIES[c] & 0xFFFF}" for c in route.communities
    )
    return (" ".join(map(str, route.as_path)), route.local_preference, route.med, communities)


def check(lab: Lab, results: Results) -> None:
    for name, host in lab.hosts.items():
        for status in host.engine.views.peers(lab.network.now):
            assert status.established, (name, status)
            assert sum(family.stale for family in status.families) == 0, (name, status)
            received = sorted(
                (r.prefix, str(summary(r)))
                for r in host.engine.views.routes_received(INSTANCE, status.name, IPV4_UNICAST)
            )
            wanted = sorted(
                (prefix, str(expected(route)))
                for (neighbour, prefix, _), route in results.received[name].items()
                if neighbour == status.name
            )
            assert received == wanted, (name, status.name)
            advertised = sorted(
                (r.prefix, str(summary(r)))
                for r in host.engine.views.routes_advertised(INSTANCE, status.name, IPV4_UNICAST)
            )
            held = sorted(
                (r.prefix, str(summary(r)))
                for r in lab.hosts[status.name].engine.views.routes_received(
                    INSTANCE, name, IPV4_UNICAST
                )
            )
            assert advertised == held, (name, status.name)
        best = {
            r.prefix: (r.peer, summary(r))
            for r in host.engine.views.routes_available(INSTANCE, IPV4_UNICAST)
            if r.best
        }
        choice = results.choice[name]
        assert best.keys() == choice.keys(), name
        for prefix, candidates in choice.items():
            # Several paths of one neighbour are equal: then the path identifier decides.
            equal = [
                (one.neighbour, expected(one.route))
                for one in candidates
                if one.rank == candidates[0].rank
            ]
            assert best[prefix] in equal, (name, prefix)


@pytest.mark.parametrize("seed", range(RUNS))
def test_every_rib_equals_the_model(seed: int) -> None:
    lab = Lab(seed)
    lab.run()
    check(lab, solve(lab.nodes, lab.links, add_path=lab.add_path == "both"))
