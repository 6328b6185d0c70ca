"""Two hosts with graceful restart: one crashes, and comes back."""

from __future__ import annotations

from speaker.api import GracefulRestart, InstanceConfig, PeerConfig, RouteAttributes
from speaker.engine import Engine
from speaker.engine.inputs import SetInstance
from speaker.iana import IPV4_UNICAST
from tests.speaker.network import INSTANCE, Host, Network

A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.3"


ROUTES = {"10.8.0.0/24": RouteAttributes(), "10.9.0.0/24": RouteAttributes(communities=(7,))}


RESTART = GracefulRestart(restart_time=60, stale_time=30)


def config(name: str, address: str, asn: int, **changes: object) -> PeerConfig:
    """An open peer with graceful restart."""
    values: dict[str, object] = {
        "graceful_restart": RESTART,
        "import_": "all",
        "export": "all",
        **changes,
    }
    return PeerConfig(name=name, address=address, peer_asn=asn, **values)  # type: ignore[arg-type]


def pair(**changes: object) -> tuple[Network, Host, Host]:
    """The restarting speaker a, with routes, and its helper b."""
    network = Network()
    a, b = network.host("a", A, 65001), network.host("b", B, 65002)
    a.peer(config("b", B, 65002, **changes))
    b.peer(config("a", A, 65001, passive=True, **changes))
    a.routes(ROUTES)
    network.run(10)
    assert b.status().established
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES)
    return network, a, b


def crash(network: Network, host: Host) -> None:
    """The process is gone: connections end without a word."""
    network.hosts[host.address].listens = False
    for number in list(host.ends):
        network.cut(host, number)
    host.engine = Engine(network.rng, restarting=True)


def revive(host: Host, asn: int, *peers: PeerConfig) -> None:
    """It starts again and is configured."""
    host.listens = True
    host.give(SetInstance(InstanceConfig(name=INSTANCE, local_asn=asn, router_id=host.address)))
    for peer in peers:
        host.peer(peer)


def stale(host: Host) -> int:
    """How many routes are kept stale, by the peer's status."""
    return sum(family.stale for family in host.status().families)
