"""The same cluster through Antrea's dialect and through Cilium's: ratios of times.

An agent with 10,000 Services (20,000 routes) and 100 peers, which are sinks in a process of their own.
Measured for each dialect: the first full pass, an external IP that is added to a Service, an endpoint
of a Service with traffic policy Local that moves to the node or away; of Antrea's alone a policy that
is replaced by one with half of the routes, and 10,000 routes to 10 to 100 peers. Wall times are from
the change of the file to the last session; CPU times are the agent's. The limits hold for CPU
times, which other work on the machine changes less.

``python -m bench.bench_antrea [--services N] [--peers N] [--runs N] [--changes N]``
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench import workload
from bench.bench_propagation import SinkProcess, cores, start_agent
from cells.api.client import at_socket

FIRST_PASS, CHANGE = 1.3, 1.5
"""The limits: Antrea's time divided by Cilium's."""
TABLE_PEERS: Final = (10, 30, 50, 75, 100)
TABLE_ROUTES: Final = 10_000
ROUTES_OF_SERVICE: Final = 2
PAUSE_SECONDS = 0.05
"""After a change, in which the agent finishes its work."""
LISTEN_PORT: Final = 17900
EXTERNAL, LOCAL = "198.51.100.8", "198.51.100.9"
OTHER_NODE: Final = "another-node"


class Times(NamedTuple):
    """Wall and CPU time in milliseconds."""

    wall: float
    cpu: float


def median(times: Sequence[Times]) -> Times:
    """Return the medians."""
    return Times(statistics.median(t.wall for t in times), statistics.median(t.cpu for t in times))


# Workload


def node() -> dict[str, Any]:
    """Return the node."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": workload.NODE},
        "spec": {"podCIDRs": ["10.244.0.0/24"]},
        "status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}]},
    }


def policy(name: str, created: str, types: Sequence[str], peers: int, port: int) -> dict[str, Any]:
    """Return a BGPPolicy."""
    return {
        "apiVersion": "crd.antrea.io/v1alpha1",
        "kind": "BGPPolicy",
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": {
            "nodeSelector": {},
            "localASN": workload.LOCAL_ASN,
            "listenPort": LISTEN_PORT,
            "advertisements": {"service": {"ipTypes": list(types)}},
            "bgpPeers": [
                {"address": workload.peer_address(i), "asn": workload.PEER_ASN, "port": port}
                for i in range(peers)
            ],
        },
    }


ALL_TYPES: Final = ("ClusterIP", "ExternalIP", "LoadBalancerIP")


def antrea(peers: int, port: int) -> list[dict[str, Any]]:
    """Return the policy that is in effect first."""
    return [policy("first", "2026-01-01T00:00:00Z", ALL_TYPES, peers, port)]


def cilium(peers: int, port: int) -> list[dict[str, Any]]:
    """Return Cilium's objects for the same peers and routes."""
    objects = [item for item in workload.bgp(peers, port) if item["kind"] != "Node"]
    (service,) = objects[-1]["spec"]["advertisements"]
    service["service"]["addresses"] = list(ALL_TYPES)
    del service["attributes"]
    return objects


class Dialect(NamedTuple):
    """One of the two."""

    name: str
    flags: tuple[str, ...]
    objects: Callable[[int, int], list[dict[str, Any]]]


ANTREA = Dialect("antrea", ("--enable-cell=antrea", "--disable-cell=cilium"), antrea)
CILIUM = Dialect("cilium", (), cilium)


def local_service() -> dict[str, Any]:
    """Return a Service whose address is advertised where it has an endpoint."""
    service = workload.load_balancer("local", "10.97.0.9", LOCAL)
    service["spec"]["externalTrafficPolicy"] = "Local"
    return service


def endpoint_slice(node_name: str) -> dict[str, Any]:
    """Return its EndpointSlice."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "local-1",
            "namespace": "bench",
            "labels": {"kubernetes.io/service-name": "local"},
        },
        "addressType": "IPv4",
        "endpoints": [
            {"addresses": ["10.244.0.9"], "nodeName": node_name, "conditions": {"ready": True}}
        ],
        "ports": [{"port": 8080}],
    }


def outside(*, external: bool) -> dict[str, Any]:
    """Return the Service that has an external IP, or none."""
    service = workload.load_balancer("outside", "10.97.0.8", "198.51.100.7")
    if external:
        service["spec"]["externalIPs"] = [EXTERNAL]
    return service


class Manifests:
    """The directory of one agent."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "manifests"
        self.path.mkdir()
        self._fresh = directory / "fresh"

    def put(self, name: str, *objects: dict[str, Any]) -> None:
        """Write a file; a reader never reads a part of it."""
        workload.put(self._fresh, list(objects))
        self._fresh.replace(self.path / name)


# Measurement


class Running:
    """An agent with its sinks, after the first full pass."""

    def __init__(self, dialect: Dialect, services: int, peers: int, directory: Path) -> None:
        agent_core, other_cores = cores()
        self._api = directory / "api"
        self.sink = SinkProcess(other_cores)
        self.manifests = Manifests(directory)
        self.manifests.put("node.json", node())
        self.manifests.put("bgp.json", *dialect.objects(peers, self.sink.port))
        self.manifests.put("services.json", *(workload.service(i) for i in range(services)))
        self.manifests.put("local.json", local_service())
        self.manifests.put("slice.json", endpoint_slice(OTHER_NODE))
        self.manifests.put("outside.json", outside(external=False))
        # Two of `outside`, one of `local`, which has no endpoint here.
        prefixes = ROUTES_OF_SERVICE * (services + 1) + 1
        began = time.monotonic_ns()
        flags = (*dialect.flags, "--mass-withdraw-hold=0")
        self.agent = start_agent(directory, self.manifests.path, agent_core, flags=flags)
        try:
            answer = self.sink.filled(prefixes, peers)
        except BaseException:
            sys.stderr.write((directory / "agent.log").read_text()[-4000:])
            self.stop()
            raise
        self.first_pass = Times((answer["time"] - began) / 1e6, self.cpu())
        self.table = (answer["time"] - answer["first"]) / 1e6
        """From the first connection until the last peer has all routes, in milliseconds."""
        time.sleep(1.0)

    def cpu(self) -> float:
        """Return the CPU time of the agent so far, in milliseconds."""
        tasks = Path(f"/proc/{self.agent.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e6

    def change(self, address: str, name: str, *objects: dict[str, Any]) -> Times:
        """Write a file and wait until all sessions have read this address, announced or withdrawn."""
        nlri = bytes((32, *map(int, address.split("."))))
        self.sink.send(f"expect {nlri.hex()}")
        self.sink.answer()
        before, began = self.cpu(), time.monotonic_ns()
        self.manifests.put(name, *objects)
        took = (self.sink.answer()["last"] - began) / 1e6
        time.sleep(PAUSE_SECONDS)
        return Times(took, self.cpu() - before)

    def sessions(self) -> dict[str, tuple[str, int]]:
        """Return the state of each session, and how often it was lost."""
        items = at_socket(self._api).get("/v1/peers", {})["items"]
        return {peer["name"]: (peer["state"], peer["flaps"]) for peer in items}

    def stop(self) -> None:
        """End both processes."""
        self.agent.terminate()
        try:
            self.agent.wait(20)
        except subprocess.TimeoutExpired:
            self.agent.kill()
        self.sink.stop()


@contextmanager
def running(dialect: Dialect, services: int, peers: int) -> Iterator[Running]:
    """Run an agent until its first full pass is complete."""
    with tempfile.TemporaryDirectory() as name:
        agent = Running(dialect, services, peers, Path(name))
        try:
            yield agent
        finally:
            agent.stop()


def external_ips(it: Running, changes: int) -> list[Times]:
    """Add an external IP to a Service, and remove it again; the additions are measured."""
    times = []
    for _ in range(changes + 1):
        times.append(it.change(EXTERNAL, "outside.json", outside(external=True)))
        it.change(EXTERNAL, "outside.json", outside(external=False))
    return times[1:]


def moves(it: Running, changes: int) -> list[Times]:
    """Move an endpoint to the node, and away."""
    places = (workload.NODE, OTHER_NODE)
    return [
        it.change(LOCAL, "slice.json", endpoint_slice(places[step % 2]))
        for step in range(changes + 2)
    ][2:]


def swap(it: Running, peers: int) -> tuple[Times, bool]:
    """Replace the policy by one without cluster IPs; returns whether no session was reset."""
    before = it.sessions()
    after = policy("second", "2026-02-01T00:00:00Z", ALL_TYPES[1:], peers, it.sink.port)
    last = workload.service(0)["spec"]["clusterIP"]
    return it.change(last, "bgp.json", after), it.sessions() == before


def ratios(name: str, limit: float, ours: Times, theirs: Times) -> bool:
    """Print a line; returns whether the limit holds."""
    ratio = Times(ours.wall / theirs.wall, ours.cpu / theirs.cpu)
    print(
        f"{name:<22} {ours.wall:>9.2f} {theirs.wall:>9.2f} {ratio.wall:>6.2f} "
        f"{ours.cpu:>9.2f} {theirs.cpu:>9.2f} {ratio.cpu:>6.2f} {limit:>6.1f}"
    )
    return ratio.cpu <= limit


def compare(services: int, peers: int, runs: int, changes: int) -> bool:
    """Measure both dialects in turn; returns whether all limits hold."""
    first: dict[str, list[Times]] = {ANTREA.name: [], CILIUM.name: []}
    changed: dict[str, tuple[Times, Times]] = {}
    for run in range(runs):
        for dialect in (ANTREA, CILIUM):
            with running(dialect, services, peers) as it:
                first[dialect.name].append(it.first_pass)
                if run == runs - 1:
                    changed[dialect.name] = (
                        median(external_ips(it, changes)),
                        median(moves(it, changes)),
                    )
                    if dialect is ANTREA:
                        swapped, kept = swap(it, peers)
    print(f"{services} Services, {peers} peers; milliseconds, medians of {runs} and {changes}")
    print(f"{'':<22} {'wall':>26} {'CPU':>26}")
    titles = ("antrea", "cilium", "ratio") * 2
    print(" " * 22, *(f"{t:>{6 if t == 'ratio' else 9}}" for t in titles), f"{'limit':>6}")
    ours, theirs = (median(first[name]) for name in (ANTREA.name, CILIUM.name))
    (our_ip, our_move), (their_ip, their_move) = changed[ANTREA.name], changed[CILIUM.name]
    good = [
        ratios("first full pass", FIRST_PASS, ours, theirs),
        ratios("external IP added", CHANGE, our_ip, their_ip),
        ratios("endpoint moved", CHANGE, our_move, their_move),
    ]
    resets = "no session reset" if kept else "SESSIONS RESET"
    print(f"{'policy swapped':<22} {swapped.wall:>9.2f} {swapped.cpu:>36.2f}  {resets}")
    return all(good) and kept


def table(runs: int) -> None:
    """Print the time until the last of several peers has all routes."""
    print(f"\n{TABLE_ROUTES} routes; from the first connection until the last peer has all, ms")
    for peers in TABLE_PEERS:
        times = []
        for _ in range(runs):
            with running(ANTREA, TABLE_ROUTES // ROUTES_OF_SERVICE, peers) as it:
                times.append(it.table)
        print(f"{peers:>4} peers {statistics.median(times):>9.0f}")


def main() -> int:
    """Measure and print; the exit status is 1 if a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--services", type=int, default=10_000, metavar="N")
    parser.add_argument("--peers", type=int, default=100, metavar="N")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="of the first full pass")
    parser.add_argument("--changes", type=int, default=30, metavar="N", help="of each kind")
    args = parser.parse_args()
    good = compare(args.services, args.peers, args.runs, args.changes)
    table(args.runs)
    print(f"\nlimits {'met' if good else 'MISSED'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
