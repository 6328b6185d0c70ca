"""The core makes no cyclic garbage: what a session held is released with the session.

A collection of all generations is rare with a high threshold, and takes long with a full table. (A
peer that is removed is a cycle of about twenty objects, without routes.)
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from speaker.api import GracefulRestart, PeerConfig, RouteAttributes
from speaker.engine.inputs import ShutDownPeer
from speaker.iana import IPV4_UNICAST
from tests.speaker.network import INSTANCE, Host, Network

A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.3"


def routes(count: int) -> dict[str, RouteAttributes | None]:
    """Return routes of which each has attributes of its own."""
    return {f"10.{n >> 8}.{n & 255}.0/24": RouteAttributes(med=n) for n in range(count)}


@pytest.fixture(scope="module", autouse=True)
def _no_other_objects() -> None:
    """Let the collector pass over what other tests have left, which takes a second each time."""
    gc.collect()
    gc.freeze()


@contextmanager
def no_cyclic_garbage() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
        gc.set_debug(gc.DEBUG_SAVEALL)
        found = gc.collect()
        gc.set_debug(0)
        assert not found, Counter(type(one).__qualname__ for one in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def connected(count: int, **settings: object) -> tuple[Network, Host, Host]:
    """A feeder of so many routes, a router, and a third router that gets them from it."""
    network = Network()
    feeder, router = network.host("a", A, 65001, listens=False), network.host("b", B, 65002)
    last = network.host("c", C, 65003, listens=False)
    options: dict[str, object] = {"import_": "all", "export": "all", **settings}
    router.peer(PeerConfig(name=A, address=A, peer_asn=65001, passive=True, **options))  # type: ignore[arg-type]
    router.peer(PeerConfig(name=C, address=C, peer_asn=65003, passive=True, **options))  # type: ignore[arg-type]
    for host in (feeder, last):
        host.peer(PeerConfig(name="b", address=B, peer_asn=65002, **options))  # type: ignore[arg-type]
    feeder.routes(routes(count))
    network.run(5)
    assert len(last.available(IPV4_UNICAST)) == count
    return network, feeder, router


def lost(network: Network, feeder: Host, router: Host) -> None:
    for end in list(feeder.ends.values()):
        network.cut(router, next(n for n, e in router.ends.items() if e is end.other))


def shut_down_by_the_peer(network: Network, feeder: Host, router: Host) -> None:
    feeder.give(ShutDownPeer(INSTANCE, "b", "maintenance"))


@pytest.mark.parametrize("end", [lost, shut_down_by_the_peer])
@pytest.mark.parametrize(
    ("count", "settings"),
    [
        (10_000, {}),
        (500, {"add_path": "both"}),
        (500, {"graceful_restart": GracefulRestart(restart_time=1, long_lived_time=1)}),
        (500, {"graceful_restart": GracefulRestart(restart_time=60)}),
    ],
    ids=["plain", "add-path", "stale", "restored"],
)
def test_the_end_of_a_session_leaves_nothing_to_collect(
    end: Callable[[Network, Host, Host], None], count: int, settings: dict[str, object]
) -> None:
    network, feeder, router = connected(count, **settings)
    for host in network.hosts.values():
        host.sent()
    with no_cyclic_garbage():
        end(network, feeder, router)
        network.run(10)
        for host in network.hosts.values():
            host.sent()
