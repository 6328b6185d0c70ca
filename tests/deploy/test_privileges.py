"""The agent with the rights of its Pod alone: root with one capability, on a read-only disk."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from deploy.generate import MANIFESTS
from tests.reconcilers.build import cluster_config, node, peer, peer_config
from tests.support import plain_yaml
from tests.support.agent import Agent
from tests.support.daemon import Daemon
from tests.support.netns import DEVICE, Link, Namespace
from tests.support.wait import NotReadyError, eventually

pytestmark = [pytest.mark.netns, pytest.mark.program]

CONFINE = """
mount --make-rprivate /
mount --bind "$1" "$1"
mount -o remount,bind,ro /
bounds=$2
shift 2
exec setpriv --bounding-set="$bounds" --inh-caps=-all --no-new-privs -- "$@"
"""
"""Run in a mount namespace of its own: $1 stays writable, $2 are the capabilities."""
CONNECT = """
import socket, sys
from tests.support import plain_yaml
with socket.create_connection(("192.0.2.1", 179), timeout=60, source_address=("192.0.2.2", 0)) as s:
    print(s.recv(19).hex())
"""


def security() -> dict[str, Any]:
    """Give the security context of the agent's container, from the plain manifests."""
    documents = plain_yaml.load_all(MANIFESTS.read_text())
    (found,) = [d["spec"]["template"]["spec"] for d in documents if d["kind"] == "DaemonSet"]
    context: dict[str, Any] = found["containers"][0]["securityContext"]
    return {**found["securityContext"], **context}


class Confined(Agent):
    """An agent as in a container."""

    def __init__(self, namespace: Namespace, directory: Path, capabilities: list[str]) -> None:
        super().__init__(namespace, directory)
        run = directory / "run"
        run.mkdir()
        self.socket = run / "api"
        bounds = ",".join(["-all", *(f"+{name.lower()}" for name in capabilities)])
        self.daemon = Daemon(
            "waggle-agent",
            [
                "sh", "-euc", CONFINE, "sh", run, bounds,
                sys.executable, "-m", "waggle_agent",
                "--manifests", self.manifests,
                "--node-name", "n1",
                "--api-socket", self.socket,
            ],
            log=directory / "log",
            namespace=namespace,
            environment={"PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip


@pytest.fixture
def rack(link: Link) -> Link:
    """A node and its router, next to each other."""
    link.connect("192.0.2.1", "192.0.2.2")
    return link


def start(rack: Link, directory: Path, capabilities: list[str]) -> Confined:
    """Start an agent that listens on port 179, for one peer with and one without a password."""
    agent = Confined(rack.left, directory, capabilities)
    peers = [
        peer("plain", peerAddress="192.0.2.2"),
        peer("secret", peerAddress="192.0.2.3", peerConfigRef={"name": "with-password"}),
    ]
    config = cluster_config(peers=peers)
    config["spec"]["bgpInstances"][0]["localPort"] = 179
    entry = {"advertisementType": "Interface", "interface": {"name": DEVICE}}
    addresses = {
        "metadata": {"name": "ad", "labels": {"advertise": "ad"}},
        "spec": {"advertisements": [entry]},
    }
    password = {"metadata": {"name": "s", "namespace": "kube-system"}, "data": {"password": "eA=="}}
    cilium = {"apiVersion": "cilium.io/v2"}
    agent.write_objects(
        "all.json",
        {"apiVersion": "v1", "kind": "Node", **node("n1")},
        {**cilium, "kind": "CiliumBGPClusterConfig", **config},
        {**cilium, "kind": "CiliumBGPPeerConfig", **peer_config()},
        {
            **cilium,
            "kind": "CiliumBGPPeerConfig",
            **peer_config("with-password", authSecretRef="s"),
        },
        {**cilium, "kind": "CiliumBGPAdvertisement", **addresses},
        {"apiVersion": "v1", "kind": "Secret", **password},
    )
    agent.start()
    agent.wait_ready()
    return agent


def test_one_capability_suffices(rack: Link, tmp_path: Path) -> None:
    context = security()
    assert (context["runAsUser"], context["readOnlyRootFilesystem"]) == (0, True)
    agent = start(rack, tmp_path, context["capabilities"]["add"])
    try:
        # It listens: what comes in answer to a connection is an OPEN.
        answer = eventually(lambda: _connect(rack), context=agent.daemon.tail)
        assert (answer[:32], answer[36:]) == ("ff" * 16, "01")
        # The kernel accepts a password, and reports interfaces.
        eventually(lambda: _check_reason(agent, "secret", "unreachable"))
        eventually(lambda: _check_advertises(agent, "192.0.2.1/32"), context=agent.daemon.tail)
    finally:
        assert agent.daemon.stop() == 0


def test_without_it_the_agent_is_degraded_and_continues(rack: Link, tmp_path: Path) -> None:
    agent = start(rack, tmp_path, [])
    try:
        eventually(lambda: _check_listener_told(agent), context=agent.daemon.tail)
        # It still connects to its peers.
        eventually(lambda: _check_reason(agent, "plain", "connection refused"))
    finally:
        assert agent.daemon.stop() == 0


def _connect(rack: Link) -> str:
    try:
        return rack.right.run(sys.executable, "-c", CONNECT).strip()
    except RuntimeError as error:
        raise NotReadyError(str(error)) from None


def _check_listener_told(agent: Agent) -> None:
    listener = agent.health().get("speaker/i/listener 0.0.0.0:179", {})
    assert listener.get("level") == "degraded"
    assert listener.get("message") == (
        "listen on 0.0.0.0 port 179: permission denied: a port below 1024 needs the capability "
        "NET_BIND_SERVICE (or root): set another port"
    )


def _check_advertises(agent: Agent, prefix: str) -> None:
    assert prefix in {route["prefix"] for route in agent.routes("available")}


def _check_reason(agent: Agent, peer: str, text: str) -> None:
    assert text in agent.peers()[peer].get("reason", "")
