"""Time of the speaker's core for a full table and for the loss of its session, and the longest input.

A peer announces many prefixes, which other peers receive; then its connection is lost. With
``failover`` a second peer has announced the same prefixes with a longer path; with ``restart`` the peer
restarts gracefully, and comes back without its routes; with ``long-lived`` its restart time expires,
and they become long-lived stale. With ``policy`` and ``next-hop`` nothing is lost: export settings of
one of the other peers change; with ``role`` the role (RFC 9234) of the peer while it restarts. With
``router-id`` the instance becomes another router. With ``route-set`` a route set has the routes,
and is removed. With ``--add-path`` these peers are sent all paths. The goal is for the longest
input of both, the arrival and the loss: what other sessions wait. ``WAGGLE_PURE=1``: with prefix
tables in Python.

``python -m bench.bench_loss [--routes N] [--peers N] [--add-path] [SCENARIO ...]``
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from typing import Any, Final, Literal

from bench.speed import streams
from speaker.api import (
    GracefulRestart,
    InstanceConfig,
    PeerConfig,
    Policy,
    RouteAttributes,
    Set,
    Term,
)
from speaker.capability import (
    AddPath,
    FourOctetAs,
    GracefulRestartCapability,
    LongLivedGracefulRestart,
    Multiprotocol,
)
from speaker.engine import Engine
from speaker.engine.inputs import (
    BytesReceived,
    Input,
    RemoveRouteSet,
    SendUpdates,
    SetInstance,
    SetPeer,
    TimersDue,
    TransportAccepted,
    TransportClosed,
    UpdateRoutes,
)
from speaker.iana import Role
from speaker.message import KEEPALIVE, Open
from speaker.nlri import IPV4_UNICAST
from speaker.rib.pack import end_of_rib
from speaker.rib.prefix_table import FORM
from speaker.server.free_memory import bound_collections, settle_memory

GOAL_MS: Final = 20.0
PER_UPDATE: Final = 10
"""Prefixes of an attribute set."""
SCENARIOS: Final = (
    "loss",
    "failover",
    "rejected",
    "restart",
    "long-lived",
    "policy",
    "next-hop",
    "role",
    "router-id",
    "route-set",
)
ROUTE_SET: Final = "s"
TAGGED: Final = Policy(terms=(Term(set=Set(add_communities=("65000:1",))),))


class Bench:
    """An engine with Established sessions."""

    def __init__(self, scenario: str, routes: int, peers: int, *, add_path: bool = False) -> None:
        self._engine = Engine(random.Random(1))  # noqa: S311  jitter
        self._now = 0.0
        self._scenario = scenario
        self._add_path = add_path
        self._connections = 0
        self.longest = 0.0
        self.total = 0.0
        self.inputs = 0
        self._set_instance("10.0.0.1")
        for number in range(3, peers + 3):
            self._peer(number, "none", "all")
            self._open(number)
        accepts: Literal["all", "none"] = "none" if scenario == "rejected" else "all"
        if scenario == "route-set":
            self._fill_route_set(routes)
            return
        self._peer(1, accepts, "none")
        self.connection = self._open(1)
        self._announce(self.connection, 1, routes)
        if scenario == "failover":
            self._peer(2, "all", "none")
            self._announce(self._open(2), 2, routes)

    def _set_instance(self, router_id: str) -> None:
        self._give(SetInstance(InstanceConfig(name="b", local_asn=65000, router_id=router_id)))

    def _fill_route_set(self, routes: int) -> None:
        for start in range(0, routes, PER_UPDATE):
            nlri = streams.host_nlri(streams.FIRST_PREFIX + start, PER_UPDATE)
            attributes = RouteAttributes(med=start)
            changes = dict.fromkeys(nlri, attributes)
            self._give(UpdateRoutes("b", ROUTE_SET, {IPV4_UNICAST: changes}))

    @property
    def _restart(self) -> GracefulRestart | None:
        if self._scenario not in ("restart", "long-lived", "role"):
            return None
        return GracefulRestart(restart_time=60, stale_time=300, long_lived_time=600)

    def _peer(
        self,
        number: int,
        accepts: Literal["all", "none"],
        export: Literal["all", "none"],
        **settings: Any,  # noqa: ANN401
    ) -> None:
        address = f"10.0.1.{number}"
        is_set = export == "all" and self._scenario == "route-set"
        config = PeerConfig(
            name=address,
            address=address,
            peer_asn=65000 + number,
            passive=True,
            import_=accepts,
            export="set" if is_set else export,
            route_set=ROUTE_SET if is_set else None,
            graceful_restart=self._restart if number == 1 else None,
            add_path="send" if self._add_path and number > 2 else "none",
            **settings,
        )
        self._give(SetPeer("b", config))

    def _open(self, number: int) -> int:
        self._connections += 1
        connection = self._connections
        address = f"10.0.1.{number}"
        self._give(TransportAccepted(connection, "b", ("10.0.0.1", 179), (address, 4000)))
        capabilities: list[object] = [Multiprotocol(IPV4_UNICAST), FourOctetAs(65000 + number)]
        if self._add_path and number > 2:
            capabilities.append(AddPath(((IPV4_UNICAST, 1),)))
        if number == 1 and self._restart is not None:
            families = ((IPV4_UNICAST, True),)
            capabilities.append(GracefulRestartCapability(restart_time=60, families=families))
            if self._scenario == "long-lived":
                capabilities.append(LongLivedGracefulRestart(((IPV4_UNICAST, True, 600),)))
        greeting = Open(
            asn=65000 + number,
            hold_time=0,
            router_id=number,
            capabilities=tuple(capabilities),  # type: ignore[arg-type]  # any of them
        )
        self._give(BytesReceived(connection, greeting.encode()))
        self._give(BytesReceived(connection, KEEPALIVE))
        return connection

    def _announce(self, connection: int, number: int, routes: int) -> None:
        for start in range(0, routes, PER_UPDATE):
            path = [65000 + number, *[64600 + start % 300] * number, 1 + start]
            attributes = streams.attributes(path, f"10.0.1.{number}", med=start)
            nlri = streams.host_nlri(streams.FIRST_PREFIX + start, PER_UPDATE)
            self._give(BytesReceived(connection, streams.messages(attributes, nlri)))

    def begin(self) -> None:
        """Measure anew."""
        self.longest = self.total = 0.0
        self.inputs = 0

    def lose(self) -> None:
        """Lose the session, or change a peer, and perform all that follows of it."""
        if self._scenario in ("policy", "next-hop"):
            is_policy = self._scenario == "policy"
            self._peer(
                3,
                "none",
                "all",
                export_policy=TAGGED if is_policy else None,
                next_hop_ipv4=None if is_policy else "10.0.0.9",
            )
            return
        if self._scenario == "router-id":
            self._set_instance("10.0.0.2")
            return
        if self._scenario == "route-set":
            self._give(RemoveRouteSet("b", ROUTE_SET))
            return
        self._give(TransportClosed(self.connection, "cut"))
        if self._scenario == "role":
            self._peer(1, "all", "none", role=Role.CUSTOMER)
        elif self._scenario == "restart":
            self._now += 10.0
            self._give(TimersDue())
            self._give(BytesReceived(self._open(1), end_of_rib(IPV4_UNICAST)))
        elif self._scenario == "long-lived":
            self._now += 61.0
            self._give(TimersDue())

    def _give(self, item: Input) -> None:
        self._measured(item)
        while self._engine.updates_pending:
            self._measured(SendUpdates())

    def _measured(self, item: Input) -> None:
        began = time.thread_time()
        self._engine.handle(item, self._now)
        took = (time.thread_time() - began) * 1e3
        self.total += took
        self.longest = max(self.longest, took)
        self.inputs += 1


def main() -> int:
    """Measure and print; the exit status is 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--routes", type=int, default=500_000, metavar="N")
    parser.add_argument("--peers", type=int, default=10, metavar="N", help="that receive them")
    parser.add_argument("--add-path", action="store_true", help="to these peers")
    parser.add_argument("scenarios", nargs="*", default=SCENARIOS, metavar="SCENARIO")
    args = parser.parse_args()
    bound_collections()
    settle_memory()
    good = True
    print(
        f"{args.routes} routes, {args.peers} peers; goal: no input over {GOAL_MS:g} ms of CPU;"
        f" prefix tables in {FORM}"
    )
    for scenario in args.scenarios:
        bench = Bench(scenario, args.routes, args.peers, add_path=args.add_path)
        for what in ("arrival", scenario):
            if what == scenario:
                bench.begin()
                bench.lose()
            print(
                f"{what:>12}: {bench.total:7.0f} ms in {bench.inputs} inputs, "
                f"longest {bench.longest:.1f} ms",
                flush=True,
            )
            good = good and bench.longest <= GOAL_MS
        del bench
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
