"""A cluster of one node for tests: a real API server, an agent in a namespace of its own, and BIRD.

The API server is out of the agent's namespace; the way to it can be cut. Nothing selects the node
until it has the label ``bgp=cluster-test``.
"""

from __future__ import annotations

import contextlib
import io
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resources.crds.generate import defined
from tests.support.agent import Agent
from tests.support.kinds import KINDS
from tests.support.kubernetes.accounts import undefine
from tests.support.kubernetes.server import KubeApiServer
from tests.support.netns import Link, linked_namespaces
from tests.support.relay import BackgroundRelay
from tests.support.routers import PeerSettings, RouterSettings
from tests.support.routers.bird import Bird
from tests.support.wait import eventually
from waggle.__main__ import main

OURS, THEIRS = "10.99.0.1", "10.99.0.11"
ASN, PEER_ASN, PORT = 65001, 65101, 1790
NODE = "node-of-the-cluster"
NAMESPACE = "cluster-test"
POD_CIDR = "10.244.7.0/24"
WEB = "198.51.100.10/32"
QUIET = 1.0
"""Seconds in which something that is not to happen would have happened."""

MANIFESTS = f"""
apiVersion: v1
kind: Namespace
metadata: {{name: {NAMESPACE}}}
---
apiVersion: v1
kind: Node
metadata: {{name: {NODE}}}
spec: {{podCIDR: {POD_CIDR}, podCIDRs: [{POD_CIDR}]}}
---
apiVersion: cilium.io/v2
kind: CiliumBGPClusterConfig
metadata: {{name: cluster-test}}
spec:
  nodeSelector: {{matchLabels: {{bgp: cluster-test}}}}
  bgpInstances:
    - name: main
      localASN: {ASN}
      peers:
        - name: tor
          peerASN: {PEER_ASN}
          peerAddress: {THEIRS}
          peerConfigRef: {{name: cluster-test}}
---
apiVersion: cilium.io/v2
kind: CiliumBGPPeerConfig
metadata: {{name: cluster-test}}
spec:
  transport: {{peerPort: {PORT}}}
  timers: {{connectRetryTimeSeconds: 1, holdTimeSeconds: 90, keepAliveTimeSeconds: 30}}
  gracefulRestart: {{enabled: true, restartTimeSeconds: 300}}
  families:
    - {{afi: ipv4, safi: unicast, advertisements: {{matchLabels: {{for: cluster-test}}}}}}
---
apiVersion: cilium.io/v2
kind: CiliumBGPAdvertisement
metadata: {{name: cluster-test, labels: {{for: cluster-test}}}}
spec:
  advertisements:
    - {{advertisementType: PodCIDR}}
    - advertisementType: Service
      service: {{addresses: [ExternalIP]}}
      selector: {{matchExpressions: [{{key: bgp, operator: In, values: [cluster-test]}}]}}
"""


def service(name: str, address: str) -> dict[str, Any]:
    """Build a Service with an external address."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"bgp": "cluster-test"}},
        "spec": {"ports": [{"port": 80}], "externalIPs": [address]},
    }


@dataclass(frozen=True, slots=True)
class Cluster:
    """All parts; `relay` is the agent's way to the API server."""

    server: KubeApiServer
    relay: BackgroundRelay
    link: Link
    agent: Agent
    bird: Bird

    def put(self, name: str, address: str) -> None:
        """Apply a Service, as another client."""
        path = f"/api/v1/namespaces/{NAMESPACE}/services/{name}?fieldManager=test&force=true"
        answer = self.server.request("PATCH", path, service(name, address), "apply-patch+yaml")
        assert answer.ok, answer.body

    def delete(self, name: str) -> None:
        """Delete a Service."""
        self.server.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/services/{name}")

    def held(self) -> set[str]:
        """Return the prefixes that the router holds."""
        return set(self.bird.routes("ipv4-unicast"))

    def holds(self, *prefixes: str) -> None:
        """Wait until the router holds exactly these, and the Pods' network."""
        wanted = {POD_CIDR, *prefixes}

        def check() -> None:
            assert self.held() == wanted

        eventually(check, interval=0.05, context=self.logs)

    def counts(self) -> tuple[str, int, int]:
        """Return which session it is, and how many announcements and withdrawals came in it."""
        text = "\n".join(line for _, line in self.bird.ask("show protocols all p0"))
        (peer,) = self.bird.peers().values()
        assert peer.established, peer

        def count(what: str) -> int:
            match = re.search(rf"Import {what}:\s+(\d+)", text)
            return int(match[1]) if match else 0

        return peer.uptime_token, count("updates"), count("withdraws")

    def quiet(self, *prefixes: str) -> None:
        """Check for a while that the router holds exactly these all the time."""
        end = time.monotonic() + QUIET
        while time.monotonic() < end:
            assert self.held() == {POD_CIDR, *prefixes}
            time.sleep(0.05)

    def feed(self, name: str) -> str:
        """Return the health of the feed of a kind."""
        return str(self.agent.health()[f"kubernetes/{name}"]["message"])

    def reports(self, name: str, text: str) -> None:
        """Wait until the health of a part has a text."""

        def check() -> None:
            found = self.agent.health()
            assert text in found[name]["message"], found[name]

        eventually(check, context=self.logs)

    def logs(self) -> str:
        return f"{self.agent.daemon.tail()}\n{self.bird.daemon.tail()}"


@contextlib.contextmanager
def running(
    server: KubeApiServer,
    directory: Path,
    *,
    arguments: Sequence[str] = (),
    reaches: Sequence[int] = (),
    kernel: bool = False,
    bfd_interval: int | None = None,
) -> Iterator[Cluster]:
    """Run one node; ``reaches``: further ports of the host that its agent connects to.

    With ``bfd_interval`` (milliseconds) the router has BFD, which BGP does not wait for.
    """
    apply(server)
    port = int(server.url.rpartition(":")[2])
    with contextlib.ExitStack() as stack:
        link = stack.enter_context(linked_namespaces())
        relay = stack.enter_context(BackgroundRelay(port, link.left))
        for other in reaches:
            stack.enter_context(BackgroundRelay(other, link.left))
        router = _router(link, directory, bfd_interval)
        agent = _agent(server, link, directory, arguments, kernel=kernel)
        made = Cluster(server, relay, link, agent, router)
        stack.enter_context(made.bird)
        made.agent.start()
        stack.callback(made.agent.stop)
        made.agent.wait_ready()
        yield made
    remove(server)


def _router(link: Link, directory: Path, bfd_interval: int | None) -> Bird:
    link.right.add_address(f"{THEIRS}/24")
    families = ("ipv4-unicast",)
    peer = PeerSettings(
        OURS, ASN, port=PORT, restart_time=300, families=families, bfd_interval=bfd_interval
    )
    settings = RouterSettings(PEER_ASN, THEIRS, (THEIRS,), (peer,), port=PORT)
    return Bird(settings, link.right, directory / "bird")


def _agent(
    server: KubeApiServer, link: Link, directory: Path, arguments: Sequence[str], *, kernel: bool
) -> Agent:
    link.left.add_address(f"{OURS}/24")
    return Agent(
        link.left,
        directory / "agent",
        node=NODE,
        kubeconfig=server.kubeconfig,
        arguments=arguments,
        kernel=kernel,
    )


def apply(server: KubeApiServer) -> None:
    """Apply the definitions, the node and the configuration."""
    with contextlib.redirect_stdout(io.StringIO()) as crds:
        assert main(["crds"]) == 0
    server.kubectl("apply", "--server-side", "-f", "-", text=crds.getvalue())

    def served() -> None:
        # An agent that finds one missing looks again after half a minute.
        for kind in defined(KINDS):
            assert server.request("GET", kind.path(kind.versions[0])).ok

    eventually(served)
    server.kubectl("apply", "-f", "-", text=MANIFESTS)
    # As the kubelet does.
    status = {"status": {"addresses": [{"type": "InternalIP", "address": OURS}]}}
    answer = server.request(
        "PATCH", f"/api/v1/nodes/{NODE}/status", status, "strategic-merge-patch+json"
    )
    assert answer.ok, answer.body


def remove(server: KubeApiServer) -> None:
    """Remove what `apply` and tests left."""
    found = server.request("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions").body
    undefine(server, [crd["metadata"]["name"] for crd in found["items"]])
    server.request("DELETE", f"/api/v1/nodes/{NODE}")
    for item in server.request("GET", f"/api/v1/namespaces/{NAMESPACE}/services").body["items"]:
        name = item["metadata"]["name"]
        server.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/services/{name}")
