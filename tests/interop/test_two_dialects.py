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
    """An agent with Cilium's dialect and a test dialect, without configuration yet, and BIRD."""
    with running(need_router, tmp_path, "beacon", "tests.dialects.cells", "agent") as found:
        yield found


@pytest.fixture
def two_of_the_agent(need_router: NeedRouter, tmp_path: Path) -> Iterator[Two]:
    """An agent with the dialects of Cilium and FRR-k8s, without configuration yet, and BIRD."""
    with running(need_router, tmp_path, "frrk8s", "waggle_agent") as found:
        yield found


@contextlib.contextmanager
def running(need_router: NeedRouter, tmp_path: Path, dialect: str, *program: str) -> Iterator[Two]:
    need_router("bird")
    with linked_namespaces() as link, contextlib.ExitStack() as stack:
        give_addresses(link)
        agent = Agent(
            link.left,
            tmp_path / "agent",
            program=program,
            arguments=("--enable-cell", dialect, "--state-directory", str(tmp_path / "state")),
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

    agent.remove("cilium.json")
    eventually(lambda: two.check("router"), context=two.logs)
    eventually(lambda: _check_nothing_wrong(two))


FRR_CONFIGURATION: dict[str, Any] = {
    "apiVersion": "frrk8s.metallb.io/v1beta1",
    "kind": "FRRConfiguration",
    "metadata": {"name": "own", "namespace": "frr-k8s-system"},
    "spec": {
        "bgp": {
            "routers": [
                {
                    "asn": ASN,
                    "neighbors": [
                        {
                            "address": ADDRESS,
                            "asn": PEER_ASN,
                            "port": PORT,
                            "sourceaddress": OURS[0],
                            "connectTime": "1s",
                        }
                    ],
                }
            ]
        }
    },
}


def test_an_frr_configuration_and_a_cluster_config_in_both_orders_each_over_a_restart(
    two_of_the_agent: Two,
) -> None:
    two = two_of_the_agent
    agent = two.agent
    node, *configuration = cilium()
    agent.write_objects("node.json", node)
    objects = {PEER: ("cilium.json", configuration), ADDRESS: ("frr.json", [FRR_CONFIGURATION])}
    name, rows = objects[ADDRESS]
    agent.write_objects(name, *rows)
    eventually(lambda: two.check(ADDRESS), context=two.logs)
    for owner, later in ((ADDRESS, PEER), (PEER, ADDRESS)):
        token = two.token()
        name, rows = objects[later]
        agent.write_objects(name, *rows)
        eventually(lambda later=later: _check_left_out(two, later), context=two.logs)  # type: ignore[misc]
        two.check(owner)
        assert two.token() == token
        agent.daemon.kill()
        agent.start()
        agent.wait_ready()
        eventually(lambda owner=owner: two.check(owner), context=two.logs)  # type: ignore[misc]
        eventually(lambda later=later: _check_left_out(two, later), context=two.logs)  # type: ignore[misc]
        agent.remove(objects[owner][0])
        eventually(lambda later=later: two.check(later), context=two.logs)  # type: ignore[misc]


def _check_left_out(two: Two, name: str) -> None:
    """Check that health names one problem: this peer is left out."""
    found = two.problems()
    assert len(found) == 1
    assert f"peer '{name}' is left out: its address {ADDRESS} belongs to peer " in found[0]


def _check_nothing_wrong(two: Two) -> None:
    assert two.problems() == []
