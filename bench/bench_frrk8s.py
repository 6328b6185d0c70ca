"""Time and memory of FRRConfigurations: on a node with many, in a cluster with many, in a review.

Times are CPU times, medians of ten runs in one process; memory is that of a whole agent at a scripted
API server. What a change costs is held by tests (`tests/reconcilers/frrk8s/test_work.py`).

``python -m bench.bench_frrk8s [--rounds N] [--only ROW]``
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import operator
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench import frrk8s_workload as workload
from bench.bench_filters import PER_UPDATE, RECEIVED
from bench.bench_kubernetes import ROOT, ReadyServer
from bench.speed import streams
from reconcilers.admission import Request, Reviewer
from reconcilers.cilium.dialect import CiliumDialect
from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.frrk8s.options import Frrk8sClusterOptions
from reconcilers.metallb.dialect import MetalLBDialect
from reconcilers.metallb.options import MetalLBOperatorOptions
from reconcilers.operator import Planner
from reconcilers.sliced_work import finish
from resources.core.kinds import NODE
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.kind import Kinds
from resources.kubernetes import Timeouts
from resources.tables import Tables
from speaker.engine.inputs import BytesReceived, SendUpdates
from statedb import Database
from tests.reconcilers.frrk8s.agent_in_memory import DIALECTS, AgentInMemory

OBJECTS, PREFIXES = 200, 50
NODES, OF_NODE, SETS = 3012, 2, 30
SERVICES: Final = 10_000
START_SECONDS = 120.0
MAX_RATIO = 1.1
Object = dict[str, Any]


class Row(NamedTuple):
    """One figure."""

    what: str
    value: float
    unit: str
    limit: float
    note: str = ""

    def __str__(self) -> str:
        """Return the line that is printed."""
        verdict = "met" if self.value <= self.limit else "MISSED"
        note = f"; {self.note}" if self.note else ""
        return f"{self.what}: {self.value:.4g} {self.unit} (limit {self.limit:g}, {verdict}){note}"


def main() -> int:
    """Measure and print; the exit status is 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(
        prog="bench.bench_frrk8s", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--rounds", type=int, default=10, metavar="N")
    parser.add_argument("--only", choices=sorted(ROWS), metavar="ROW", help=", ".join(ROWS))
    args = parser.parse_args()
    missed = False
    for name, measure in ROWS.items():
        if args.only in (None, name):
            for row in measure(args.rounds):
                print(row, flush=True)
                missed |= row.value > row.limit
            gc.collect()
    return 1 if missed else 0


def _timed(act: Callable[[], object]) -> float:
    """Return the CPU time of a call in milliseconds, without collections of earlier garbage."""
    gc.collect()
    gc.disable()
    try:
        began = time.process_time_ns()
        act()
        return (time.process_time_ns() - began) / 1e6
    finally:
        gc.enable()


def _send(agent: AgentInMemory) -> None:
    """Run a round, and send all updates."""
    agent.round()
    host = agent.speaker.host
    while host.engine.updates_pending:
        host.give(SendUpdates())


# One node


def _from_nothing(rounds: int) -> Iterable[Row]:
    objects = [workload.node(), *workload.parts(OBJECTS, PREFIXES, 2)]
    times = []
    for _ in range(rounds):
        agent = AgentInMemory(workload.NODE)
        agent.write(objects)
        times.append(_timed(agent.compiler.run))
    what = f"{OBJECTS} objects, {PREFIXES} prefixes each, two neighbours, compiled from nothing"
    yield Row(what, statistics.median(times), "ms", 250)


def _one_prefix(rounds: int) -> Iterable[Row]:
    agent = AgentInMemory(workload.NODE)
    agent.write([workload.node(), *workload.parts(OBJECTS, PREFIXES, 10)])
    agent.settle()
    agent.connect()
    times, updates = [], 0
    for number in range(rounds):
        prefixes = [workload.prefix(5 * PREFIXES + i) for i in range(PREFIXES - 1)]
        changed = workload.advertising(5, [*prefixes, f"192.168.{number}.0/24"], 10)
        agent.write([changed])
        times.append(_timed(lambda: _send(agent)))
        agent.network.run(1)
    changed = workload.advertising(5, [*prefixes, "192.168.255.0/24"], 10)
    updates = max(agent.work(changed).updates.values())
    down = sum(not status.established for status in agent.speaker.peers())
    what = "one prefix changes, from the event to the octets at ten peers"
    note = f"{updates} UPDATEs to each for a removed and an added prefix; {down} sessions lost"
    yield Row(what, statistics.median(times), "ms", 10, note)


def _selector(rounds: int) -> Iterable[Row]:
    agent = AgentInMemory(workload.NODE)
    parts = workload.parts(OBJECTS, PREFIXES, 1)
    agent.write([workload.node(), *parts])
    agent.settle()
    agent.connect()
    host = agent.speaker.host
    [(connection, end)] = host.ends.items()
    assert end.other is not None
    first = 11 << 16
    wires = [b"\x18" + (first + n).to_bytes(3, "big") for n in range(RECEIVED)]
    for number, start in enumerate(range(0, RECEIVED, PER_UPDATE)):
        path = [workload.PEER_ASN, 64512 + number % 50]
        attributes = streams.attributes(path, end.other.host.address)
        some = b"".join(wires[start : start + PER_UPDATE])
        host.give(BytesReceived(connection, streams.update(b"", attributes, some)))
    agent.network.run(1)
    times, octets = [], 0
    for number in range(rounds):
        value = workload.advertising(
            5, [workload.prefix(5 * PREFIXES + i) for i in range(PREFIXES)], 1
        )
        [neighbor] = value["spec"]["bgp"]["routers"][0]["neighbors"]
        rule = {"prefix": f"11.{number}.0.0/16", "le": 24}
        neighbor["toReceive"] = {"allowed": {"prefixes": [rule]}}
        agent.write([value])
        host.writes.clear()
        times.append(_timed(lambda: _send(agent)))
        octets += sum(len(part) for write in host.writes for part in write.parts)
        agent.network.run(1)
    what = f"a selector is added to toReceive with {RECEIVED:,} routes received"
    note = f"{octets} octets sent to the peer"
    yield Row(what, statistics.median(times), "ms", 150, note)


def _thousand(rounds: int) -> Iterable[Row]:
    objects = [workload.node()]
    for number in range(1000):
        configuration = workload.advertising(number, [workload.prefix(number)], 1)
        configuration["spec"]["bgp"]["routers"][0]["neighbors"][0]["address"] = (
            workload.peer_address(number)
        )
        objects.append(configuration)
    times = []
    for _ in range(rounds):
        agent = AgentInMemory(workload.NODE)
        agent.write(objects)
        times.append(_timed(agent.round))
    what = "1,000 objects, all different, with 1,000 neighbours, compiled and applied"
    yield Row(what, statistics.median(times), "ms", 2000)


# The cluster


def _foreign(rounds: int) -> Iterable[Row]:  # noqa: ARG001  one agent each
    own = workload.of_nodes(1, OF_NODE)
    every = workload.of_nodes(NODES, OF_NODE)
    with tempfile.TemporaryDirectory() as directory:
        without, _ = asyncio.run(_agent(own, Path(directory)))
        with_all, seconds = asyncio.run(_agent(every, Path(directory)))
    note = f"{with_all:.1f} MB with them"
    what = f"{len(every):,} objects of {NODES:,} nodes: an agent's RSS over that with its own alone"
    yield Row(what, with_all - without, "MB", 15, note)
    yield Row("their list, until it is watched", seconds, "s", 2)


async def _agent(objects: list[Object], directory: Path) -> tuple[float, float]:
    """Return peak RSS in MB and the seconds until FRRConfigurations are watched."""
    server = ReadyServer((NODE, *Frrk8sDialect.kinds, *MetalLBDialect.kinds))
    for value in (workload.node(), *objects):
        server.put(value)
    server.prepare(FRR_CONFIGURATION, Timeouts().page_size)
    await server.start()
    command = [sys.executable, "-m", "waggle_agent", "--node-name", workload.NODE]
    command += ["--kubeconfig", str(server.kubeconfig(directory / "kubeconfig"))]
    command += ["--api-socket", str(directory / "agent.sock")]
    command += ["--disable-cell", "cilium", "--enable-cell", "frrk8s"]
    env = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'cmd'}"}
    plural = FRR_CONFIGURATION.plural
    with (directory / "agent.log").open("wb") as log:
        agent = subprocess.Popen(command, env=env, stdout=log, stderr=log)  # noqa: ASYNC220
    try:
        async with asyncio.timeout(START_SECONDS):
            await _until(agent, lambda: bool(server.queries("list", plural)))
            began = time.monotonic()
            await _until(agent, lambda: bool(server.queries("watch", plural)))
            seconds = time.monotonic() - began
            await asyncio.sleep(2)
        return _peak(agent.pid), seconds
    finally:
        agent.terminate()
        await asyncio.to_thread(agent.wait)
        await server.stop()


async def _until(agent: subprocess.Popen[bytes], check: Callable[[], bool]) -> None:
    while not check():
        if agent.poll() is not None:
            raise RuntimeError(f"the agent ended with status {agent.returncode}")
        await asyncio.sleep(0.005)


def _peak(pid: int) -> float:
    """Return the most resident memory that a process ever had, in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError("no VmHWM")


class _Operator:
    """The tables of an operator, with nodes of some racks and objects that select a rack each."""

    def __init__(self, of_rack: int) -> None:
        self.db = Database()
        kinds = Kinds(Frrk8sDialect.cluster_kinds, MetalLBDialect.cluster_kinds)
        self.tables = tables = Tables(self.db, kinds)
        self.dialects = [
            Frrk8sDialect(tables, Frrk8sClusterOptions()),
            MetalLBDialect(tables, MetalLBOperatorOptions()),
        ]
        nodes = [
            {
                "metadata": {
                    "name": f"node-{number:04d}",
                    "labels": {"kubernetes.io/hostname": f"node-{number:04d}",
                               "rack": str(number % SETS)},
                }
            }
            for number in range(3000)
        ]  # fmt: skip
        with self.db.write(tables.nodes) as txn:
            for value in nodes:
                tables.nodes.upsert(txn, NODE.decode(value))
        self.put(
            self.part(rack * of_rack + i, rack) for rack in range(SETS) for i in range(of_rack)
        )

    def part(self, number: int, rack: int, **more: Any) -> Object:  # noqa: ANN401
        value = workload.advertising(number, [workload.prefix(number)], 2)
        value["spec"]["nodeSelector"] = {"matchLabels": {"rack": str(rack)}}
        value["metadata"] |= more
        return value

    def put(self, objects: Iterable[Object]) -> None:
        table = self.tables.of(FRR_CONFIGURATION)
        with self.db.write(table) as txn:
            for value in objects:
                table.upsert(txn, FRR_CONFIGURATION.decode(value))


def _review(rounds: int) -> Iterable[Row]:
    operator = _Operator(OBJECTS)
    reviewer = Reviewer(operator.db, operator.tables, operator.dialects)
    version = FRR_CONFIGURATION.api_versions[0]
    times = []
    for number in range(rounds + 1):
        value = workload.advertising(9000 + number, [], 2, community=False)
        request = Request("CREATE", version, FRR_CONFIGURATION.name, value)
        times.append(_timed(lambda request=request: reviewer.review(request)))  # type: ignore[misc]
    what = f"review of an object for 3,000 nodes with {SETS} sets of {OBJECTS} objects"
    note = f"the first one, which compiles all, {times[0]:.0f} ms"
    yield Row(what, statistics.median(times[1:]), "ms", 1000, note)


def _conditions(rounds: int) -> Iterable[Row]:
    operator = _Operator(OBJECTS)
    planner = Planner(operator.db, operator.dialects, "kube-system", stored=False)
    before = finish(planner.operate(operator.db.snapshot()))["frrk8s"].conditions
    times, changed = [], 0
    for number in range(rounds):
        prefixes = [workload.prefix(7000 + number)]
        value = operator.part(7, 0, generation=2 + number)
        value["spec"]["bgp"]["routers"][0]["prefixes"] += prefixes
        operator.put([value])
        times.append(_timed(lambda: finish(planner.operate(operator.db.snapshot()))))
        after = finish(planner.operate(operator.db.snapshot()))["frrk8s"].conditions
        changed = max(changed, len({row.object for row in set(after) - set(before)}))
        before = after
    what = f"conditions of {SETS * OBJECTS:,} objects after one changes: objects that are written"
    note = f"computed in {statistics.median(times):.0f} ms"
    yield Row(what, changed, "objects", 1, note)


# MetalLB's Services, beside Cilium's


def _services(rounds: int) -> Iterable[Row]:
    services = [value for n in range(SERVICES) for value in _service(n)]
    metallb = [
        {"apiVersion": "metallb.io/v1beta2", "kind": "BGPPeer",
         "metadata": {"name": "a", "namespace": "metallb-system"},
         "spec": {"myASN": 65001, "peerASN": 65010, "peerAddress": "127.77.0.1"}},
        {"apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool",
         "metadata": {"name": "a", "namespace": "metallb-system"},
         "spec": {"addresses": ["172.16.0.0/12"]}},
        {"apiVersion": "metallb.io/v1beta1", "kind": "BGPAdvertisement",
         "metadata": {"name": "a", "namespace": "metallb-system"}, "spec": {}},
    ]  # fmt: skip
    given = ((DIALECTS, metallb), ((CiliumDialect,), _cilium()))
    agents = [_Services(dialects, [workload.node(), *own, *services]) for dialects, own in given]
    for _ in range(rounds):
        for agent in agents:
            agent.compile()
    for number in range(rounds * 10):
        for agent in agents:
            agent.change(ready=bool(number % 2))
    for what, of in (
        (f"{SERVICES:,} Services compiled", operator.attrgetter("first")),
        ("one EndpointSlice changes", operator.attrgetter("changes")),
    ):
        ours, theirs = (statistics.median(of(agent)) for agent in agents)
        note = f"{ours:.3g} ms, Cilium's objects {theirs:.3g} ms"
        yield Row(f"{what}: of the time of Cilium's", ours / theirs, "times", MAX_RATIO, note)


class _Services:
    """The objects of a dialect with their milliseconds; two dialects are measured in turn."""

    def __init__(self, dialects: tuple[Any, ...], objects: list[Object]) -> None:
        self._dialects = dialects
        self._objects = objects
        self._agent: AgentInMemory | None = None
        self.first: list[float] = []
        """Of compilations from nothing."""
        self.changes: list[float] = []
        """Of changes of one EndpointSlice."""

    def compile(self) -> None:
        """Compile all in an agent of its own."""
        agent = AgentInMemory(workload.NODE, self._dialects)
        agent.write(self._objects)
        self.first.append(_timed(agent.compiler.run))

    def change(self, *, ready: bool) -> None:
        """Change one EndpointSlice of an agent with a session, which is made at first."""
        agent = self._agent
        if agent is None:
            agent = self._agent = AgentInMemory(workload.NODE, self._dialects)
            agent.write(self._objects)
            agent.compiler.run()
            agent.round()
            agent.connect()
        agent.write([_slice(77, ready=ready)])
        self.changes.append(_timed(lambda: _send(agent)))
        agent.network.run(1)


def _service(number: int) -> list[Object]:
    address = f"172.{16 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": f"s{number}", "namespace": "bench"},
        "spec": {
            "type": "LoadBalancer",
            "clusterIP": f"10.96.{number >> 8 & 255}.{number & 255}",
            "externalTrafficPolicy": "Local",
        },
        "status": {"loadBalancer": {"ingress": [{"ip": address}]}},
    }
    return [service, _slice(number, ready=True)]


def _slice(number: int, *, ready: bool) -> Object:
    endpoint = {
        "addresses": ["10.244.0.7"],
        "nodeName": workload.NODE,
        "conditions": {"ready": ready, "serving": ready},
    }
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"s{number}-1",
            "namespace": "bench",
            "labels": {"kubernetes.io/service-name": f"s{number}"},
        },
        "addressType": "IPv4",
        "endpoints": [endpoint],
    }


def _cilium() -> list[Object]:
    peer = {
        "name": "a",
        "peerASN": workload.PEER_ASN,
        "peerAddress": "127.77.0.1",
        "peerConfigRef": {"name": "a"},
    }
    family = {
        "afi": "ipv4",
        "safi": "unicast",
        "advertisements": {"matchLabels": {"advertise": "bgp"}},
    }
    advertised = {
        "advertisementType": "Service",
        "service": {"addresses": ["LoadBalancerIP"]},
        "selector": {},
    }
    instance = {"name": "a", "localASN": workload.LOCAL_ASN, "peers": [peer]}
    specs: dict[str, Object] = {
        "CiliumBGPClusterConfig": {"bgpInstances": [instance]},
        "CiliumBGPPeerConfig": {"families": [family]},
        "CiliumBGPAdvertisement": {"advertisements": [advertised]},
    }
    return [
        {
            "apiVersion": "cilium.io/v2",
            "kind": kind,
            "metadata": {"name": "a", "labels": {"advertise": "bgp"}},
            "spec": spec,
        }
        for kind, spec in specs.items()
    ]


ROWS: Final[dict[str, Callable[[int], Iterable[Row]]]] = {
    "from-nothing": _from_nothing,
    "one-prefix": _one_prefix,
    "selector": _selector,
    "thousand": _thousand,
    "other-nodes": _foreign,
    "review": _review,
    "conditions": _conditions,
    "services": _services,
}


if __name__ == "__main__":
    sys.exit(main())
