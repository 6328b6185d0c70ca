"""MetalLB's objects contradict each other, and the agent is killed: BIRD keeps the last good state."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.conftest import NeedRouter
from tests.reconcilers.metallb.objects import advertisement, peer, pool
from tests.reconcilers.metallb.test_node import endpoints, service
from tests.support.agent import Agent
from tests.support.netns import linked_namespaces
from tests.support.routers import KINDS, PeerSettings, Router, RouterSettings
from tests.support.wait import eventually

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

OURS, THEIRS, ASN, PEER_ASN, PORT = "10.96.1.1", "10.96.1.11", 64900, 64950, 1790
NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "test-node"},
    "status": {"addresses": [{"type": "InternalIP", "address": OURS}]},
}
WEB, API, NEW = "198.18.30.5/32", "198.18.30.6/32", "198.18.31.7/32"


class Running:
    """The agent and BIRD."""

    def __init__(self, agent: Agent, router: Router) -> None:
        self.agent, self.router = agent, router

    def holds(self, *prefixes: str) -> None:
        """Wait until BIRD has the session, and exactly these prefixes."""
        eventually(lambda: self._check(prefixes), context=self.logs)

    def _check(self, prefixes: tuple[str, ...]) -> None:
        (session,) = self.router.peers().values()
        assert session.established
        assert set(self.router.routes("ipv4-unicast", OURS)) == set(prefixes)

    def token(self) -> str:
        """Return what changes with each new session."""
        (session,) = self.router.peers().values()
        return session.uptime_token

    def settings(self) -> dict[str, Any]:
        """Return the settings of the agent's only peer."""
        (one,) = self.agent.peers().values()
        names = ("address", "peerASN", "localASN", "peerPort", "families", "configuredHoldTime")
        return {name: one[name] for name in names if name in one}

    def conflicts(self, text: str) -> None:
        """Wait until the agent reports a problem with this text."""
        eventually(lambda: self._conflicts(text), context=self.logs)

    def _conflicts(self, text: str) -> None:
        (status,) = self.agent.ask("/v1/status")
        assert any(text in one["message"] for one in status.get("problems", ()))

    def logs(self) -> str:
        """Return the ends of the logs."""
        return f"{self.agent.daemon.tail()}\n{self.router.daemon.tail()}"


@pytest.fixture
def it(need_router: NeedRouter, tmp_path: Path) -> Iterator[Running]:
    need_router("bird")
    with linked_namespaces() as link, contextlib.ExitStack() as stack:
        link.left.add_address(f"{OURS}/24")
        link.right.add_address(f"{THEIRS}/24")
        cells = ("--disable-cell", "cilium", "--enable-cell", "frrk8s", "--enable-cell", "metallb")
        state = ("--state-directory", str(tmp_path / "state"))
        agent = Agent(link.left, tmp_path / "agent", arguments=(*cells, *state))
        settings = PeerSettings(OURS, ASN, port=PORT)
        router = KINDS["bird"](
            RouterSettings(PEER_ASN, THEIRS, (THEIRS,), (settings,), PORT),
            link.right,
            tmp_path / "bird",
        )
        tor = peer("tor", THEIRS, peerPort=PORT, connectTime="1s")
        agent.write_objects("node.json", NODE)
        agent.write_objects(
            "metallb.json", tor, pool("front", "198.18.30.0/24"), advertisement("all")
        )
        agent.write_objects("web.json", service("web", "198.18.30.5"), endpoints("web"))
        for part in (router, agent):
            part.start()
            stack.callback(part.stop)
            part.wait_ready()
        yield Running(agent, router)


def test_the_last_good_state_stays_over_a_kill_and_services_come_and_go(it: Running) -> None:
    it.holds(WEB)
    token, settings = it.token(), it.settings()

    # Two pools overlap: neither the new pool nor a new peer counts.
    more = [pool("wide", "198.18.30.0/23"), peer("other", "10.96.1.12", connectTime="1s")]
    it.agent.write_objects("more.json", *more)
    it.conflicts("pools overlap")
    it.agent.write_objects("new.json", service("new", "198.18.31.7"), endpoints("new"))
    it.agent.write_objects("api.json", service("api", "198.18.30.6"), endpoints("api"))
    it.holds(WEB, API)
    assert it.token() == token

    it.agent.daemon.kill()
    it.agent.remove("web.json")
    it.agent.start()
    it.agent.wait_ready()
    it.holds(API)
    assert it.settings() == settings
    it.conflicts("pools overlap")

    token = it.token()
    it.agent.write_objects("more.json", pool("wide", "198.18.31.0/24"))
    it.holds(API, NEW)
    assert it.token() == token
