"""Two API dialects that want one BIRD as their peer, and one port: one session, which stays."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.dialects.objects import beacon
from tests.interop.conftest import NeedRouter
from tests.interop.transport_lab import ASN, HERE, OURS, PORT, give_addresses, router_for
from tests.reconcilers.metallb.objects import peer as bgp_peer
from tests.support import plain_yaml
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
NOWHERE = 1799
"""A port of the router at which nothing listens: it has to connect."""
CONFIGURATION: dict[str, Any] = {
    "apiVersion": "frrk8s.metallb.io/v1beta1",
    "kind": "FRRConfiguration",
    "metadata": {"name": "own", "namespace": "frr-k8s-system"},
}
NEIGHBOR: dict[str, Any] = {
    "address": ADDRESS,
    "asn": PEER_ASN,
    "port": PORT,
    "sourceaddress": OURS[0],
    "connectTime": "1s",
}
FRR_CONFIGURATION: dict[str, Any] = {
    **CONFIGURATION,
    "spec": {"bgp": {"routers": [{"asn": ASN, "neighbors": [NEIGHBOR]}]}},
}
BGP_PEER = bgp_peer(
    "tor",
    ADDRESS,
    myASN=ASN,
    peerASN=PEER_ASN,
    peerPort=PORT,
    sourceAddress=OURS[0],
    connectTime="1s",
)


def cilium(*, listens: bool = False) -> list[dict[str, Any]]:
    """Return the lab's objects with one peer; the first one is the node.

    ``listens``: the instance listens, and does not connect.
    """
    objects = list(plain_yaml.load_all((HERE / "bgp.yaml").read_text()))
    (config,) = (one for one in objects if one["kind"] == "CiliumBGPClusterConfig")
    (instance,) = config["spec"]["bgpInstances"]
    instance["peers"] = [peer for peer in instance["peers"] if peer["name"] == PEER]
    if listens:
        instance["localPort"] = PORT
        (peer_config,) = (one for one in objects if one["kind"] == "CiliumBGPPeerConfig")
        peer_config["spec"]["transport"]["peerPort"] = NOWHERE
    return objects


class Two:
    """An agent with several dialects, and the router."""

    def __init__(self, agent: Agent, router: Router) -> None:
        self.agent, self.router = agent, router

    def check(self, *names: str) -> None:
        """Check that the agent has these peers, and that the router has a session with it."""
        ours = self.agent.peers()
        assert set(ours) == set(names)
        assert ours[names[0]]["state"] == "Established", ours
        (theirs,) = self.router.peers().values()
        assert theirs.established

    def has(self, name: str) -> None:
        """Wait until this peer alone is there, and established."""
        eventually(lambda: self.check(name), context=self.logs)

    def token(self) -> object:
        """Return something that changes when the session is established anew."""
        (theirs,) = self.router.peers().values()
        return theirs.uptime_token

    def restart(self) -> None:
        """Kill the agent, and start it."""
        self.agent.daemon.kill()
        self.agent.start()
        self.agent.wait_ready()

    def reports(self, *texts: str, objects: tuple[str, ...] = ()) -> None:
        """Wait until these are the problems of the agent; each names all objects."""

        def check() -> None:
            (item,) = self.agent.ask("/v1/status")
            found = item.get("problems", [])
            messages = sorted(one["message"] for one in found)
            assert len(messages) == len(texts), messages
            assert all(text in message for text, message in zip(texts, messages, strict=True))
            for one in found:
                assert set(one["objects"]) == set(objects), one

        eventually(check, context=self.logs)

    def logs(self) -> str:
        """Return the ends of the logs."""
        return f"{self.agent.daemon.tail()}\n{self.router.daemon.tail()}"


@pytest.fixture(scope="module")
def running(need_router: NeedRouter, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    """Run an agent with four dialects and a test dialect, and a BIRD that connects."""
    need_router("bird")
    directory = tmp_path_factory.mktemp("two")
    with linked_namespaces() as link, contextlib.ExitStack() as stack:
        give_addresses(link)
        agent = Agent(
            link.left,
            directory / "agent",
            program=("tests.dialects.dialect_programs", "agent"),
            arguments=(
                *("--enable-cell", "beacon", "--enable-cell", "frrk8s", "--enable-cell", "metallb"),
                *("--state-directory", str(directory / "state")),
            ),
        )
        agent.write_objects("node.json", cilium()[0])
        router = router_for("bird", PEER, link, directory, passive=False)
        for part in (agent, router):
            part.start()
            stack.callback(part.stop)
            part.wait_ready()
        yield Two(agent, router)


@pytest.fixture
def two(running: Two) -> Two:
    """The agent without configuration."""
    for path in running.agent.manifests.iterdir():
        if path.name != "node.json":
            running.agent.remove(path.name)
    eventually(lambda: _has_no_peers(running), context=running.logs)
    return running


def _has_no_peers(two: Two) -> None:
    assert two.agent.peers() == {}


CLUSTER = "CiliumBGPNodeConfig/test-node"


def test_the_first_one_keeps_the_peer_and_the_port_until_it_goes(two: Two) -> None:
    agent = two.agent
    own = beacon("test-node", asn=ASN, **ROUTER | {"peerPort": NOWHERE}, listenPort=PORT)
    objects = {PEER: ("cilium.json", cilium(listens=True)[1:]), "router": ("beacon.json", [own])}
    names = {PEER: ("main", CLUSTER), "router": ("beacon", "Beacon/test-node")}
    agent.write_objects("cilium.json", *objects[PEER][1])
    two.has(PEER)
    for owner, later in ((PEER, "router"), ("router", PEER)):
        token = two.token()
        file, rows = objects[later]
        agent.write_objects(file, *rows)
        (of_owner, its), (of_later, _) = names[owner], names[later]

        def left_out() -> None:
            two.reports(
                f"instance '{of_later}' does not listen: port {PORT} belongs to "  # noqa: B023
                f"instance '{of_owner}' of {its}",  # noqa: B023
                f"peer '{later}' is not configured: its address {ADDRESS} belongs to "  # noqa: B023
                f"peer '{owner}' of {its}",  # noqa: B023
                objects=(CLUSTER, "Beacon/test-node"),
            )

        left_out()
        (explained,) = agent.ask("/v1/explain", peer=later)
        assert explained["reason"] == "LeftOut"
        assert f"its address {ADDRESS} belongs to peer '{owner}'" in explained["message"]
        settles(lambda owner=owner: two.check(owner), stays=1.0)  # type: ignore[misc]
        assert two.token() == token
        # Without the memory the other one would win, see below.
        two.restart()
        two.has(owner)
        left_out()
        agent.remove(objects[owner][0])
        two.has(later)
        two.reports()
        if later == "router":
            # So far neither has an age, and its kind comes first; from now on it is the younger one.
            agent.write_objects(file, beacon("test-node", "2026-11-01T00:00:00Z", **own["spec"]))


def test_an_object_of_each_dialect_and_a_cluster_config_in_both_orders_each_over_a_restart(
    two: Two,
) -> None:
    agent = two.agent
    _, *configuration = cilium()
    agent.write_objects("frr.json", FRR_CONFIGURATION)
    two.has(ADDRESS)
    # The peer's owner, the later dialect, and the objects that the problem names.
    orders: list[tuple[str, str, str, list[dict[str, Any]], str]] = [
        (ADDRESS, "frr.json", PEER, configuration, "FRRConfiguration/frr-k8s-system/own"),
        (PEER, "cilium.json", ADDRESS, [BGP_PEER], "BGPPeer/metallb-system/tor"),
    ]
    for owner, file, later, rows, other in orders:
        token = two.token()
        agent.write_objects("cilium.json" if later == PEER else "metallb.json", *rows)
        text = f"peer '{later}' is not configured: its address {ADDRESS} belongs to peer '{owner}'"
        two.reports(text, objects=(CLUSTER, other))
        two.check(owner)
        assert two.token() == token
        two.restart()
        two.has(owner)
        two.reports(text, objects=(CLUSTER, other))
        agent.remove(file)
        two.has(later)
