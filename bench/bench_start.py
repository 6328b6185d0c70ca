"""Time until an agent is of use, and until one object of a large file is advertised.

* ``--help`` of agent and operator;
* from the start of an agent with 10 Services, and with 50,000, until its peer has all routes;
* the longest answer of `/livez` while an agent with 10,000 Services starts;
* one Service changes within a file of 10,000, as YAML documents and as a list in JSON: from the rename
  of the file until the peer has read the new prefix.

Byte code is cached, as installed packages have it: a run before the measured ones compiles it.

``python -m bench.bench_start [--repetitions N]``
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

from bench import workload
from bench.bench_propagation import SinkProcess, cores, cpu_seconds, start_agent

HELP_MS = 200.0
START_MS = 700.0
CHANGE_MS = 60.0
FEW, MANY, VERY_MANY = 10, 10_000, 50_000
VERY_MANY_MS = 3_800.0
LIVE_MS = 100.0
PROBE_SECONDS = 0.01
"""Between two requests of `/livez`."""
CHANGED = 7
"""The number of the Service that changes."""


class Times(NamedTuple):
    """Milliseconds of one repetition."""

    wall: float
    cpu: float


def of_help(program: str, python: str | Path = sys.executable, root: Path | None = None) -> Times:
    """Measure the help of a program, of the checkout ``root`` or of this one."""
    before, began = _cpu_of_children(), time.monotonic_ns()
    command = [python, "-m", program, "--help"]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, cwd=root)
    took = time.monotonic_ns() - began
    return Times(took / 1e6, (_cpu_of_children() - before) * 1e3)


def _cpu_of_children() -> float:
    # In microseconds; `os.times` has ticks of ten milliseconds, a sixth of the whole.
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Probes:
    """Requests `/livez` of an agent again and again, as a kubelet does, and keeps the longest time."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = "{}:{}".format(*free.getsockname())
        self._stop = threading.Event()
        self._longest = 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(PROBE_SECONDS):
            began = time.monotonic()
            with contextlib.suppress(OSError), urlopen(f"http://{self.address}/livez", timeout=20):
                self._longest = max(self._longest, time.monotonic() - began)

    def longest_ms(self) -> float:
        """Stop, and return the longest time of an answer."""
        self._stop.set()
        self._thread.join()
        return self._longest * 1e3


def of_start(directory: Path, services: int, flags: Sequence[str] = ()) -> Times:
    """Measure a start with some Services."""
    core, others = cores()
    sink = SinkProcess(others)
    manifests = directory / "manifests"
    workload.write(manifests, services=services, peers=1, port=sink.port)
    began = time.monotonic_ns()
    agent = start_agent(directory, manifests, core, flags=flags)
    try:
        wall = (sink.filled(services + 1, 1)["time"] - began) / 1e6
        return Times(wall, cpu_seconds(agent.pid) * 1e3)
    finally:
        agent.terminate()
        agent.wait(20)
        sink.stop()


def of_probes(directory: Path) -> Times:
    """Measure the longest answer of a probe during a start with many Services."""
    probes = Probes()
    cpu = of_start(directory, MANY, ("--http-address", probes.address)).cpu
    return Times(probes.longest_ms(), cpu)


def as_yaml(services: Sequence[dict[str, Any]]) -> str:
    """Return the documents of a file; JSON is YAML, and the quickest to write."""
    return "".join(f"---\n{json.dumps(service, indent=1)}\n" for service in services)


def as_json(services: Sequence[dict[str, Any]]) -> str:
    """Return a list."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": services})


def of_changes(
    directory: Path, name: str, form: Callable[[Sequence[dict[str, Any]]], str], changes: int
) -> list[Times]:
    """Measure changes of one Service in a large file."""
    core, others = cores()
    sink = SinkProcess(others)
    manifests = directory / "manifests"
    workload.write(manifests, services=0, peers=1, port=sink.port)
    services = [workload.service(number) for number in range(MANY)]
    (manifests / "services.json").unlink()
    (manifests / name).write_text(form(services))
    agent = start_agent(directory, manifests, core)
    times = []
    try:
        sink.filled(MANY + 1, 1)
        for step in range(1, changes + 2):
            time.sleep(1)
            address = (203, 0, 113, step)
            ip = ".".join(map(str, address))
            services[CHANGED]["status"] = {"loadBalancer": {"ingress": [{"ip": ip}]}}
            fresh = directory / "fresh"
            fresh.write_text(form(services))
            sink.send(f"expect {bytes((32, *address)).hex()}")
            sink.answer()
            cpu, began = cpu_seconds(agent.pid), time.monotonic_ns()
            fresh.replace(manifests / name)
            wall = (sink.answer()["last"] - began) / 1e6
            times.append(Times(wall, (cpu_seconds(agent.pid) - cpu) * 1e3))
        # The first change is not measured, as in the other benches.
        return times[1:]
    finally:
        agent.terminate()
        agent.wait(20)
        sink.stop()


def _measure(name: str, limit: float, times: Sequence[Times]) -> bool:
    wall = statistics.median(figures.wall for figures in times)
    cpu = statistics.median(figures.cpu for figures in times)
    good = wall <= limit
    most = max(figures.wall for figures in times)
    print(
        f"{name:<44} {wall:8.0f} {most:8.0f} {cpu:8.0f} {limit:8.0f}  {'met' if good else 'MISSED'}",
        flush=True,
    )
    return good


def _in_directory(measure: Callable[[Path], Any]) -> Any:  # noqa: ANN401
    with tempfile.TemporaryDirectory() as name:
        return measure(Path(name))


def main() -> int:
    """Measure and print; the exit status is 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repetitions", type=int, default=10, metavar="N")
    count = parser.parse_args().repetitions
    with tempfile.TemporaryDirectory() as cache:
        os.environ["PYTHONPYCACHEPREFIX"] = cache
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        print(
            f"{'ms; medians of ' + str(count):<44} {'wall':>8} {'max':>8} {'CPU':>8} {'limit':>8}"
        )
        good = True
        for program in ("waggle_agent", "waggle_operator"):
            of_help(program)
            times = [of_help(program) for _ in range(count)]
            good = _measure(f"{program.replace('_', '-')} --help", HELP_MS, times) and good
        for services, limit in ((FEW, START_MS), (VERY_MANY, VERY_MANY_MS)):
            start = partial(of_start, services=services)
            _in_directory(start)
            times = [_in_directory(start) for _ in range(count if services == FEW else 3)]
            name = f"start with {services:,} Services, until all is sent"
            good = _measure(name, limit, times) and good
        times = [_in_directory(of_probes) for _ in range(count)]
        good = _measure(f"/livez, start with {MANY:,} Services", LIVE_MS, times) and good
        for name, form in (("services.yaml", as_yaml), ("services.json", as_json)):
            times = _in_directory(partial(of_changes, name=name, form=form, changes=count))
            good = _measure(f"one Service of {MANY:,} in {name}", CHANGE_MS, times) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
