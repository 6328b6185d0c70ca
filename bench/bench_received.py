"""CPU time and memory of an agent whose router sends a full table, most of which it does not use.

A peer that takes requests (ROUTE-REFRESH, RFC 2918) sends a table like the Internet's to three
agents, one after another: the first accepts nothing, the second a range of which nothing is
received, and for comparison the third accepts all. CPU seconds are from the
start of the session until all routes are counted; memory is the largest resident set. The exit status
is 1 if a goal for 1,000,000 routes is missed.

``python -m bench.bench_received [--routes N] [--accept WHICH] [--table FILE]``; ``WAGGLE_PURE=1``: with
prefix tables in Python
"""

from __future__ import annotations

import argparse
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from operator import gt
from pathlib import Path
from typing import Any

from bench import workload
from bench.sink import KEEPALIVE, MARKER
from bench.speed import streams
from cells.api.client import AgentError, at_socket
from speaker.rib.prefix_table import FORM

ROUTES = 1_000_000
ATTRIBUTE_SETS_OF = 17
"""Routes for each attribute set, on average."""
PORT = 16_179
"""FRR-k8s takes ports up to 16,384."""
TICKS = os.sysconf("SC_CLK_TCK")
LIMIT_SECONDS = 300.0
ACCEPTS: dict[str, dict[str, Any] | None] = {
    "nothing": None,
    "an unused range": {
        "allowed": {"prefixes": [{"prefix": "127.0.0.0/8", "ge": 24, "le": 32}], "mode": "filtered"}
    },
    "all": {"allowed": {"mode": "all"}},
}


GOALS = {
    ("Python", "nothing"): (2.2, 85.0),
    ("C", "nothing"): (1.3, 120.0),
    ("C", "an unused range"): (1.3, 120.0),
}
"""CPU seconds and megabytes, by the form of the prefix tables and what is accepted."""


class Feeder:
    """A router that accepts one session and sends a table once; the hold time is 0."""

    def __init__(self, table: bytes) -> None:
        self._listener = socket.create_server((workload.peer_address(0), PORT))
        self._table = table
        self.begin = threading.Event()
        """Set when the table is to be sent."""
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with self._listener:
            connection, _ = self._listener.accept()
        capabilities = bytes((1, 4, 0, 1, 0, 1)) + bytes((2, 0)) + bytes((65, 4))
        capabilities += struct.pack("!I", workload.PEER_ASN)
        parameters = bytes((2, len(capabilities))) + capabilities
        body = struct.pack("!BHH4sB", 4, workload.PEER_ASN, 0, b"\xc0\0\x02\x01", len(parameters))
        size = 19 + len(body) + len(parameters)
        connection.sendall(MARKER + struct.pack("!HB", size, 1) + body + parameters + KEEPALIVE)
        threading.Thread(target=self._send, args=(connection,), daemon=True).start()
        while connection.recv(65536):
            pass

    def _send(self, connection: socket.socket) -> None:
        self.begin.wait(LIMIT_SECONDS)
        connection.sendall(self._table)


def objects(accepts: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return a node and its FRRConfiguration."""
    neighbor = {
        "address": workload.peer_address(0),
        "asn": workload.PEER_ASN,
        "port": PORT,
        "connectTime": "1s",
        **({} if accepts is None else {"toReceive": accepts}),
    }
    router = {"asn": workload.LOCAL_ASN, "neighbors": [neighbor]}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": workload.NODE},
            "status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}]},
        },
        {
            "apiVersion": "frrk8s.metallb.io/v1beta1",
            "kind": "FRRConfiguration",
            "metadata": {"name": "table", "namespace": "frr-k8s-system"},
            "spec": {"bgp": {"routers": [router]}},
        },
    ]


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process until now."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def peak_megabytes(pid: int) -> float:
    """Return the largest resident set of a process until now."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def measure(table: bytes, routes: int, accepts: dict[str, Any] | None) -> tuple[float, float]:
    """Return CPU seconds and megabytes of an agent that receives the table."""
    feeder = Feeder(table)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "manifests").mkdir()
        workload.put(directory / "manifests" / "all.json", objects(accepts))
        command: list[str | Path] = [
            sys.executable,
            "-m",
            "waggle_agent",
            "--manifests",
            directory / "manifests",
        ]
        command += ["--node-name", workload.NODE, "--api-socket", directory / "api", "--fib=false"]
        command += ["--enable-cell", "frrk8s", "--log-level", "error"]
        with subprocess.Popen(command, cwd=directory, stdin=subprocess.DEVNULL) as process:
            try:
                return _until_counted(process.pid, directory / "api", feeder.begin, routes)
            finally:
                process.terminate()


def _until_counted(pid: int, api: Path, begin: threading.Event, routes: int) -> tuple[float, float]:
    before, limit = 0.0, time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < limit:
        time.sleep(0.2)
        try:
            peers = at_socket(api).get("/v1/peers", {})["items"]
        except AgentError:
            continue
        if not begin.is_set() and all(peer["state"] == "Established" for peer in peers):
            before = cpu_seconds(pid)
            begin.set()
        elif sum(part["routes"] for peer in peers for part in peer.get("received", ())) == routes:
            return cpu_seconds(pid) - before, peak_megabytes(pid)
    raise TimeoutError(f"not all routes after {LIMIT_SECONDS:.0f} s")


def _sets(routes: int) -> int:
    """Return the attribute sets of a table."""
    return max(routes // ATTRIBUTE_SETS_OF, 1)


def write_table(path: Path, routes: int) -> Path:
    """Write what the router sends."""
    address = workload.peer_address(0)
    return streams.table(path, workload.PEER_ASN, address, routes, _sets(routes))


def main() -> int:
    """Measure and print; the exit status is 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--routes", type=int, default=ROUTES, metavar="N")
    parser.add_argument("--accept", action="append", choices=ACCEPTS, help="default: each")
    parser.add_argument("--table", type=Path, metavar="FILE", help="written by `write_table`")
    args = parser.parse_args()
    routes: int = args.routes
    with tempfile.TemporaryDirectory() as name:
        table = (args.table or write_table(Path(name) / "table", routes)).read_bytes()
    print(f"{routes} routes, {_sets(routes)} attribute sets, prefix tables in {FORM}")
    missed = False
    for accepted in args.accept or ACCEPTS:
        figures = measure(table, routes, ACCEPTS[accepted])
        goals = GOALS.get((FORM, accepted))
        is_missed = goals is not None and any(map(gt, figures, goals))
        missed = missed or is_missed
        print(
            "accepts {:16} {:6.2f} s of CPU {:6.0f} MB".format(accepted, *figures),
            "" if goals is None else "goal {:g} s, {:g} MB".format(*goals),
            "MISSED" if is_missed else "",
            flush=True,
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
