"""Time from one changed Service to all routers, and its independence of the number of Services.

An agent with many Services in one JSON file and one in a file of its own, and 100 peers, which are
sinks in a process of their own. Measured: from the rename of the changed file
until the last session has read the new prefix. The agent runs on one core, the sinks and
this program on the others.

``python -m bench.bench_propagation [--changes N] [--peers N] [--services N...] [--profile FILE]``
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bench import workload

GOAL_MS = 20.0
GOAL_RATIO = 1.5
START_SECONDS = 120.0
ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of one size; times in milliseconds."""

    services: int
    fill: float
    times: list[float]
    cpu: float
    """CPU time of the agent for one change."""
    memory: float
    """Resident memory of the agent, in MB, at the end."""

    @property
    def median(self) -> float:
        """The median time of a change."""
        return statistics.median(self.times)


class SinkProcess:
    """The process of the sinks; commands and answers pass pipes."""

    def __init__(self, cores: set[int]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.sink"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        os.sched_setaffinity(self.process.pid, cores)
        self.port = self.answer()["port"]

    def answer(self) -> dict[str, int]:
        """Read one answer."""
        line = _pipe(self.process.stdout).readline()
        if not line:
            raise RuntimeError("the sink has ended")
        answer: dict[str, int] = json.loads(line)
        return answer

    def filled(self, prefixes: int, peers: int, seconds: float = START_SECONDS) -> dict[str, int]:
        """Wait until so many sessions have so many prefixes each; returns the answer."""
        give_up = threading.Timer(seconds, self.process.kill)
        give_up.start()
        self.send(f"count {prefixes} {peers}")
        try:
            return self.answer()
        finally:
            give_up.cancel()

    def send(self, command: str) -> None:
        """Write one command."""
        pipe = _pipe(self.process.stdin)
        pipe.write(f"{command}\n")
        pipe.flush()

    def stop(self) -> None:
        """End the process."""
        _pipe(self.process.stdin).close()
        self.process.wait(10)


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def start_agent(
    directory: Path,
    manifests: Path,
    core: set[int],
    profile: Path | None = None,
    flags: Sequence[str] = (),
    program: Sequence[str] = ("-m", "waggle_agent"),
) -> subprocess.Popen[bytes]:
    """Start an agent on one core; with ``profile``, under cProfile."""
    if profile is not None:
        program = ["-m", "cProfile", "-o", str(profile), *program]
    with (directory / "agent.log").open("wb") as log:
        agent = subprocess.Popen(
            [
                sys.executable, *program,
                "--manifests", manifests,
                "--node-name", workload.NODE,
                "--api-socket", directory / "api",
                "--log-level", "warning",
                *flags,
            ],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
    os.sched_setaffinity(agent.pid, core)
    return agent


def cores() -> tuple[set[int], set[int]]:
    """Return the core of the agent, and the cores of the sinks."""
    cores = sorted(os.sched_getaffinity(0))
    return {cores[0]}, set(cores[1:]) or {cores[0]}


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_ms(pid: int) -> float:
    """Return the processor time that all threads of a process have used, in milliseconds."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e6


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure(services: int, peers: int, changes: int, profile: Path | None = None) -> Result:
    """Run one agent at one size."""
    agent_core, other_cores = cores()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        manifests = directory / "manifests"
        sink = SinkProcess(other_cores)
        workload.write(manifests, services=services, peers=peers, port=sink.port)
        began = time.monotonic_ns()
        agent = start_agent(directory, manifests, agent_core, profile)
        try:
            fill = (sink.filled(services + 1, peers)["time"] - began) / 1e6
            # One change without measurement, then time for the agent to finish its start.
            times, cpu = [], 0.0
            for step in range(1, changes + 2):
                before = cpu_seconds(agent.pid)
                took = one_change(sink, manifests, step)
                if step > 1:
                    times.append(took)
                    cpu += cpu_seconds(agent.pid) - before
                time.sleep(0.05)
            memory = resident_mb(agent.pid)
        except BaseException:
            sys.stderr.write((directory / "agent.log").read_text()[-4000:])
            raise
        finally:
            agent.terminate()
            agent.wait(20)
            sink.stop()
    return Result(services, fill, times, cpu / changes * 1e3, memory)


def one_change(sink: SinkProcess, manifests: Path, step: int) -> float:
    """Change the Service; returns the milliseconds until every session has the prefix."""
    step_nlri = bytes((32, 198, 51, 100, step % 2 + 1))
    sink.send(f"expect {step_nlri.hex()}")
    sink.answer()
    began = time.monotonic_ns()
    nlri = workload.change(manifests, step)
    assert nlri == step_nlri
    return (sink.answer()["last"] - began) / 1e6


def percentile(times: list[float], share: float) -> float:
    """Return a percentile of the times."""
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def main() -> int:
    """Measure and print; the exit status is 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--changes", type=int, default=40, metavar="N")
    parser.add_argument("--peers", type=int, default=100, metavar="N")
    parser.add_argument("--services", type=int, nargs="+", default=[1000, 10000], metavar="N")
    parser.add_argument("--profile", type=Path, metavar="FILE", help="run the agent in cProfile")
    args = parser.parse_args()
    results = []
    print(f"{args.peers} peers, {args.changes} changes; times in ms, from the file to all sessions")
    print(f"{'services':>9} {'median':>8} {'p90':>8} {'max':>8} {'CPU':>8} {'fill':>9} {'MB':>7}")
    for services in args.services:
        result = measure(services, args.peers, args.changes, args.profile)
        results.append(result)
        print(
            f"{services:>9} {result.median:>8.2f} {percentile(result.times, 0.9):>8.2f} "
            f"{max(result.times):>8.2f} {result.cpu:>8.2f} {result.fill:>9.0f} "
            f"{result.memory:>7.1f}"
        )
    ratio = results[-1].median / results[0].median
    good = results[-1].median <= GOAL_MS and ratio <= GOAL_RATIO
    print(f"ratio {ratio:.2f} (goal {GOAL_RATIO}), median goal {GOAL_MS:g} ms: "
          f"{'met' if good else 'MISSED'}")  # fmt: skip
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
