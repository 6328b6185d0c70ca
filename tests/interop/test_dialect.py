"""An agent with a test dialect and BIRD: a Beacon and a Service are a session and a route.

The local address of the session is no route, also while the session is down.
"""

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
            program=("tests.dialects.dialect_programs", "agent"),
        )
        configured = (node(), beacon(peerAddress=THEIRS, peerPort=PORT))
        # The Node has no address: that the kernel uses this one is known from the session.
        it.write_objects("all.json", *configured, service("web", "198.51.100.1", OURS))
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
            it.write_objects("all.json", *configured, service("web", "198.51.100.2", OURS))
            eventually(lambda: holds("198.51.100.2/32"), context=it.daemon.tail)
            bird.stop()
            eventually(lambda: _check_down(it))
            _check_withheld(it, "198.51.100.2/32")
            bird.start()
            eventually(lambda: holds("198.51.100.2/32"), context=it.daemon.tail)
            _check_withheld(it, "198.51.100.2/32")
        finally:
            it.stop()


def _check_down(it: Agent) -> None:
    (peer,) = it.peers().values()
    assert peer["state"] != "Established"


def _check_withheld(it: Agent, *prefixes: str) -> None:
    assert sorted(route["prefix"] for route in it.routes("available")) == sorted(prefixes)
    (item,) = it.ask("/v1/status")
    (problem,) = item["problems"]
    assert problem["objects"] == ["Service/shop/web"]
    text = f"{OURS} is not advertised by node node-1: it is an address of this node"
    assert problem["message"] == text
