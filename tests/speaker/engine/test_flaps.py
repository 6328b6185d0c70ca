"""A peer that comes and goes: what it leaves behind does not grow with its flaps.

That it leaves no reference cycles to collect is in `test_cyclic_garbage`.
"""

from __future__ import annotations

import gc
import sys

import pytest

from speaker.api import GracefulRestart, PeerConfig
from speaker.iana import IPV4_UNICAST
from tests.speaker.engine.test_cyclic_garbage import routes
from tests.speaker.network import INSTANCE, Host, Network

ROUTES = 1000
"""Each of them with attributes of its own."""


class Lab:
    """A router, and a peer that sends routes."""

    def __init__(self, **options: object) -> None:
        self.network = Network()
        self.feeder = self.network.host("feeder", "10.0.0.1", 65001, listens=False)
        self.router = self.network.host("router", "10.0.0.2", 65002)
        shared = {"export": "all", **options}
        self.router.peer(peer(self.feeder, 65001, passive=True, **shared))
        self.feeder.peer(peer(self.router, 65002, **{**shared, "keep_received": None}))
        self.feeder.routes(routes(ROUTES))
        self.network.run(5)

    def flap(self) -> int:
        """Lose the session, restore it, and list its routes; the blocks that are allocated then."""
        for number in list(self.feeder.ends):
            self.network.cut(self.feeder, number)
            self.feeder.give_closed(number)
        self.network.run(60)
        status = self.router.status()
        assert status.established
        assert {one.received for one in status.families if one.family == IPV4_UNICAST} == {ROUTES}
        for _ in self.router.engine.views.routes_received(INSTANCE, "feeder", IPV4_UNICAST):
            pass
        for host in self.network.hosts.values():
            host.sent()
            host.events.clear()
            host.connects.clear()
        gc.collect()  # which also empties the interpreter's lists of free tuples
        return sys.getallocatedblocks()


def peer(host: Host, asn: int, **options: object) -> PeerConfig:
    return PeerConfig(name=host.name, address=host.address, peer_asn=asn, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {"import_": "all"},
        {},
        {"keep_received": 100},
        {"import_": "all", "add_path": "both"},
        {"import_": "all", "graceful_restart": GracefulRestart(restart_time=120)},
    ],
    ids=["imported", "kept", "counted", "add-path", "graceful-restart"],
)
def test_seven_more_flaps_take_less_than_five_percent(options: dict[str, object]) -> None:
    gc.collect()
    without = sys.getallocatedblocks()
    lab = Lab(**options)
    first, *_, last = [lab.flap() - without for _ in range(8)]
    assert last < first * 1.05
