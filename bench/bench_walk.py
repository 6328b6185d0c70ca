"""The way of one change through an agent, in calls: files that it passes, and calls into each.

An agent runs with few objects and an Established session. Then one object changes, and every call
into the project's own Python code is counted until the peer has received the UPDATE and the agent is
quiet again. Printed is the median of the runs by room; with ``--files`` also by file, in the order of
the first call; with ``--functions`` by function, the most frequent first.

``python -m bench.bench_walk [frrk8s|metallb] [--checkout DIRECTORY] [--files] [--functions N]``
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final

from bench import frrk8s_workload as workload
from bench.bench_rounds import Peer

ROOT: Final = Path(__file__).resolve().parent.parent
ROOMS: Final = ("cells", "cmd", "reconcilers", "resources", "speaker", "statedb")
PREFIXES: Final = 10
PEERS: Final = 2
HOLD_SECONDS: Final = 90
QUIET_SECONDS: Final = 1.0
"""No octets from the agent for so long, and no work: what follows a change has ended."""
IDLE_SECONDS: Final = 0.05
"""What an agent works in that time with its clocks alone."""
START_SECONDS: Final = 60.0
Object = dict[str, Any]


def frrk8s(port: int, *, changed: bool) -> list[Object]:
    """Return an FRRConfiguration; one prefix more when changed."""
    prefixes = [workload.prefix(number) for number in range(PREFIXES + changed)]
    return [workload.node(), workload.advertising(0, prefixes, 1, port=port)]


def metallb(port: int, *, changed: bool) -> list[Object]:
    """Return MetalLB's objects with a Service; one BGPPeer more when changed."""
    peers = [
        _metallb(
            "v1beta2",
            "BGPPeer",
            f"peer-{number}",
            {
                "myASN": workload.LOCAL_ASN,
                "peerASN": workload.PEER_ASN,
                "peerAddress": workload.peer_address(number),
                "peerPort": port,
            },
        )
        for number in range(1 + changed)
    ]
    status = {"loadBalancer": {"ingress": [{"ip": "198.51.100.1"}]}}
    spec = {"type": "LoadBalancer", "clusterIP": "10.96.0.10", "ports": [{"port": 80}]}
    service = {"apiVersion": "v1", "kind": "Service", "spec": spec, "status": status}
    slice_: Object = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": _of_service("web-1", {"kubernetes.io/service-name": "web"}),
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.0.4"], "nodeName": workload.NODE}],
        "ports": [{"port": 80}],
    }
    return [
        workload.node(),
        *peers,
        _metallb("v1beta1", "IPAddressPool", "pool", {"addresses": ["198.51.100.0/24"]}),
        _metallb("v1beta1", "BGPAdvertisement", "all", {}),
        {**service, "metadata": _of_service("web", {})},
        slice_,
    ]


def _of_service(name: str, labels: dict[str, str]) -> Object:
    return {"name": name, "namespace": "default", "labels": labels}


def _metallb(version: str, kind: str, name: str, spec: Object) -> Object:
    metadata = {"name": name, "namespace": "metallb-system"}
    return {"apiVersion": f"metallb.io/{version}", "kind": kind, "metadata": metadata, "spec": spec}


def disabled_cells(root: Path) -> list[str]:
    """Return the cells that are off: received routes in the kernel, and the history, are other ways."""
    return ["cilium", *(name for name in ("kernel", "history") if (root / "cells" / name).exists())]


CELLS: Final = {"frrk8s": ("frrk8s",), "metallb": ("metallb", "frrk8s")}
WALKS: Final[dict[str, Callable[..., list[Object]]]] = {"frrk8s": frrk8s, "metallb": metallb}


def run_agent(root: Path, output: Path, arguments: list[str]) -> int:
    """Run the agent of a checkout; SIGUSR1 begins to count calls, SIGUSR2 ends it and writes them."""
    sys.path[:0] = [str(root), str(root / "cmd")]
    calls: Counter[str] = Counter()
    prefixes = {f"{root}/{room}/": len(f"{root}/") for room in ROOMS}
    names: dict[str, str | None] = {}

    def name_of(file: str) -> str | None:
        file_in_room = next(
            (file[cut:] for room, cut in prefixes.items() if file.startswith(room)), None
        )
        names[file] = file_in_room
        return file_in_room

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            file = frame.f_code.co_filename
            name = names[file] if file in names else name_of(file)
            if name is not None:
                calls[f"{name} {frame.f_code.co_qualname}"] += 1

    def begin(*_: object) -> None:
        calls.clear()
        sys.setprofile(count)

    def end(*_: object) -> None:
        sys.setprofile(None)
        fresh = output.with_suffix(".new")
        fresh.write_text(json.dumps(calls))
        fresh.replace(output)

    signal.signal(signal.SIGUSR1, begin)
    signal.signal(signal.SIGUSR2, end)
    from waggle_agent.__main__ import main as agent

    return agent(arguments)


def measure(root: Path, walk: str) -> dict[str, int]:
    """Return the calls of each function (file and name), in the order of the first one."""
    objects = WALKS[walk]
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name) / "manifests"
        directory.mkdir()
        output = Path(name) / "calls.json"
        peer = Peer(HOLD_SECONDS, PEERS)

        def write(*, changed: bool) -> None:
            items = objects(peer.port, changed=changed)
            fresh = Path(name) / "new.json"
            fresh.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
            fresh.replace(directory / "all.json")

        write(changed=False)
        python = root / ".venv/bin/python"
        command: list[str | Path] = [python if python.exists() else sys.executable]
        command += [Path(__file__), "--run", root, output, "--manifests", directory]
        command += ["--node-name", workload.NODE, "--disable-cell", ",".join(disabled_cells(root))]
        command += [word for cell in CELLS[walk] for word in ("--enable-cell", cell)]
        command += ["--api-socket", Path(name) / "api"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with (Path(name) / "log").open("wb") as log:
            agent = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
            )
        quiet = Quiet(agent.pid)

        def is_quiet() -> bool:
            return peer.last > 0 and quiet.since(peer.last) > QUIET_SECONDS

        try:
            _wait(agent, is_quiet)
            agent.send_signal(signal.SIGUSR1)
            before = peer.last
            write(changed=True)
            _wait(agent, lambda: peer.last != before and is_quiet())
            agent.send_signal(signal.SIGUSR2)
            _wait(agent, output.exists)
        except RuntimeError:
            sys.stderr.write((Path(name) / "log").read_text()[-2000:])
            raise
        finally:
            peer.close()
            agent.terminate()
            agent.wait(20)
        counted: dict[str, int] = json.loads(output.read_text())
        return counted


class Quiet:
    """How long a process has had nothing to do: on a busy machine it may wait for a processor."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._begun, self._busy = time.monotonic(), 0.0

    def since(self, moment: float) -> float:
        """Return for how many seconds it has neither worked nor waited for a processor since then."""
        now = time.monotonic()
        tasks = Path(f"/proc/{self._pid}/task").glob("*/schedstat")
        busy = sum(sum(map(int, task.read_text().split()[:2])) for task in tasks) / 1e9
        if busy - self._busy > IDLE_SECONDS:
            self._begun, self._busy = now, busy
        return now - max(self._begun, moment)


def _wait(agent: subprocess.Popen[bytes], until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not until():
        if time.monotonic() > deadline or agent.poll() is not None:
            raise RuntimeError("the agent did not come to that")
        time.sleep(0.02)


def main(arguments: Sequence[str] | None = None) -> int:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("walk", nargs="?", choices=sorted(WALKS), default="frrk8s")
    parser.add_argument("--checkout", type=Path, default=ROOT, help="whose agent runs")
    parser.add_argument("--runs", type=int, default=3, metavar="N")
    parser.add_argument(
        "--files", action="store_true", help="print each file, in order of first call"
    )
    parser.add_argument("--functions", type=int, default=0, metavar="N", help="print so many")
    args = parser.parse_args(arguments)
    runs = [measure(args.checkout.resolve(), args.walk) for _ in range(args.runs)]
    runs.sort(key=lambda calls: sum(calls.values()))
    middle = runs[len(runs) // 2]
    totals = [sum(calls.values()) for calls in runs]
    of_files: Counter[str] = Counter()
    for function, number in middle.items():
        of_files[function.partition(" ")[0]] += number
    print(
        f"{args.walk}: {statistics.median(totals):.0f} calls in {len(of_files)} files "
        f"({min(totals)} to {max(totals)} in {len(runs)} runs)"
    )
    for room in ROOMS:
        files = {file: number for file, number in of_files.items() if file.startswith(f"{room}/")}
        print(f"  {room + '/':<13} {sum(files.values()):6} calls, {len(files):3} files")
    if args.files:
        for file, number in of_files.items():
            print(f"  {number:6} {file}")
    for function, number in Counter(middle).most_common(args.functions):
        print(f"  {number:6} {function}")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        sys.path.remove(str(ROOT / "bench"))
        sys.exit(run_agent(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]))
    sys.exit(main())
