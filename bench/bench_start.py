"""Time until an agent is of use, and until one object of a large file is advertised.

* ``--help`` of agent and operator;
* from the start of an agent with 10 Services until its peer has all routes;
* one Service changes within a file of 10,000, as YAML documents and as a list in JSON: from the rename
  of the file until the peer has read the new prefix.

Byte code is cached, as installed packages have it: a run before the measured ones compiles it.

``python -m bench.bench_start [--repetitions N]``
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bench import workload
from bench.bench_propagation import SinkProcess, cores, cpu_seconds, start_agent

HELP_MS = 200.0
START_MS = 700.0
CHANGE_MS = 60.0
FEW, MANY = 10, 10_000
CHANGED = 7
"""The number of the Service that changes."""


class Times(NamedTuple):
    """Milliseconds of one repetition."""

    wall: float
    cpu: float


def of_help(program: str) -> Times:
    """Measure the help of a program."""
    before, began = os.times(), time.monotonic_ns()
    command = [sys.executable, "-m", program, "--help"]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    took, after = time.monotonic_ns() - began, os.times()
    cpu = after.children_user + after.children_system
    return Times(took / 1e6, (cpu - before.children_user - before.children_system) * 1e3)


def of_start(directory: Path) -> Times:
    """Measure a start with few Services."""
    core, others = cores()
    sink = SinkProcess(others)
    manifests = directory / "manifests"
    workload.write(manifests, services=FEW, peers=1, port=sink.port)
    began = time.monotonic_ns()
    agent = start_agent(directory, manifests, core)
    try:
        wall = (sink.filled(FEW + 1, 1)["time"] - began) / 1e6
        return Times(wall, cpu_seconds(agent.pid) * 1e3)
    finally:
        agent.terminate()
        agent.wait(20)
        sink.stop()


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
    wall = statistics.median(one.wall for one in times)
    cpu = statistics.median(one.cpu for one in times)
    good = wall <= limit
    most = max(one.wall for one in times)
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
        _in_directory(of_start)
        times = [_in_directory(of_start) for _ in range(count)]
        good = (
            _measure(f"start with {FEW} Services, until all is advertised", START_MS, times)
            and good
        )
        for name, form in (("services.yaml", as_yaml), ("services.json", as_json)):
            times = _in_directory(partial(of_changes, name=name, form=form, changes=count))
            good = _measure(f"one Service of {MANY:,} in {name}", CHANGE_MS, times) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
