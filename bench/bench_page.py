"""What the history and the page cost a change: both off, then on with one page open, in turns.

The workload is that of `bench_propagation`. The page is read as a browser reads it: the stream of
revisions, and after each of its events the status with the sessions, and the last changes.

``python -m bench.bench_page [--rounds N] [--changes N] [--peers N] [--services N]``
"""

from __future__ import annotations

import argparse
import http.client
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import workload
from bench.bench_propagation import SinkProcess, cores, cpu_seconds, one_change, start_agent

GOAL = 1.05
PORT = 18767
OFF = ("--history-entries", "0", "--disable-cell", "page")
ON = ("--page-address", str(PORT))
VIEWS = ("/v1/status", "/v1/process", "/v1/history?limit=200")


def get(path: str) -> None:
    """Read one answer as the page does."""
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=10)
    connection.request("GET", path)
    connection.getresponse().read()
    connection.close()


@contextmanager
def one_page() -> Iterator[list[int]]:
    """Have one page open; the list has the number of its readings."""
    readings = [0]
    stream = http.client.HTTPConnection("127.0.0.1", PORT, timeout=30)
    stream.request("GET", "/v1/live", headers={"Accept": "text/event-stream"})
    answer = stream.getresponse()

    def follow() -> None:
        while line := answer.readline():
            if line.startswith(b"data: "):
                for path in VIEWS:
                    get(path)
                readings[0] += 1

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    yield readings


def measure(
    flags: tuple[str, ...], services: int, peers: int, changes: int
) -> tuple[list[float], float, int]:
    """Return the times of changes and the CPU time of one, in ms, and the readings of the page."""
    agent_core, other_cores = cores()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        manifests = directory / "manifests"
        sink = SinkProcess(other_cores)
        workload.write(manifests, services=services, peers=peers, port=sink.port)
        agent = start_agent(directory, manifests, agent_core, flags=flags)
        times: list[float] = []
        readings = [0]
        try:
            sink.filled(services + 1, peers)
            time.sleep(1)
            if flags == ON:
                with one_page() as readings:
                    time.sleep(0.5)
            before = cpu_seconds(agent.pid)
            for step in range(1, changes + 1):
                times.append(one_change(sink, manifests, step))
                time.sleep(0.05)
            cpu = (cpu_seconds(agent.pid) - before) / changes * 1e3
        finally:
            agent.terminate()
            agent.wait(20)
            sink.stop()
    return times, cpu, readings[0]


def main() -> int:
    """Measure and print; the exit status is 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--changes", type=int, default=40, metavar="N")
    parser.add_argument("--peers", type=int, default=100, metavar="N")
    parser.add_argument("--services", type=int, default=1000, metavar="N")
    args = parser.parse_args()
    times: dict[tuple[str, ...], list[float]] = {OFF: [], ON: []}
    cpu: dict[tuple[str, ...], list[float]] = {OFF: [], ON: []}
    for _ in range(args.rounds):
        for flags in times:
            took, used, readings = measure(flags, args.services, args.peers, args.changes)
            times[flags] += took
            cpu[flags].append(used)
            what = f"on, {readings} readings" if flags == ON else "off"
            print(f"{statistics.median(took):8.2f} ms  CPU {used:6.2f} ms  {what}", flush=True)
    off, on = (statistics.median(times[flags]) for flags in (OFF, ON))
    print(f"median off {off:.2f} ms, on {on:.2f} ms: {on / off:.3f} (goal {GOAL})")
    spent = [f"{statistics.median(cpu[flags]):.2f}" for flags in (OFF, ON)]
    print(f"CPU for each change, ms: off {spent[0]}, on {spent[1]}")
    return 0 if on <= GOAL * off else 1


if __name__ == "__main__":
    sys.exit(main())
