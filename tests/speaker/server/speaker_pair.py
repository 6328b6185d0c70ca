"""Two speakers on loopback with a session."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from speaker.api import (
    Event,
    Fault,
    InstanceConfig,
    PeerConfig,
    RouteAttributes,
    RouteChanges,
    Secret,
)
from speaker.nlri import IPV4_UNICAST, prefix_to_wire
from speaker.server import Speaker
from tests.support.wait import until

NAME = "i"
A, B = "127.0.0.1", "127.0.0.2"


def routes(*prefixes: str, communities: tuple[int, ...] = ()) -> RouteChanges:
    """Return a change that announces IPv4 prefixes."""
    value = RouteAttributes(communities=communities)
    return {IPV4_UNICAST: {prefix_to_wire(prefix)[1]: value for prefix in prefixes}}


class Pair:
    """Two speakers, of which the second listens."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.a = Speaker(on_event=self.events.append)
        self.b = Speaker(on_event=self.events.append)
        self.port = 0

    async def start(self) -> None:
        await self.a.start()
        await self.b.start()
        self.a.set_instance(InstanceConfig(name=NAME, local_asn=65001, router_id="192.0.2.1"))
        self.b.set_instance(
            InstanceConfig(name=NAME, local_asn=65002, router_id="192.0.2.2", listen=((B, 0),))
        )
        await until(lambda: self.b.instances()[0].listening)
        self.port = self.b.instances()[0].listening[0][1]

    def connect(self, *, at_a: Secret | None = None, at_b: Secret | None = None) -> None:
        self.b.set_peer(
            NAME,
            PeerConfig(
                name="a",
                address=A,
                peer_asn=65001,
                passive=True,
                idle_hold_time=0,
                import_="all",
                password=at_b,
            ),
        )
        self.a.set_peer(
            NAME,
            PeerConfig(
                name="b", address=B, port=self.port, peer_asn=65002, local_address=A,
                connect_retry_time=1, idle_hold_time=0, route_set="s", password=at_a,
            ),
        )  # fmt: skip

    @property
    def up(self) -> bool:
        return all(speaker.peers()[0].established for speaker in (self.a, self.b))

    def received(self) -> set[str]:
        return {route.prefix for route in self.b.routes_received(NAME, "a", IPV4_UNICAST)}


@contextlib.asynccontextmanager
async def pair() -> AsyncIterator[Pair]:
    """Start two speakers and stop them."""
    it = Pair()
    await it.start()
    try:
        yield it
    finally:
        await it.a.stop()
        await it.b.stop()
        assert not [event for event in it.events if isinstance(event, Fault)]


async def session_elsewhere() -> None:
    """Wait until two other speakers have a session, in which time a possible session is Established."""
    async with pair() as other:
        other.connect()
        await until(lambda: other.up)
