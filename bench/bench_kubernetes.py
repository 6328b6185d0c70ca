"""Time and memory of an agent that reads a large cluster from an API server.

The API server is the scripted one of the tests, in this process, with prepared pages, so that encoding
is not measured. The agent is the whole program, on a separate core if there are two. Measured: the time
from the first request of the agent until it watches Services and EndpointSlices, which it does after
their lists are committed; its CPU time, the most memory that it had, and its resident memory ten
seconds later. The exit status is 1 if the time or the most memory of 10,000 Services is over its limit.

With ``--peer`` the Services are advertised to a router as well, and the time until it has all of their
routes is measured in place of the memory.

``python -m bench.bench_kubernetes [--services N...] [--peer]``
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from aiohttp import web

from bench import workload
from bench.bench_propagation import SinkProcess, cpu_seconds, resident_mb
from resources.kind import Kind
from resources.kubernetes import Timeouts
from tests.support.apiserver import ApiServer
from tests.support.kinds import ENDPOINT_SLICE, KINDS, SERVICE

LIMITED = 10_000
"""Services for which time and memory have limits."""
LIMIT_SECONDS = 3.0
LIMIT_PEAK_MB = 210.0
RESIDENT_MB = {1_000: 62.0, 10_000: 92.0, 50_000: 225.0}
"""Goals of the resident memory, in MB of 10^6, by Services."""
SETTLED_SECONDS = 10.0
START_SECONDS = 300.0
"""Also beside other programs (`bench.bench_bfd_load`)."""
ROOT = Path(__file__).resolve().parent.parent


class Figures(NamedTuple):
    """What one agent took."""

    seconds: float
    cpu: float
    peak: float
    """In MB, as the next one."""
    resident: float


def main() -> int:
    """Measure and print; the exit status is 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(prog="bench_kubernetes", description=__doc__)
    parser.add_argument(
        "--services", type=int, nargs="+", default=list(RESIDENT_MB), metavar="N", help="sizes"
    )
    parser.add_argument("--peer", action="store_true", help="advertise them to a router")
    args = parser.parse_args()
    if args.peer:
        for services in args.services:
            with tempfile.TemporaryDirectory() as directory:
                took = asyncio.run(_advertised(services, Path(directory)))
            print(f"{services:>8,} Services, listed and at a router in {took:.2f} s", flush=True)
        return 0
    print("one agent, as many EndpointSlices as Services; memory in MB of 10^6")
    print(
        f"{'Services':>8} {'listed in s':>12} {'CPU s':>7} {'peak':>7} {'resident':>9} {'goal':>6}"
    )
    good = True
    for services in args.services:
        with tempfile.TemporaryDirectory() as directory:
            figures = asyncio.run(_measure(services, Path(directory)))
        goal = RESIDENT_MB.get(services)
        verdict = "" if goal is None else "met" if figures.resident <= goal else "MISSED"
        print(
            f"{services:>8,} {figures.seconds:>12.2f} {figures.cpu:>7.2f} {figures.peak:>7.1f}"
            f" {figures.resident:>9.1f} {goal or '':>6} {verdict}",
            flush=True,
        )
        if services == LIMITED:
            good = figures.seconds <= LIMIT_SECONDS and figures.peak <= LIMIT_PEAK_MB
    return 0 if good else 1


class ReadyServer(ApiServer):
    """Caches the answers to lists, which do not change."""

    def __init__(self, kinds: Iterable[Kind[Any]] = KINDS) -> None:
        super().__init__(kinds)
        self._pages: dict[tuple[str, str, tuple[tuple[str, str], ...]], bytes] = {}

    def _list(
        self,
        kind: Kind[Any],
        namespace: str,
        query: dict[str, str],
        served: str,
        *,
        partial: bool = False,
    ) -> web.Response:
        key = (kind.name, namespace, tuple(sorted(query.items())))
        body = self._pages.get(key)
        if body is None:
            page = super()._list(kind, namespace, query, served, partial=partial).body
            assert isinstance(page, bytes)
            body = self._pages[key] = page
        return web.Response(body=body, content_type="application/json")

    def prepare(self, kind: Kind[Any], page: int) -> None:
        """Encode the pages of a kind for later requests."""
        query = {"limit": str(page)}
        while True:
            made = self._list(kind, "", query, kind.versions[0]).body
            assert isinstance(made, bytes)
            token = json.loads(made)["metadata"].get("continue")
            if token is None:
                return
            query = {"limit": str(page), "continue": token}


@contextlib.asynccontextmanager
async def _started(
    services: int, directory: Path, others: Iterable[dict[str, Any]] = ()
) -> AsyncIterator[tuple[ReadyServer, subprocess.Popen[bytes]]]:
    """Start the API server with some Services, and the agent."""
    server = ReadyServer()
    for each in others:
        server.put(each)
    for number in range(services):
        server.put(_service(number))
        server.put(_slice(number))
    for kind in (SERVICE, ENDPOINT_SLICE):
        server.prepare(kind, Timeouts().page_size)
    await server.start()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        os.sched_setaffinity(0, cores[1:])
    command = [sys.executable, "-m", "waggle_agent"]
    command += ["--kubeconfig", str(server.kubeconfig(directory / "kubeconfig"))]
    command += ["--node-name", workload.NODE, "--api-socket", str(directory / "agent.sock")]
    env = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'cmd'}"}
    with (directory / "agent.log").open("wb") as log:
        agent = subprocess.Popen(command, env=env, stdout=log, stderr=log)  # noqa: ASYNC220
    os.sched_setaffinity(agent.pid, cores[:1])
    try:
        async with asyncio.timeout(START_SECONDS):
            yield server, agent
    finally:
        agent.terminate()
        await asyncio.to_thread(agent.wait)
        await server.stop()
        os.sched_setaffinity(0, cores)


async def _measure(services: int, directory: Path) -> Figures:
    async with _started(services, directory) as (server, agent):
        await _until(agent, lambda: bool(server.requests))
        began = time.monotonic()
        cpu = cpu_seconds(agent.pid)
        await _until(
            agent,
            lambda: all(server.queries("watch", p) for p in ("services", "endpointslices")),
        )
        seconds = time.monotonic() - began
        cpu = cpu_seconds(agent.pid) - cpu
        await asyncio.sleep(SETTLED_SECONDS)
        return Figures(seconds, cpu, _peak(agent.pid), resident_mb(agent.pid))


async def _advertised(services: int, directory: Path) -> float:
    """Return the seconds until a router has the routes of all Services."""
    sink = SinkProcess(os.sched_getaffinity(0))
    try:
        async with _started(services, directory, _peering(sink.port)) as (server, agent):
            await _until(agent, lambda: bool(server.requests))
            began = time.monotonic()
            await asyncio.to_thread(sink.filled, services, 1, START_SECONDS)
            return time.monotonic() - began
    finally:
        await asyncio.to_thread(sink.stop)


def _peering(port: int) -> list[dict[str, Any]]:
    """Return the node, and the objects by which all Services are advertised to a router."""
    objects = workload.bgp(1, port)
    objects[-1]["spec"]["advertisements"][0]["selector"] = {
        "matchExpressions": [{"key": "team", "operator": "Exists"}]
    }
    return objects


async def _until(agent: subprocess.Popen[bytes], check: Any) -> None:  # noqa: ANN401
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


def _service(number: int) -> dict[str, Any]:
    # The size of a real object, with the fields of kubectl and managers.
    high, low = divmod(number, 250)
    name, address = f"web-{number}", f"10.{96 + (high >> 8)}.{high & 255}.{low + 1}"
    return {
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": f"team-{number % 50}",
            "uid": f"{number:08x}-8d1c-4f3b-9d66-4c281b5c6f00",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app.kubernetes.io/name": name, "team": f"team-{number % 50}"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x" * 600},
            "managedFields": [
                {
                    "manager": "kubectl-client-side-apply",
                    "operation": "Update",
                    "apiVersion": "v1",
                    "time": "2026-01-01T00:00:00Z",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:spec": {"f:ports": {}, "f:selector": {}, "f:type": {}}},
                }
            ]
            * 2,
        },
        "spec": {
            "type": "LoadBalancer",
            "clusterIP": address,
            "clusterIPs": [address],
            "externalTrafficPolicy": "Cluster",
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}],
            "selector": {"app.kubernetes.io/name": name},
            "sessionAffinity": "None",
        },
        "status": {
            "loadBalancer": {"ingress": [{"ip": f"172.{16 + (high >> 8)}.{high & 255}.{low}"}]}
        },
    }


def _slice(number: int) -> dict[str, Any]:
    name, namespace = f"web-{number}", f"team-{number % 50}"
    return {
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{name}-x7k2p",
            "namespace": namespace,
            "uid": f"{number:08x}-1b2b-4f3b-9d66-4c281b5c6f00",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                "kubernetes.io/service-name": name,
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            },
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Service", "name": name, "uid": "", "controller": True}
            ],
        },
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        "endpoints": [
            {
                "addresses": [f"10.244.{pod}.{number % 250 + 1}"],
                "conditions": {"ready": True, "serving": True, "terminating": False},
                "nodeName": f"node-{pod}",
                "targetRef": {"kind": "Pod", "namespace": namespace, "name": f"{name}-{pod}"},
                "zone": "a",
            }
            for pod in range(3)
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
