"""docs/install.md: its commands on a real API server, and the route at the end.

There is no kubelet: what would run in Pods runs here, as the accounts and with the settings that helm
has put into the cluster. What needs a Pod, and an image, is skipped by name.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from cells.api.client import AgentError, at_socket
from tests.cmd.lab import NODE
from tests.support.daemon import Daemon
from tests.support.helm import Helm
from tests.support.kubernetes import assets
from tests.support.kubernetes.accounts import CRDS, RBAC, put
from tests.support.kubernetes.assets import Assets
from tests.support.kubernetes.server import KubeApiServer
from tests.support.ports import free_port
from tests.support.wait import NotReadyError, eventually

pytestmark = [
    pytest.mark.apiserver,
    pytest.mark.helm,
    pytest.mark.program,
    pytest.mark.timeout(300),
]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "install.md").read_text()
NAMESPACE = "waggle-docs"
"""In place of the page's, so that tests on the same server do not meet."""
PLACES = {
    "clusterroles": f"{RBAC}/clusterroles",
    "configmaps": f"/api/v1/namespaces/{NAMESPACE}/configmaps",
    "crds": CRDS,
    "ciliumbgpnodeconfigs": "/apis/cilium.io/v2/ciliumbgpnodeconfigs",
    "daemonsets": f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets",
    "deployments": f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
    "events": "/apis/events.k8s.io/v1/namespaces/default/events",
    "rolebindings": f"{RBAC}/namespaces/{NAMESPACE}/rolebindings",
    "roles": f"{RBAC}/namespaces/{NAMESPACE}/roles",
}
"""Where objects of a kind are listed."""
WITHOUT_KUBELET = re.compile(r"rollout status|delete namespace")
"""Commands that wait for Pods, or for a controller that does not run here."""


def blocks(heading: str, language: str) -> list[str]:
    """Give the blocks of code under a heading."""
    _, _, rest = PAGE.partition(f"\n## {heading}\n")
    assert rest, f"docs/install.md has no section {heading}"
    section = rest.partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


@dataclass
class Reader:
    """A reader who follows the page."""

    server: KubeApiServer
    directory: Path

    def do(self, heading: str) -> dict[str, str]:
        """Run the commands of a section; what each printed."""
        printed = {}
        for line in "".join(blocks(heading, "sh")).splitlines():
            if not WITHOUT_KUBELET.search(line):
                printed[line] = self.run(line.replace("waggle-system", NAMESPACE))
        assert printed
        return printed

    def run(self, line: str) -> str:
        """Run a command; one in a Pod of the agent uses the agent that runs here."""
        _, inside, command = line.partition("exec daemonset/waggle-agent -- ")
        if inside:
            line = f"{command} --socket {self.directory / 'api'}"
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            cwd=self.directory,
            env={
                "HOME": str(self.directory),
                "KUBECONFIG": str(self.server.kubeconfig),
                "PATH": f"{self.directory / 'bin'}:{os.environ['PATH']}",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 or line.startswith("waggle status"), f"{line}\n{done.stderr}"
        return done.stdout

    def get(self, plural: str) -> list[dict[str, Any]]:
        """List objects of a kind, of the namespace where it has one."""
        answer = self.server.request("GET", PLACES[plural])
        assert answer.ok, answer.body
        items: list[dict[str, Any]] = answer.body["items"]
        return items


@pytest.fixture
def reader(apiserver: KubeApiServer, helm: Helm, tmp_path: Path) -> Iterator[Reader]:
    """A reader with this project, helm, kubectl, and an empty cluster of one node."""
    found = assets.find()
    assert isinstance(found, Assets)
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "helm").symlink_to(helm.program)
    (tmp_path / "bin" / "kubectl").symlink_to(found.kubectl)
    waggle = tmp_path / "bin" / "waggle"
    waggle.write_text(f'#!/bin/sh\nexec {sys.executable} -m waggle "$@"\n')
    waggle.chmod(0o755)
    eventually(lambda: _check_nothing_ends(apiserver), within=90)
    metadata = {"name": NODE, "labels": {"kubernetes.io/os": "linux"}}
    put(apiserver, "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
    address = {"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.11"}]}}
    path = f"/api/v1/nodes/{NODE}/status"
    assert apiserver.request("PATCH", path, address, "merge-patch+json").ok
    made = Reader(apiserver, tmp_path)
    yield made
    made.run(f"helm uninstall waggle --namespace {NAMESPACE} --ignore-not-found")
    eventually(lambda: _check_objects_are_listed(apiserver), within=90)
    made.run("kubectl delete --ignore-not-found -f deploy/helm/waggle/crds")
    apiserver.request("DELETE", f"/api/v1/nodes/{NODE}")


def _check_objects_are_listed(server: KubeApiServer) -> None:
    """Check that the server lists the objects of each definition.

    The deletion of a definition whose storage is initialized at that moment fails, and may be tried
    again after minutes.
    """
    for definition in server.request("GET", CRDS).body["items"]:
        spec = definition["spec"]
        version = next(one["name"] for one in spec["versions"] if one["storage"])
        place = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"
        assert server.request("GET", place).ok, place


def _check_nothing_ends(server: KubeApiServer) -> None:
    assert not server.request("GET", CRDS).body["items"]


def _check_kinds_are_served(reader: Reader) -> None:
    """Check that kubectl knows the kinds: a server lists them some time after their definitions."""
    served = set(reader.run("kubectl api-resources --output name --no-headers").split())
    assert {crd["metadata"]["name"] for crd in reader.get("crds")} <= served


@contextlib.contextmanager
def running(reader: Reader, port: int) -> Iterator[list[Daemon]]:
    """Run the router, and what the Pods would: an operator and an agent."""
    router = {
        "asn": 65000,
        "routerID": "192.0.2.1",
        "listen": [{"address": "127.0.0.2", "port": port}],
        "apiSocket": str(reader.directory / "router"),
        "neighbors": [{"address": "127.0.0.1", "asn": 65001, "passive": True, "import": "all"}],
    }
    (reader.directory / "router.yaml").write_text(yaml.safe_dump(router))
    configurations = {c["metadata"]["name"]: c["data"] for c in reader.get("configmaps")}
    commands: dict[str, list[str | Path]] = {
        "router": ["waggle", "router", "-c", reader.directory / "router.yaml"]
    }
    for part in ("operator", "agent"):
        config = reader.directory / f"{part}.yaml"
        config.write_text(configurations[f"waggle-{part}"]["config.yaml"])
        token = reader.server.token(f"waggle-{part}", NAMESPACE, node=NODE)
        access = reader.server.access_with(token, reader.directory / f"{part}.kubeconfig")
        commands[part] = [f"waggle_{part}", "--config", config, "--kubeconfig", access]
        commands[part] += ["--http-address", "127.0.0.1:0"]
    commands["agent"] += ["--node-name", NODE, "--api-socket", reader.directory / "api"]
    started = [
        Daemon(name, [sys.executable, "-m", *command], log=reader.directory / f"{name}.log")
        for name, command in commands.items()
    ]
    try:
        for daemon in started:
            daemon.start()
        yield started
    finally:
        for daemon in reversed(started):
            daemon.stop()


def test_from_a_cluster_to_a_route_and_back(reader: Reader) -> None:
    reader.do("With helm")
    assert {d["metadata"]["name"] for d in reader.get("daemonsets")} == {"waggle-agent"}
    (first,) = blocks("A first route", "yaml")
    port = free_port("127.0.0.2")
    there = first.replace("192.0.2.1", "127.0.0.2").replace(
        "  gracefulRestart:", f"  transport: {{peerPort: {port}}}\n  gracefulRestart:"
    )
    assert there.count("127.0.0.2") == there.count(str(port)) == 1
    (reader.directory / "first.yaml").write_text(there)
    eventually(lambda: _check_kinds_are_served(reader))
    reader.do("A first route")
    reader.do("Passwords")
    with running(reader, port) as daemons:

        def log() -> str:
            return "\n".join(daemon.tail() for daemon in daemons)

        eventually(lambda: _check_router_has(reader, "198.51.100.10/32"), within=90, context=log)
        eventually(lambda: _check_reported(reader), context=log)
        printed = reader.do("What to look at")
        # An agent that is ahead of the operator follows the ClusterConfig by itself, and reports the
        # session at the Node: there is no NodeConfig yet.
        everything = "\n".join([*printed.values(), reader.run(f"kubectl describe node {NODE}")])
        for text in ("Peering State: +established", "SessionEstablished", "Service/default/first"):
            assert re.search(text, everything), f"{text}:\n{everything}"
        reader.do("Upgrade")
        (config,) = [c for c in reader.get("configmaps") if c["metadata"]["name"] == "waggle-agent"]
        assert config["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"
        reader.do("Uninstalling")
    for kind in ("daemonsets", "deployments", "roles", "rolebindings", "configmaps"):
        left = [o["metadata"] for o in reader.get(kind) if "waggle" in o["metadata"]["name"]]
        # No controller manager is here, which collects what the Deployment owns.
        assert all(one.get("ownerReferences") for one in left), left
    assert not [o for o in reader.get("clusterroles") if o["metadata"]["name"].startswith("waggle")]
    assert not [c for c in reader.get("crds") if c["metadata"]["name"].endswith("cilium.io")]


def test_present_definitions_are_kept(reader: Reader) -> None:
    crds = "deploy/helm/waggle/crds"
    reader.run(f"kubectl apply --server-side --field-manager=cilium -f {crds}")
    (place,) = [
        line for line in "".join(blocks("With helm", "sh")).splitlines() if "create" in line
    ]
    with contextlib.suppress(AssertionError):
        # There already, where the test before has made it.
        reader.run(place.replace("waggle-system", NAMESPACE))
    before = _managers(reader)
    assert set(before.values()) == {("cilium",)}
    reader.run(f"helm install waggle deploy/helm/waggle --namespace {NAMESPACE}")
    assert _managers(reader) == before
    reader.run(f"helm uninstall waggle --namespace {NAMESPACE}")
    assert _managers(reader) == before


def _managers(reader: Reader) -> dict[str, tuple[str, ...]]:
    """Return the field managers of each definition."""
    items = reader.server.request("GET", CRDS).body["items"]
    return {
        i["metadata"]["name"]: tuple(
            m["manager"] for m in i["metadata"]["managedFields"] if "subresource" not in m
        )
        for i in items
    }


def _check_router_has(reader: Reader, prefix: str) -> None:
    socket = reader.directory / "router"
    if not socket.exists():
        raise NotReadyError("the router does not run yet")
    try:
        received = at_socket(socket).get("/v1/routes", {"table": "received"})["items"]
    except AgentError as error:
        raise NotReadyError(str(error)) from None
    assert prefix in [route["prefix"] for route in received]


def _check_reported(reader: Reader) -> None:
    """Check the reports on the session in the cluster."""
    configs = reader.get("ciliumbgpnodeconfigs")
    assert len(configs) == 1
    instances = configs[0].get("status", {}).get("bgpInstances", [])
    states = [peer["peeringState"] for instance in instances for peer in instance["peers"]]
    assert states == ["established"]
    assert "SessionEstablished" in [event["reason"] for event in reader.get("events")]
