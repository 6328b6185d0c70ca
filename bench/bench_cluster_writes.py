"""What real agents write to a real API server while Services change, and what a cluster would write.

Starts kube-apiserver with etcd, an operator, a router and agents with Cilium's objects, each with an
Established session. The cluster has more Nodes than agents, as agents write the more rarely the more
nodes there are. Services get other addresses all the time; counted are the write requests of the
agents in the API server's audit log, and computed is what as many agents as Nodes write in an hour.

``python -m bench.bench_cluster_writes [--agents N] [--nodes N] [--minutes N]``

Needs tests/support/install-apiserver, and some 90 MB of memory for each agent.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from tests.support.agent import Agent
from tests.support.daemon import Daemon
from tests.support.kubernetes import assets
from tests.support.kubernetes.accounts import NAMESPACE, access, define, grant, put, rules
from tests.support.kubernetes.server import KubeApiServer
from tests.support.ports import free_port
from tests.support.wait import eventually

CILIUM: Final = "/apis/cilium.io/v2"
LABEL: Final = {"bench": "agent"}
SERVICES: Final = 20
CHANGE_SECONDS: Final = 15.0
"""Between two changes of Services."""
START_SECONDS: Final = 900.0
"""For all agents to report their session, on a busy machine."""
READS: Final = {"get", "list", "watch"}
Object = dict[str, Any]


def node(number: int, agents: int) -> Object:
    """Return a Node; the first ones have agents."""
    labels = LABEL if number < agents else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number:04}", "labels": labels},
        "spec": {"podCIDRs": [f"10.{number >> 8}.{number & 255}.0/24"]},
    }


def service(number: int, step: int) -> Object:
    """Return a Service whose address changes with ``step``."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": f"web-{number}", "namespace": "default"},
        "spec": {
            "type": "LoadBalancer",
            "ports": [{"port": 80}],
            "externalIPs": [f"198.51.{100 + step % 100}.{number + 1}"] if step % 2 else [],
        },
    }


def objects(port: int, agents: int) -> Iterator[tuple[str, Object]]:
    """Yield paths and objects of Cilium: one instance and one peer for all nodes with agents."""
    families = [
        {"afi": "ipv4", "safi": "unicast", "advertisements": {"matchLabels": {"advertise": "bgp"}}}
    ]
    specs: dict[str, Object] = {
        "CiliumBGPPeerConfig": {"transport": {"peerPort": port}, "families": families},
        "CiliumBGPClusterConfig": {
            "nodeSelector": {"matchLabels": LABEL},
            "bgpInstances": [
                {
                    "name": "node",
                    "localASN": 65001,
                    "peers": [
                        {
                            "name": "router",
                            "peerASN": 65000,
                            "peerAddress": "127.0.0.2",
                            "peerConfigRef": {"name": "bench"},
                        }
                    ],
                }
            ],
        },
        "CiliumBGPAdvertisement": {
            "advertisements": [
                {"advertisementType": "PodCIDR"},
                {
                    "advertisementType": "Service",
                    "service": {"addresses": ["ExternalIP"]},
                    "selector": {},
                },
            ]
        },
    }
    for kind, spec in specs.items():
        metadata = {"name": "bench", "labels": {"advertise": "bgp"}}
        value = {"apiVersion": "cilium.io/v2", "kind": kind, "metadata": metadata, "spec": spec}
        yield f"{CILIUM}/{kind.lower()}s", value
    for number in range(agents):
        instance = {
            "name": "node",
            "routerID": f"192.0.2.{number + 1}",
            "peers": [{"name": "router", "localAddress": f"127.0.1.{number + 1}"}],
        }
        yield (
            f"{CILIUM}/ciliumbgpnodeconfigoverrides",
            {
                "apiVersion": "cilium.io/v2",
                "kind": "CiliumBGPNodeConfigOverride",
                "metadata": {"name": f"node-{number:04}"},
                "spec": {"bgpInstances": [instance]},
            },
        )


def router(directory: Path, port: int, agents: int) -> Daemon:
    """Return a router with a neighbour for each agent."""
    configuration = {
        "asn": 65000,
        "routerID": "192.0.2.254",
        "listen": [{"address": "127.0.0.2", "port": port}],
        "apiSocket": str(directory / "router"),
        "neighbors": [
            {"address": f"127.0.1.{number + 1}", "asn": 65001, "passive": True, "import": "all"}
            for number in range(agents)
        ],
    }
    (directory / "router.yaml").write_text(yaml.safe_dump(configuration))
    command = ["-m", "waggle", "router", "-c", str(directory / "router.yaml")]
    return Daemon("router", [sys.executable, *command], log=directory / "router.log")


def run(
    server: KubeApiServer, directory: Path, agents: int, nodes: int, minutes: float
) -> Counter[str]:
    """Run all, and return the number of writes by verb and resource."""
    define(server)
    for number in range(nodes):
        put(server, "/api/v1/nodes", node(number, agents))
    port = free_port("127.0.0.2")
    for path, value in objects(port, agents):
        put(server, path, value)
    accesses = {}
    for part in ("agent", "operator"):
        for scope in ("Cluster", ""):
            grant(server, f"bench-{part}", scope, rules(part, scope))
        accesses[part] = access(server, f"bench-{part}", directory / f"{part}.kubeconfig")
    operator = Daemon(
        "operator",
        [sys.executable, "-m", "waggle_operator", "--kubeconfig", accesses["operator"]],
        log=directory / "operator.log",
    )
    running = [
        Agent(None, directory / f"agent-{i}", node=f"node-{i:04}", kubeconfig=accesses["agent"])
        for i in range(agents)
    ]
    with contextlib.ExitStack() as stack:
        for daemon in (router(directory, port, agents), operator):
            daemon.start()
            stack.callback(daemon.stop)
        for agent in running:
            agent.start()
            stack.callback(agent.stop)
        eventually(lambda: _check_reported(server, agents), within=START_SECONDS, interval=2)
        print(f"{agents} agents with an Established session, {nodes} Nodes", flush=True)
        since = (server.directory / "audit.log").stat().st_size
        deadline = time.monotonic() + 60 * minutes
        step = 0
        while time.monotonic() < deadline:
            step += 1
            put(server, "/api/v1/namespaces/default/services", service(step % SERVICES, step))
            time.sleep(CHANGE_SECONDS)
        counts = server.request_counts("bench-agent", NAMESPACE, since)
    written: Counter[str] = Counter()
    for request, number in counts.items():
        if request.verb not in READS:
            written[f"{request.verb} {request.resource}"] += number
    return written


def _check_reported(server: KubeApiServer, agents: int) -> None:
    configs = server.request("GET", f"{CILIUM}/ciliumbgpnodeconfigs").body["items"]
    up = [
        peer
        for item in configs
        for instance in item.get("status", {}).get("bgpInstances", [])
        for peer in instance.get("peers", [])
        if peer.get("peeringState") == "established"
    ]
    assert len(up) == agents, f"{len(up)} of {agents} sessions are reported"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--agents", type=int, default=40, metavar="N")
    parser.add_argument("--nodes", type=int, default=5000, metavar="N", help="at least the agents")
    parser.add_argument("--minutes", type=float, default=30, metavar="N")
    args = parser.parse_args()
    binaries = assets.find()
    if isinstance(binaries, str):
        print(binaries, file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as name:
        server = KubeApiServer(binaries, Path(name))
        server.start()
        try:
            written = run(server, Path(name), args.agents, args.nodes, args.minutes)
        finally:
            server.end()
    total = sum(written.values())
    for what, number in written.most_common():
        print(f"{number:6} {what}")
    hour = total * 60 / args.minutes
    print(
        f"{total} writes of {args.agents} agents in {args.minutes:g} minutes, with a change of a "
        f"Service every {CHANGE_SECONDS:g} s; {hour / args.agents * args.nodes:,.0f} in an hour of "
        f"{args.nodes} agents"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
