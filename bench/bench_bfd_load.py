"""BFD sessions of one waggle-bfd beside everything that can be wrong on a node: which of them are lost.

In network namespaces of its own, with BIRD or FRR's bfdd at the other end, which is scheduled before
ordinary processes, as it stands for another machine. Meanwhile there are, one after another or all at
once (``--load``):

* ``busy``: six processes that compute
* ``table``: an agent that takes a table of a million routes (`bench.bench_received`), again and again
* ``objects``: an agent that lists and applies 50,000 objects (`bench.bench_kubernetes`), likewise
* ``memory``: a process that fills and reads the memory that is free, but for a reserve

Reported are the sessions that were lost at either end, the gaps between the packets that the neighbor
received, by the kernel's time of their arrival, the longest gap and the lateness by waggle-bfd's own
account. ``--ordinary``: waggle-bfd without SCHED_FIFO.

``python -m bench.bench_bfd_load [--seconds N] [--neighbor NAME] [--load NAME] [--ordinary]`` (root)
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench.bench_bfd import (
    MULTIPLIER,
    PER_MESSAGE,
    Bird,
    Daemons,
    Frr,
    Setup,
    give_addresses,
    sniff,
    sniffer,
)
from reconcilers.bfd.process.values import ProcessStatus, SetSessions, Wanted
from speaker.bfd.values import SessionKey, Settings
from tests.support.bfd_process import BfdProcess
from tests.support.netns import DEVICE, linked_namespaces, unavailable
from tests.support.wait import eventually

BUSY: Final = 6
MAX_BALLAST: Final = 8
"""Gigabytes."""
RESERVE: Final = 2
"""Gigabytes that stay free for the rest of the machine."""
NEIGHBORS: Final[dict[str, type[Daemons]]] = {"bird": Bird, "frr": Frr}
PYTHON: Final = (sys.executable, "-c")
BALLAST: Final = """
import sys
size = int(sys.argv[1]) << 20
held = bytearray(size)
while True:
    for at in range(0, size, 4096):
        held[at] = (held[at] + 1) & 255
"""


class Result(NamedTuple):
    """What was seen of the sessions."""

    lost: int
    """By waggle-bfd."""
    lost_by_neighbor: int
    gap: float
    """The 99.9th percentile of what the neighbor received, divided by the interval."""
    longest: float
    own_gap: float
    """The longest gap between received packets, divided by the interval."""
    lateness: float
    """Of a deadline, in milliseconds."""


def ballast() -> int:
    """Return how many megabytes the load ``memory`` takes."""
    (line,) = (
        line
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("MemAvailable")
    )
    return max(0, min(MAX_BALLAST << 10, (int(line.split()[1]) >> 10) - (RESERVE << 10)))


def commands(load: str) -> list[list[str]]:
    """Return the commands of a load; they are started again when they end."""
    module = [sys.executable, "-m"]
    match load:
        case "busy":
            return [[*PYTHON, "while True: pass"] for _ in range(BUSY)]
        case "table":
            return [[*module, "bench.bench_received"]]
        case "objects":
            return [[*module, "bench.bench_kubernetes", "--services", "50000"]]
        case _:
            return [[*PYTHON, BALLAST, str(ballast())]]


@contextlib.contextmanager
def loaded(loads: Sequence[str]) -> Iterator[None]:
    """Keep the loads running, each in a process group of its own."""
    ends = threading.Event()
    running: dict[int, subprocess.Popen[bytes]] = {}
    lock = threading.Lock()

    def keep(number: int, command: list[str]) -> None:
        while not ends.is_set():
            with lock:
                if ends.is_set():
                    return
                running[number] = subprocess.Popen(
                    command,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            running[number].wait()
            ends.wait(0.2)

    every = [command for load in loads for command in commands(load)]
    threads = [
        threading.Thread(target=keep, args=(number, command))
        for number, command in enumerate(every)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        with lock:
            ends.set()
            for process in running.values():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        for thread in threads:
            thread.join()


def prefer(processes: Sequence[int]) -> None:
    """Schedule processes, with all of their threads, before ordinary ones."""
    for process in processes:
        for task in Path(f"/proc/{process}/task").iterdir():
            flags = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
            os.sched_setscheduler(int(task.name), flags, os.sched_param(10))


def measure(
    setup: Setup, neighbor_kind: str, loads: Sequence[str], seconds: float, *, ordinary: bool
) -> Result:
    """Bring all sessions up, and watch them under load."""
    with (
        linked_namespaces() as link,
        tempfile.TemporaryDirectory(prefix="bench-bfd-") as path,
        contextlib.ExitStack() as stack,
    ):
        give_addresses(link, setup)
        neighbor = NEIGHBORS[neighbor_kind](
            link.right, Path(path) / "neighbor", setup, is_neighbor=True
        )
        neighbor.start()
        stack.callback(neighbor.stop)
        folder = Path(path) / "waggle"
        folder.mkdir()
        flags = ("--least-interval", str(setup.interval)) if ordinary else ()
        ours = BfdProcess(link.left, folder, *flags, lacking="-sys_nice" if ordinary else "")
        stack.callback(ours.end)
        ours.connect()
        keys = [SessionKey(theirs, mine, DEVICE) for mine, theirs in setup.pairs()]
        microseconds = setup.interval * 1000
        settings = Settings(microseconds, microseconds, MULTIPLIER)
        for first in range(0, len(keys), PER_MESSAGE):
            some = keys[first : first + PER_MESSAGE]
            ours.send(SetSessions(tuple(Wanted(key, settings) for key in some)))
        prefer(neighbor.processes())

        def all_up() -> None:
            assert neighbor.up() == setup.sessions

        eventually(all_up, within=60)
        time.sleep(2)
        before, known = ours.connect(), neighbor.marks()
        seen = sniffer(link.right)
        with loaded(loads):
            times = sniff(seen, seconds)
        os.close(seen)
        time.sleep(1)
        after, then = ours.connect(), neighbor.marks()
        status = ours.expect(ProcessStatus)
        gaps = sorted(
            second - first
            for source in times.values()
            for first, second in itertools.pairwise(source)
        )
        lost = sum(
            after[key].ups != before[key].ups or str(after[key].state) != "Up" for key in keys
        )
        interval = setup.interval / 1000
        return Result(
            lost,
            sum(abs(then.get(address, -1.0) - mark) >= 1 for address, mark in known.items()),
            gaps[int(len(gaps) * 0.999)] / interval,
            gaps[-1] / interval,
            max(one.longest_gap for one in after.values()) / 1e6 / interval,
            status.lateness / 1000,
        )


def main() -> None:
    """Measure with each load, and print a row for each; exit status 1 if a session was lost."""
    every = ("busy", "table", "objects", "memory")
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--interval", type=int, default=50, help="in milliseconds")
    parser.add_argument("--seconds", type=float, default=120.0, help="with each load")
    parser.add_argument("--neighbor", action="append", choices=NEIGHBORS, help="default: each")
    parser.add_argument("--load", action="append", choices=(*every, "all"), help="default: each")
    parser.add_argument("--ordinary", action="store_true", help="waggle-bfd without SCHED_FIFO")
    args = parser.parse_args()
    if (reason := unavailable()) is not None:
        sys.exit(reason)
    # The sniffer stands for the other machine, too.
    flags = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
    os.sched_setscheduler(0, flags, os.sched_param(5))
    setup = Setup(args.sessions, args.interval)
    failed = False
    for kind in args.neighbor or NEIGHBORS:
        for load in args.load or every:
            loads = every if load == "all" else (load,)
            result = measure(setup, kind, loads, args.seconds, ordinary=args.ordinary)
            failed |= result.lost + result.lost_by_neighbor > 0
            print(
                f"{kind:5}{load:8}lost {result.lost}, by the neighbor {result.lost_by_neighbor}; "
                f"gap p99.9 {result.gap:.2f} longest {result.longest:.2f} of the interval, "
                f"received {result.own_gap:.2f}; lateness {result.lateness:.1f} ms",
                flush=True,
            )
    sys.exit(failed)


if __name__ == "__main__":
    main()
