"""An agent with a test dialect and BIRD: a Beacon and a Service are a session and a route."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dialects.objects import NODE, beacon, node, service
from tests.interop.conftest import NeedRouter
from tests.support.agent import Agent
from tests.support.netns import Link
from tests.support.routers import PeerSettings, RouterSettings
from tests.support.routers.base import IPV4
from tests.support.routers.bird import Bird
from tests.support.wait import eventually

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

OURS, THEIRS, PORT = "10.99.0.1", "10.99.0.11", 1790


def test_bird_holds_the_services_of_a_beacon(
    link: Link, need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router("bird")
    for end, address in ((link.left, OURS), (link.right, THEIRS)):
        end.add_address(f"{address}/24")
    settings = RouterSettings(65000, "192.0.2.9", (THEIRS,), (PeerSettings(OURS, 65001),), PORT)
    with Bird(settings, link.right, tmp_path / "bird") as bird:
        it = Agent(
            link.left,
            tmp_path / "agent",
            node=NODE,
            arguments=("--enable-cell", "beacon", "--beacon-community=4259840099"),
            program=("tests.dialects.cells", "agent"),
        )
        configured = (node(), beacon(peerAddress=THEIRS, peerPort=PORT))
        it.write_objects("all.json", *configured, service("web", "198.51.100.1"))
        it.start()
        try:

            def holds(*prefixes: str) -> None:
                routes = bird.routes(IPV4)
                assert sorted(routes) == sorted(prefixes)
                for route in routes.values():
                    assert (route.as_path, route.communities) == ((65001,), frozenset({"65000:99"}))

            eventually(
                lambda: holds("198.51.100.1/32"),
                context=lambda: f"{it.peers()} {it.daemon.tail()}",
            )
            it.write_objects("all.json", *configured, service("web", "198.51.100.2"))
            eventually(lambda: holds("198.51.100.2/32"), context=it.daemon.tail)
        finally:
            it.stop()
