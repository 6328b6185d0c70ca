"""An agent as a program against a real API server: its status, its Events, and its role."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cells.api.client import at_socket
from tests.cmd.lab import NODE, configuration, routers, service
from tests.support.daemon import Daemon
from tests.support.kubernetes.accounts import access, define, grant, put, rules, undefine
from tests.support.kubernetes.server import KubeApiServer
from tests.support.wait import eventually

pytestmark = [pytest.mark.apiserver, pytest.mark.program, pytest.mark.timeout(300)]

CILIUM = "/apis/cilium.io/v2"
NODE_CONFIG = f"{CILIUM}/ciliumbgpnodeconfigs/{NODE}"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
ACCOUNT = "agent-of-the-test"


@pytest.fixture
def server(apiserver: KubeApiServer) -> Iterator[KubeApiServer]:
    """A server with our definitions, and an account of an agent."""
    made = define(apiserver)
    for scope in ("Cluster", ""):
        grant(apiserver, ACCOUNT, scope, rules("agent", scope))
    yield apiserver
    undefine(apiserver, made)
    for path in (f"/api/v1/nodes/{NODE}", "/api/v1/namespaces/shop/services/web"):
        apiserver.request("DELETE", path)


def node_config(peers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    instance = {"name": "main", "localASN": 65001, "routerID": "192.0.2.11", "peers": list(peers)}
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumBGPNodeConfig",
        "metadata": {"name": NODE},
        "spec": {"bgpInstances": [instance]},
    }


def fill(server: KubeApiServer, ports: Sequence[int]) -> None:
    """Put in what an operator and people would: a NodeConfig, and what it refers to."""
    put(
        server,
        "/api/v1/nodes",
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}},
    )
    for item in configuration(ports):
        match item["kind"]:
            case "CiliumBGPClusterConfig":
                (instance,) = item["spec"]["bgpInstances"]
                put(server, f"{CILIUM}/ciliumbgpnodeconfigs", node_config(instance["peers"]))
            case "CiliumBGPPeerConfig":
                put(server, f"{CILIUM}/ciliumbgppeerconfigs", item)
            case "CiliumBGPAdvertisement":
                put(server, f"{CILIUM}/ciliumbgpadvertisements", item)
    put(
        server,
        "/api/v1/namespaces",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
    )
    web = service("web", "198.51.100.10")
    status = web.pop("status")
    put(server, "/api/v1/namespaces/shop/services", web)
    answer = server.request(
        "PATCH",
        "/api/v1/namespaces/shop/services/web/status",
        {"status": status},
        kind="merge-patch+json",
    )
    assert answer.ok, answer.body


def agent(server: KubeApiServer, directory: Path, *arguments: str) -> Daemon:
    return Daemon(
        "waggle-agent",
        [
            sys.executable,
            "-m",
            "waggle_agent",
            "--kubeconfig",
            access(server, ACCOUNT, directory / "kubeconfig"),
            "--node-name",
            NODE,
            "--api-socket",
            directory / "api",
            *arguments,
        ],
        log=directory / "agent.log",
    )


def status(server: KubeApiServer) -> dict[str, Any]:
    found: dict[str, Any] = server.request("GET", NODE_CONFIG).body.get("status", {})
    return found


def peer(server: KubeApiServer, name: str = "tor-1") -> dict[str, Any]:
    instances = status(server).get("bgpInstances", [])
    peers = [p for instance in instances for p in instance.get("peers", []) if p["name"] == name]
    return peers[0] if peers else {}


def error(server: KubeApiServer) -> tuple[str, str]:
    (condition,) = status(server).get("conditions", [{}])
    return condition.get("status", ""), condition.get("message", "")


def events(server: KubeApiServer) -> dict[str, dict[str, Any]]:
    """Return the Events of our objects, by reason."""
    items = server.request("GET", EVENTS).body["items"]
    return {i["reason"]: i for i in items if i["reportingController"] == "waggle.dev/agent"}


def soon(check: Callable[[], object], daemon: Daemon) -> None:
    def checked() -> None:
        assert check()

    eventually(checked, within=90, interval=0.2, context=daemon.tail)


def test_sessions_show_in_the_status_and_in_events(server: KubeApiServer, tmp_path: Path) -> None:
    with routers(tmp_path, 1) as ports:
        fill(server, ports)
        daemon = agent(server, tmp_path)
        daemon.start()
        try:
            soon(lambda: peer(server).get("peeringState") == "established", daemon)
            soon(lambda: peer(server)["routeCount"][0]["advertised"] == 1, daemon)
            found = peer(server)
            assert found["peerASN"] == 65000
            assert found["timers"] == {
                "appliedHoldTimeSeconds": 90,
                "appliedKeepaliveSeconds": 30,
            }
            assert found["establishedTime"].endswith("Z")
            assert error(server) == ("False", "")
            soon(lambda: "SessionEstablished" in events(server), daemon)
            up = events(server)["SessionEstablished"]
            uid = server.request("GET", NODE_CONFIG).body["metadata"]["uid"]
            assert up["regarding"]["uid"] == uid
            assert up["note"] == "instance main, peer tor-1 (127.0.0.2, AS 65000) is Established"
            # kubectl shows it with the object.
            assert "SessionEstablished" in server.kubectl("describe", "ciliumbgpnodeconfig", NODE)

            # Configuration that cannot be followed is a condition, and an Event on it.
            stray = {"name": "stray", "peerAddress": "127.0.0.9", "peerConfigRef": {"name": "no"}}
            spec = server.request("GET", NODE_CONFIG).body["spec"]["bgpInstances"][0]["peers"]
            put(server, f"{CILIUM}/ciliumbgpnodeconfigs", node_config([*spec, stray]))
            soon(lambda: error(server)[0] == "True", daemon)
            assert "peer 'stray' is not configured" in error(server)[1]
            soon(lambda: "RejectedConfiguration" in events(server), daemon)
            assert peer(server)["peeringState"] == "established"
            before = status(server)["conditions"][0]["lastTransitionTime"]

            # Of what it is after a restart, too, nothing is lost.
            since = found["establishedTime"]
            daemon.stop()
            daemon.start()
            soon(lambda: peer(server).get("establishedTime", since) > since, daemon)
            assert status(server)["conditions"][0]["lastTransitionTime"] == before
            assert "forbidden" not in daemon.tail()
        finally:
            daemon.stop()
    # Switched off, it is cleared once, and never written again.
    quiet = agent(server, tmp_path, "--status-report=false", "--events=false")
    quiet.start()
    try:
        soon(lambda: status(server) == {}, quiet)
        version = server.request("GET", NODE_CONFIG).body["metadata"]["resourceVersion"]
        answer = functools.partial(at_socket(tmp_path / "api").get, "/v1/status", {})
        soon(lambda: "switched off" in answer()["items"][0]["reporting"], quiet)
        assert server.request("GET", NODE_CONFIG).body["metadata"]["resourceVersion"] == version
    finally:
        quiet.stop()


def test_a_forbidden_write_is_named_and_stops_nothing(
    server: KubeApiServer, tmp_path: Path
) -> None:
    grant(
        server,
        ACCOUNT,
        "Cluster",
        [rule for rule in rules("agent", "Cluster") if "patch" not in rule["verbs"]],
    )
    with routers(tmp_path, 1) as ports:
        fill(server, ports)
        daemon = agent(server, tmp_path, "--http-address=0")
        daemon.start()
        try:
            soon(
                lambda: (
                    "may not patch ciliumbgpnodeconfigs/status" in daemon.tail()
                    and "may not create events" in daemon.tail()
                    and "event=peer.up" in daemon.tail()
                ),
                daemon,
            )
        finally:
            daemon.stop()
    assert status(server) == {}
