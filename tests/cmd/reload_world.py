"""A router with a file, its neighbours, and what they see of it: a network in memory, in virtual time.

The neighbour on the left passes on the routes of one behind it, restarts, or is away. No checks.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from speaker.api import (
    DynamicPeerConfig,
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
from speaker.engine.inputs import RemovePeer, SetInstance, UpdateRoutes
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST, Role
from tests.speaker.network import INSTANCE, Host, Network
from waggle.commands.router.reload import apply
from waggle.router_config import load

LONG_LIVED, ALL_TIMERS = 300, 600.0
"""Seconds: how long long-lived stale routes are kept, and until each timer of a world has expired."""
ROUTER, LEFT, RIGHT, BEHIND = "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"
ROUTES = {
    "10.1.0.0/16": RouteAttributes(),
    "10.2.0.0/16": RouteAttributes(communities=(7,)),
    "10.3.0.0/16": RouteAttributes(),
    "2001:db8:1::/48": RouteAttributes(),
}
BEHIND_ROUTES = {
    "10.9.0.0/16": RouteAttributes(),
    "10.10.0.0/16": RouteAttributes(),
    "10.11.0.0/16": RouteAttributes(),
}
ORIGINATED_BY = Policy(
    name="origin",
    terms=tuple(
        Term(match=Match(prefixes=(PrefixRule(prefix),)), set=Set(prepend=(asn,)))
        for prefix, asn in (("10.10.0.0/16", 65000), ("10.11.0.0/16", 65010))
    ),
    default="accept",
)
"""The AS paths of two routes begin in an AS of the router."""


class Port:
    """The speaker of `waggle.commands.router.reload`, on a host of the network."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def set_collectors(self, collectors: object) -> None:
        """Nothing is monitored."""

    def set_instance(self, config: InstanceConfig) -> None:
        self.host.give(SetInstance(msgspec.structs.replace(config, name=INSTANCE)))

    def update_local(self, _: str, changes: Mapping[Any, Any]) -> None:
        self.host.give(UpdateRoutes(INSTANCE, None, changes))

    def set_peer(self, _: str, config: PeerConfig | DynamicPeerConfig) -> None:
        self.host.peer(config)

    def remove_peer(self, _: str, name: str) -> None:
        self.host.give(RemovePeer(INSTANCE, name))


class World:
    """The router between a route server that restarts, and a neighbour that listens."""

    def __init__(self, seed: int) -> None:
        self.network = network = Network(seed, latency=(0.0, 0.01))
        self.router = network.host("router", ROUTER, 65000)
        self.left = network.host("left", LEFT, 65001)
        self.right = network.host("right", RIGHT, 65002)
        self.behind = network.host("behind", BEHIND, 65003)
        self.start_left(restarting=False)
        self.behind.peer(
            PeerConfig(
                name="left", address=LEFT, peer_asn=65001, export="all", export_policy=ORIGINATED_BY
            )
        )
        self.behind.routes(BEHIND_ROUTES)
        self.right.peer(PeerConfig(name="r", address=ROUTER, import_="all", connect_retry_time=5))
        self.file: object = None

    def start_left(self, *, restarting: bool) -> None:
        """Start the neighbour on the left, with its routes."""
        left = self.left
        left.engine = Engine(random.Random(self.network.rng.random()), restarting=restarting)  # noqa: S311  a seed
        left.listens = True
        left.give(
            SetInstance(
                InstanceConfig(
                    name=INSTANCE, local_asn=65001, router_id=LEFT, selection_deferral_time=10
                )
            )
        )
        left.routes(ROUTES)
        left.peer(
            PeerConfig(
                name="behind", address=BEHIND, peer_asn=65003, import_="all", export="none",
                connect_retry_time=5,
            )
        )  # fmt: skip
        left.peer(
            PeerConfig(
                name="r",
                address=ROUTER,
                role=Role.ROUTE_SERVER,
                import_="all",
                export="all",
                add_path="both",
                connect_retry_time=5,
                next_hop_ipv6="2001:db8::2",
                graceful_restart=GracefulRestart(60, stale_time=30, long_lived_time=LONG_LIVED),
            )
        )

    def stop_left(self) -> None:
        """End the process of the neighbour on the left without a word."""
        left = self.left
        left.listens = False
        for number in list(left.ends):
            self.network.cut(left, number)
        left.engine = Engine(random.Random(1))  # noqa: S311  a seed

    def load(self, path: Path) -> None:
        """Start with a file, or reload it."""
        file = load(path)
        apply(cast("Any", Port(self.router)), cast("Any", self.file), file)
        self.file = file

    def live(self, first: Path, then: Path, state: str) -> None:
        """Start with a file and come to a state; reload; have everything come to an end."""
        network = self.network
        if state == "absent":
            self.stop_left()
        self.load(first)
        network.run(20)
        if state in ("away", "long away", "coming back"):
            self.stop_left()
            network.run({"away": 20, "long away": 80, "coming back": 20}[state])
        if state == "coming back":
            self.start_left(restarting=True)
            network.run(1.003)
        self.load(then)

    def come_back(self) -> None:
        """Start the neighbour on the left where it is away, and wait for all timers."""
        if not self.left.listens:
            self.start_left(restarting=True)
        self.network.run(ALL_TIMERS)


def _route(view: RouteView) -> tuple[object, ...]:
    values = msgspec.structs.asdict(view)
    # The number of a source depends on the order of the sessions.
    del values["path_id"]
    return tuple(map(str, values.values()))


def routes_in_use(host: Host) -> dict[str, set[tuple[object, ...]]]:
    """Return the best routes of a host; none while its process has ended."""
    if not any(host.engine.views.instances()):
        return {}
    return {
        str(family): {
            _route(view)
            for view in host.engine.views.routes_available(INSTANCE, family)
            if view.best
        }
        for family in (IPV4_UNICAST, IPV6_UNICAST)
    }


def picture(world: World) -> dict[str, object]:
    """Return all that the peers of a router, and its operator, see of its routes."""
    router = world.router
    found: dict[str, object] = {
        "in use": routes_in_use(router),
        "of the neighbours": [routes_in_use(world.left), routes_in_use(world.right)],
        "instances": [(one.local_asn, one.router_id) for one in router.engine.views.instances()],
        "identifier in OPEN": [
            status.peer_router_id
            for host in (world.left, world.right)
            for status in host.engine.views.peers(world.network.now)
            if status.name == "r"
        ],
    }
    for status in router.engine.views.peers(world.network.now):
        found[f"{status.name} dynamic" if status.dynamic else status.name] = (
            status.established,
            [
                (str(f.family), f.received, f.accepted, f.advertised, f.stale)
                for f in status.families
            ],
        )
        for family in (IPV4_UNICAST, IPV6_UNICAST):
            for word, views in (
                ("received", router.engine.views.routes_received(INSTANCE, status.name, family)),
                (
                    "advertised",
                    router.engine.views.routes_advertised(INSTANCE, status.name, family),
                ),
            ):
                found[f"{word} {status.name} {family}"] = sorted(map(_route, views))
    return found
