"""Engines joined by wires in memory, in virtual time: networks that run in milliseconds.

Every wire delivers in order, after a latency from the seed; so a seed is one interleaving. There are no
sockets and no waiting; the network performs the actions of its engines.
"""

from __future__ import annotations

import functools
import heapq
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from speaker.api import (
    DynamicPeerConfig,
    Event,
    InstanceConfig,
    PeerConfig,
    PeerStatus,
    RouteAttributes,
    RouteView,
)
from speaker.engine import Engine
from speaker.engine.inputs import (
    BytesReceived,
    Input,
    RequestRefresh,
    SendUpdates,
    SetInstance,
    SetPeer,
    TimersDue,
    TransportAccepted,
    TransportClosed,
    TransportConnected,
    TransportFailed,
    UpdateRoutes,
)
from speaker.nlri import Family, prefix_to_wire
from speaker.peer.actions import (
    Action,
    Close,
    Connect,
    EndBestPaths,
    ReportEvent,
    SendBestPaths,
    SetTtl,
    Write,
)
from speaker.recording import Recorder

INSTANCE = "i"
MOMENT_SECONDS, MOST_DELIVERIES = 0.01, 50_000
"""More deliveries within this virtual time are an endless exchange."""
EXTENDED_NEXT_HOP = bytes.fromhex("0506000100010002")
"""The capability in an OPEN: IPv4 unicast with IPv6 next hops (RFC 8950)."""
ROUTE_REFRESH = bytes.fromhex("020046000600")
"""The capabilities in an OPEN: route refresh, beside the enhanced one and extended messages."""


class Lines(list[bytes]):
    """A recording in memory (`speaker.recording.Sink`)."""

    trouble: str | None = None

    def write(self, line: bytes) -> None:
        """Keep a line."""
        self.append(line)


@dataclass
class End:
    """One end of a connection."""

    host: Host
    number: int
    address: tuple[str, int]
    other: End | None = None
    open: bool = True
    delivered: float = 0.0


@dataclass
class Host:
    """An engine with an address."""

    network: Network
    name: str
    address: str
    engine: Engine
    listens: bool = True
    ends: dict[int, End] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    connects: list[Connect] = field(default_factory=list)
    streamed: list[SendBestPaths | EndBestPaths] = field(default_factory=list)
    """What readers of best paths were sent."""
    accepted: int = 0
    other_address: str | None = None
    """Of the other IP version than ``address``: the source of connections to peers of that version."""
    withheld: tuple[bytes, ...] = ()
    """Capabilities that its OPEN does not have: `EXTENDED_NEXT_HOP`, `ROUTE_REFRESH`."""
    interface_address: str | None = None
    """Of the interface with ``address``, and of the other IP version."""
    recorder: Recorder | None = None
    lines: Lines = field(default_factory=lambda: Lines())

    def give(self, item: Input) -> list[Action]:
        """Pass an input to the engine and perform its actions."""
        self.network.touched[self.address] = self
        actions = (self.recorder or self.engine).handle(item, self.network.now)
        for action in actions:
            self.network.perform(self, action)
        return actions

    def address_towards(self, peer: str) -> str:
        """Return the source address of connections to a peer."""
        if self.other_address is None or (":" in peer) == (":" in self.address):
            return self.address
        return self.other_address

    def peer(self, config: PeerConfig | DynamicPeerConfig) -> None:
        """Configure a peer."""
        self.give(SetPeer(INSTANCE, config))

    def routes(
        self, routes: Mapping[str, RouteAttributes | None], route_set: str | None = None
    ) -> None:
        """Change a route set, or our own routes; prefixes as text."""
        changes: dict[Family, dict[bytes, RouteAttributes | None]] = {}
        for text, attributes in routes.items():
            family, nlri = prefix_to_wire(text)
            changes.setdefault(family, {})[nlri] = attributes
        self.give(UpdateRoutes(INSTANCE, route_set, changes))

    def refresh(self, name: str) -> None:
        """Send a ROUTE-REFRESH to a peer."""
        self.give(RequestRefresh(INSTANCE, name))

    def give_closed(self, connection: int) -> None:
        """The engine's side of a connection that the test has cut."""
        self.give(TransportClosed(connection, "cut"))

    def status(self, name: str | None = None) -> PeerStatus:
        """Return a session's status; of the only one when it is not named."""
        found = [s for s in self.engine.views.peers(self.network.now) if name in (None, s.name)]
        assert len(found) == 1, [s.name for s in found]
        return found[0]

    def available(self, family: Family) -> dict[str, RouteView]:
        """Return the best routes by prefix."""
        return {
            route.prefix: route
            for route in self.engine.views.routes_available(INSTANCE, family)
            if route.best
        }

    def received(self, family: Family, peer: str | None = None) -> dict[str, RouteView]:
        """Return the Adj-RIB-In by prefix."""
        return {r.prefix: r for r in self.engine.views.routes_received(INSTANCE, peer, family)}

    def sent(self) -> bytes:
        """Return all octets written since the last call."""
        octets = b"".join(b"".join(write.parts) for write in self.writes)
        self.writes.clear()
        return octets


class Network:
    """Hosts and the wires between them."""

    def __init__(
        self,
        seed: int = 0,
        latency: tuple[float, float] = (0.001, 0.001),
        segment: int | None = None,
        *,
        record: bool = False,
    ) -> None:
        """Begin empty; ``segment`` is the most octets that arrive at a time.

        With ``record`` each host has a recording in its ``lines``.
        """
        self._segment = segment
        self.now = 0.0
        self.rng = random.Random(seed)  # noqa: S311  a seed, no secret
        self.hosts: dict[str, Host] = {}
        self.silent: set[str] = set()
        """Addresses that answer to no connection attempt."""
        self.touched: dict[str, Host] = {}
        """Hosts whose engine was given something since it was last looked at."""
        self._deadlines: dict[str, float] = {}
        self._latency = latency
        self._record = record
        self._queue: list[tuple[float, int, Callable[[], object]]] = []
        self._serial = 0

    def host(self, name: str, address: str, asn: int, *, listens: bool = True) -> Host:
        """Add a host with one instance; its identifier is its address if that is IPv4."""
        rng = random.Random(self.rng.random())  # noqa: S311  a seed, no secret
        engine = Engine(rng)
        host = Host(self, name, address, engine, listens)
        if self._record:
            host.recorder = Recorder(engine, host.lines, rng=rng, now=self.now, started=1e9)
        self.hosts[address] = host
        identifier = address if "." in address else f"192.0.2.{len(self.hosts)}"
        host.give(SetInstance(InstanceConfig(name=INSTANCE, local_asn=asn, router_id=identifier)))
        return host

    def later(self, when: float, act: Callable[[], object]) -> None:
        """Do something at a time."""
        self._serial += 1
        heapq.heappush(self._queue, (when, self._serial, act))

    def perform(self, host: Host, action: Action) -> None:
        """Perform the actions of an engine."""
        match action:
            case Connect():
                host.connects.append(action)
                self.later(self._arrival(), lambda: self._connect(host, action))
            case Write(connection, parts):
                host.writes.append(action)
                end = host.ends.get(connection)
                if end is not None and end.open:
                    octets = b"".join(parts)
                    for capability in host.withheld:
                        octets = octets.replace(capability, b"\xef" + capability[1:])
                    self._deliver(end, octets)
            case Close(connection):
                self.cut(host, connection)
            case SetTtl():
                pass
            case ReportEvent(event):
                host.events.append(event)
            case SendBestPaths() | EndBestPaths():
                host.streamed.append(action)
            case _:
                assert_never(action)

    def _arrival(self) -> float:
        return self.now + self.rng.uniform(*self._latency)

    def _connect(self, host: Host, action: Connect) -> None:
        if action.address in self.silent:
            return
        target = self.hosts.get(action.address)
        if target is None or not target.listens:
            host.give(TransportFailed(action.connection, "connection refused"))
            return
        target.accepted += 1
        source = host.address_towards(action.address)
        near = End(host, action.connection, (source, 40000 + action.connection))
        far = End(target, -target.accepted, (target.address, action.port), near)
        near.other = far
        host.ends[near.number] = near
        target.ends[far.number] = far
        self.later(
            self._arrival(),
            lambda: target.give(
                TransportAccepted(
                    far.number, INSTANCE, far.address, near.address, target.interface_address
                )
            ),
        )
        self.later(
            self._arrival(),
            lambda: host.give(
                TransportConnected(near.number, near.address, far.address, host.interface_address)
            ),
        )
        far.delivered = near.delivered = self.now + self._latency[1]

    def _deliver(self, end: End, data: bytes) -> None:
        other = end.other
        assert other is not None
        other.delivered = max(other.delivered, self._arrival())
        size = self._segment or max(1, len(data))

        def arrive(part: bytes) -> None:
            if other.open:
                other.host.give(BytesReceived(other.number, part))

        for start in range(0, len(data), size):
            part = data[start : start + size]
            self.later(other.delivered, functools.partial(arrive, part))

    def cut(self, host: Host, connection: int, reason: str = "closed by the peer") -> None:
        """End a connection; the other side learns of it after all that was sent."""
        end = host.ends.pop(connection, None)
        if end is None or not end.open:
            return
        end.open = False
        other = end.other
        assert other is not None
        other.delivered = max(other.delivered, self._arrival())

        def arrive() -> None:
            # Not a cycle any more: a test of the core's garbage finds none of the network's.
            end.other = other.other = None
            if other.open:
                other.open = False
                other.host.ends.pop(other.number, None)
                other.host.give(TransportClosed(other.number, reason))

        self.later(other.delivered, arrive)

    def run(self, seconds: float) -> None:
        """Let time pass."""
        until = self.now + seconds
        self.touched.update(self.hosts)
        moment, deliveries = self.now, 0
        while True:
            if self.now > moment + MOMENT_SECONDS:
                moment, deliveries = self.now, 0
            assert deliveries < MOST_DELIVERIES, "hosts answer each other without an end"
            self._settle()
            address = min(self._deadlines, key=self._deadlines.__getitem__, default="")
            due = self._deadlines.get(address, float("inf"))
            if self._queue and self._queue[0][0] <= min(due, until):
                when, _, act = heapq.heappop(self._queue)
                self.now = max(self.now, when)
                deliveries += 1
                act()
            elif due <= until:
                self.now = max(self.now, due)
                self.hosts[address].give(TimersDue())
            elif not self.touched:
                break
        self.now = until

    def _settle(self) -> None:
        """Send pending updates of touched hosts, in their order, and note when each wants waking."""
        if not self.touched:
            return
        for address, host in self.hosts.items():
            if address in self.touched and host.engine.updates_pending:
                host.give(SendUpdates())
        for address, host in self.touched.items():
            deadline = host.engine.next_deadline()
            if deadline is None:
                self._deadlines.pop(address, None)
            else:
                self._deadlines[address] = deadline
        # A flush may send one slice of the pending updates.
        self.touched = {a: host for a, host in self.touched.items() if host.engine.updates_pending}
