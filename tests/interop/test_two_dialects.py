"""Two API dialects that want one BIRD as their peer: one session, which stays."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.dialects.objects import beacon
from tests.interop.conftest import NeedRouter
from tests.interop.lab import ASN, HERE, OURS, PORT, give_addresses, router_for
from tests.support.agent import Agent
from tests.support.netns import linked_namespaces
from tests.support.routers import Router
from tests.support.wait import eventually, settles

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

PEER = "ebgp-ipv4"
ADDRESS, PEER_ASN = "10.99.0.11", 65101
ROUTER: dict[str, Any] = {
    "peerAddress": ADDRESS,
    "peerASN": PEER_ASN,
    "peerPort": PORT,
    "localAddress": OURS[0],
}
BEACON = beacon("test-node", asn=ASN, **ROUTER)


def cilium() -> list[dict[str, Any]]:
    """Return the lab's objects with one peer; the first one is the node."""
    objects = list(yaml.safe_load_all((HERE / "bgp.yaml").read_text()))
    (config,) = (one for one in objects if one["kind"] == "CiliumBGPClusterConfig")
    (instance,) = config["spec"]["bgpInstances"]
    instance["peers"] = [peer for peer in instance["peers"] if peer["name"] == PEER]
    return objects


class Two:
    """An agent with two dialects, and the router."""

    def __init__(self, agent: Agent, router: Router) -> None:
        self.agent, self.router = agent, router

    def check(self, *names: str) -> None:
        """Check that the agent has these peers, and that the router has a session with it."""
        ours = self.agent.peers()
        assert set(ours) == set(names)
        assert ours[names[0]]["state"] == "Established", ours
        (theirs,) = self.router.peers().values()
        assert theirs.established

    def token(self) -> object:
        """Return something that changes when the session is established anew."""
        (theirs,) = self.router.peers().values()
        return theirs.uptime_token

    def problems(self) -> list[str]:
        """Return the degraded parts of the agent."""
        (item,) = self.agent.ask("/v1/status")
        return [part["message"] for part in item.get("degraded", [])]

    def logs(self) -> str:
        """Return the ends of the logs."""
        return f"{self.agent.daemon.tail()}\n{self.router.daemon.tail()}"


@pytest.fixture
def two(need_router: NeedRouter, tmp_path: Path) -> Iterator[Two]:
    """The agent, which reads no configuration yet, and BIRD."""
    need_router("bird")
    with linked_namespaces() as link, contextlib.ExitStack() as stack:
        give_addresses(link)
        agent = Agent(
            link.left,
            tmp_path / "agent",
            program=("tests.dialects.cells", "agent"),
            arguments=("--enable-cell", "beacon", "--state-directory", str(tmp_path / "state")),
        )
        router = router_for("bird", PEER, link, tmp_path)
        for part in (agent, router):
            part.start()
            stack.callback(part.stop)
            part.wait_ready()
        yield Two(agent, router)


def test_a_session_stays_up_when_another_dialect_wants_its_peer_and_passes_on_when_it_goes(
    two: Two,
) -> None:
    agent = two.agent
    node, *configuration = cilium()
    agent.write_objects("node.json", node)
    agent.write_objects("cilium.json", *configuration)
    eventually(lambda: two.check(PEER), context=two.logs)
    token = two.token()

    agent.write_objects("beacon.json", BEACON)
    eventually(lambda: _check_left_out(two, "router"), context=two.logs)
    (explained,) = agent.ask("/v1/explain", peer="router")
    assert explained["reason"] == "LeftOut"
    assert explained["message"] == (
        f"peer 'router' is left out: its address {ADDRESS} belongs to peer 'ebgp-ipv4' of "
        "CiliumBGPNodeConfig/test-node (dialect cilium) until that peer is removed"
    )
    settles(lambda: two.check(PEER), stays=2.0)
    assert two.token() == token

    # Also over a restart, after which both are new.
    agent.stop()
    agent.start()
    agent.wait_ready()
    eventually(lambda: two.check(PEER), context=two.logs)

    agent.remove("cilium.json")
    eventually(lambda: two.check("router"), context=two.logs)
    eventually(lambda: _check_nothing_wrong(two))
    token = two.token()

    # Now the other one is the owner.
    agent.write_objects("cilium.json", *configuration)
    eventually(lambda: _check_left_out(two, PEER), context=two.logs)
    settles(lambda: two.check("router"), stays=1.0)
    assert two.token() == token
    agent.remove("beacon.json")
    eventually(lambda: two.check(PEER), context=two.logs)


def _check_left_out(two: Two, name: str) -> None:
    """Check that health names one problem: this peer is left out."""
    found = two.problems()
    assert len(found) == 1
    assert f"peer '{name}' is left out: its address {ADDRESS} belongs to peer " in found[0]


def _check_nothing_wrong(two: Two) -> None:
    assert two.problems() == []
