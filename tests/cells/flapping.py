"""A program that loses a large session again and again, and prints its memory as JSON.

The router is an engine on wires in memory; its events are published as the agent's are, in a running
loop. For `test_memory`, in a process of its own: the memory of a process that runs tests shows nothing.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import sys
from pathlib import Path

import structlog

from cells.hive import Health
from cells.speaker.events import SpeakerEvents
from speaker.api import ESTABLISHED, PeerConfig, RouteAttributes, StateChanged
from speaker.iana import IPV4_UNICAST
from speaker.server import bound_collections, free_memory, settle_memory
from tests.speaker.network import Host, Network

ROUTES = free_memory.LARGE_SESSION_ROUTES
FLAPS = 5


def resident() -> int:
    """Return the octets of memory that the process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


class Released:
    """Waits until memory was released: a full collection, which happens for no other reason."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        gc.callbacks.append(self._collected)

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        if phase == "stop" and info["generation"] == 2:
            self._event.set()

    async def wait(self) -> None:
        """Wait for the next release; what follows the collection is in the same turn of the loop."""
        await asyncio.wait_for(self._event.wait(), 60)
        self._event.clear()


def peer(host: Host, asn: int, **options: object) -> PeerConfig:
    return PeerConfig(name=host.name, address=host.address, peer_asn=asn, **options)  # type: ignore[arg-type]


def routes() -> dict[str, RouteAttributes]:
    """Return routes of which each has 60 communities of its own."""
    return {
        f"10.{n >> 8}.{n & 255}.0/24": RouteAttributes(communities=tuple(range(n, n + 60)))
        for n in range(ROUTES)
    }


async def main() -> None:
    """Bring a session up, and lose it, so many times."""
    network = Network()
    feeder = network.host("feeder", "10.0.0.1", 65001, listens=False)
    router = network.host("router", "10.0.0.2", 65002)
    router.peer(peer(feeder, 65001, passive=True, import_="all"))
    feeder.peer(peer(router, 65002, export="all", connect_retry_time=5))
    feeder.routes(routes())
    network.run(1)
    for host in (feeder, router):
        host.sent()
    bound_collections()
    settle_memory()
    events, released = SpeakerEvents(Health()), Released()
    with_routes: list[int] = []
    after: list[int] = []
    for _ in range(FLAPS):
        network.run(60)
        (status,) = [one for one in router.status().families if one.family == IPV4_UNICAST]
        assert status.received == ROUTES
        with_routes.append(resident())
        network.silent.add(router.address)
        for number in list(feeder.ends):
            network.cut(feeder, number)
            feeder.give_closed(number)
        network.run(0.1)
        network.silent.clear()
        for host in (feeder, router):
            host.sent()
            host.connects.clear()
        lost = [one for one in router.events if isinstance(one, StateChanged)]
        assert [one.routes for one in lost if one.old == ESTABLISHED] == [ROUTES]
        for one in router.events:
            events.publish(one)
        router.events.clear()
        feeder.events.clear()
        await released.wait()
        after.append(resident())
    sys.stdout.write(json.dumps({"with_routes": with_routes, "after": after}))


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    free_memory.IDLE_SECONDS = 0.02  # type: ignore[misc]
    asyncio.run(main())
