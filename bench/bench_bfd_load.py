"""BFD sessions of one waggle-bfd beside everything that can be wrong on a node: which of them are lost.

100 sessions of 50 ms x 3 for two minutes, with BIRD, then with FRR's bfdd at the other end, in network
namespaces of their own. The other end is scheduled before ordinary processes, as it stands for another
machine. Meanwhile there are, all at once:

* ``busy``: six processes that compute
* ``table``: an agent that takes a table of a million routes, all of which it accepts
  (`bench.bench_received`), again and again
* ``objects``: an agent that lists 50,000 Services of an API server, and advertises them to a router
  (`bench.bench_kubernetes`), likewise
* ``memory``: waggle-bfd is in a control group without free memory, beside processes that fill it and
  read files

Reported are the sessions that were lost at either end, the gaps between the packets that the neighbor
received, by the kernel's time of their arrival, the longest gap and the lateness by waggle-bfd's own
account; first with SCHED_FIFO, whose goal is no loss (exit status 1 otherwise), then the same without.
Each load has its number of runs; a load that ends of an error was none, and the exit status is 1. As
root:

``python -m bench.bench_bfd_load [--seconds N] [--neighbor NAME] [--load NAME] [--scheduling NAME]``
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
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
    Frr,
    Neighbor,
    Setup,
    give_addresses,
    prefer,
    sniff,
    sniffer,
    stand_for_another_machine,
)
from bench.bench_received import ROUTES, write_table
from reconcilers.bfd.process.process_messages import ProcessStatus, SetSessions, Wanted
from speaker.bfd.session_values import SessionKey, Settings
from tests.support.bfd_process import BfdProcess
from tests.support.netns import DEVICE, linked_namespaces, unavailable
from tests.support.wait import NotReadyError, eventually

BUSY: Final = 6
LIMIT: Final = 512
"""Megabytes of the control group; waggle-bfd uses some 25."""
FILLED: Final = 400
"""Megabytes of it that a process fills; the rest is soon full of what another process reads."""
FILE: Final = 1024
"""Megabytes of the file that is read."""
TABLE: Final = "table"
"""The file of the routes that the agent takes."""
SERVICES: Final = 50_000
NEIGHBORS: Final[dict[str, type[Neighbor]]] = {"bird": Bird, "frr": Frr}
LOADS: Final = ("busy", "table", "objects", "memory")
SCHEDULING: Final = ("fifo", "ordinary")
ENDLESS: Final = frozenset({"busy", "memory"})
"""Loads whose programs end of nothing but an error."""
TRACEBACK: Final = b"Traceback (most recent call last)"
PYTHON: Final = (sys.executable, "-c")
FILL: Final = """
import sys
size = int(sys.argv[1]) << 20
held = bytearray(size)
while True:
    for at in range(0, size, 4096):
        held[at] = (held[at] + 1) & 255
"""
READ: Final = """
import sys
with open(sys.argv[1], "wb") as file:
    file.truncate(int(sys.argv[2]) << 20)
while True:
    with open(sys.argv[1], "rb", buffering=0) as file:
        while file.read(1 << 20):
            pass
"""


class MemoryGroup:
    """A control group with little memory, within that of this process."""

    def __init__(self) -> None:
        """Make it. Raises OSError."""
        paths = {
            controllers: Path(path.lstrip("/"))
            for _, controllers, path in (
                line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()
            )
        }
        top, limit = Path("/sys/fs/cgroup"), "memory.max"
        if "memory" in paths:
            top, limit = top / "memory", "memory.limit_in_bytes"
        self._parent = top / paths["memory" if "memory" in paths else ""]
        self._path = self._parent / f"waggle-bench-{os.getpid()}"
        self._path.mkdir()
        (self._path / limit).write_text(str(LIMIT << 20))

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Start processes in it."""
        self._move(self._path)
        try:
            yield
        finally:
            self._move(self._parent)

    def _move(self, path: Path) -> None:
        (path / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self) -> None:
        """Remove it, once its processes have ended."""

        def gone() -> None:
            try:
                self._path.rmdir()
            except OSError as error:
                raise NotReadyError(str(error)) from None

        eventually(gone)


@dataclasses.dataclass
class Runs:
    """The runs of a program of a load, which was started again whenever it had ended."""

    load: str
    started: int = 0
    missed: int = 0
    """Runs that ended with a goal of their own missed, as on a machine that is busy."""
    out_of_memory: int = 0
    """Runs that the kernel ended, of a program that leaves no memory."""
    error: str = ""
    """The end of a run that was no load any more, after which there was no other run."""

    def ended(self, status: int, output: bytes) -> None:
        """Judge a run that has ended by itself."""
        if self.load == "memory" and status == -signal.SIGKILL:
            self.out_of_memory += 1
        elif self.load not in ENDLESS and status == 1 and TRACEBACK not in output:
            self.missed += 1
        elif self.load in ENDLESS or status != 0:
            last = output.decode(errors="replace").strip().rpartition("\n")[2]
            self.error = f"status {status}: {last}"

    def __str__(self) -> str:
        """Describe the runs in a line."""
        more = [f"{self.missed} missed a goal"] if self.missed else []
        more += [f"{self.out_of_memory} out of memory"] if self.out_of_memory else []
        more += [f"FAILED, {self.error}"] if self.error else []
        return ", ".join([f"{self.load}: {self.started} runs", *more])


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
    loads: list[Runs]


def commands(load: str, directory: Path) -> list[list[str]]:
    """Return the commands of a load; they are started again when they have done their work."""
    module = [sys.executable, "-m"]
    match load:
        case "busy":
            return [[*PYTHON, "while True: pass"] for _ in range(BUSY)]
        case "table":
            table = str(directory / TABLE)
            return [[*module, "bench.bench_received", "--accept", "all", "--table", table]]
        case "objects":
            return [[*module, "bench.bench_kubernetes", "--peer", "--services", str(SERVICES)]]
        case _:
            return [
                [*PYTHON, FILL, str(FILLED)],
                [*PYTHON, READ, str(directory / "file"), str(FILE)],
            ]


@contextlib.contextmanager
def loaded(loads: Sequence[str], directory: Path, group: MemoryGroup) -> Iterator[list[Runs]]:
    """Keep the loads running, each in a process group of its own; yield their runs."""
    ends = threading.Event()
    running: dict[int, subprocess.Popen[bytes]] = {}
    lock = threading.Lock()

    def keep(number: int, runs: Runs, command: list[str]) -> None:
        path = directory / f"load-{number}"
        while not ends.is_set() and not runs.error:
            with lock, group.entered() if runs.load == "memory" else contextlib.nullcontext():
                if ends.is_set():
                    return
                with path.open("wb") as output:
                    running[number] = subprocess.Popen(
                        command, stdout=output, stderr=output, start_new_session=True
                    )
                runs.started += 1
            status = running[number].wait()
            if ends.is_set():
                return
            runs.ended(status, path.read_bytes())
            ends.wait(0.2)

    every = [(Runs(load), command) for load in loads for command in commands(load, directory)]
    threads = [
        threading.Thread(target=keep, args=(number, *each)) for number, each in enumerate(every)
    ]
    for thread in threads:
        thread.start()
    try:
        yield [runs for runs, _ in every]
    finally:
        with lock:
            ends.set()
            for process in running.values():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        for thread in threads:
            thread.join()


def measure(
    setup: Setup, neighbor_kind: str, loads: Sequence[str], seconds: float, *, ordinary: bool
) -> Result:
    """Bring all sessions up, and watch them under load."""
    with (
        linked_namespaces() as link,
        tempfile.TemporaryDirectory(prefix="bench-bfd-") as path,
        contextlib.ExitStack() as stack,
    ):
        if "table" in loads:
            write_table(Path(path) / TABLE, ROUTES)
        give_addresses(link, setup)
        neighbor = NEIGHBORS[neighbor_kind](
            link.right, Path(path) / "neighbor", setup, is_neighbor=True
        )
        neighbor.start()
        stack.callback(neighbor.stop)
        folder = Path(path) / "waggle"
        folder.mkdir()
        flags = ("--least-interval", str(setup.interval)) if ordinary else ()
        group = MemoryGroup()
        stack.callback(group.remove)
        with group.entered() if "memory" in loads else contextlib.nullcontext():
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

        eventually(all_up)
        time.sleep(2)
        before, known = ours.connect(), neighbor.marks()
        seen = sniffer(link.right)
        with loaded(loads, Path(path), group) as runs:
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
            max(session.longest_gap for session in after.values()) / 1e6 / interval,
            status.lateness / 1000,
            runs,
        )


def main() -> None:
    """Measure, and print a row for each neighbor and kind of scheduling, and the goals."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--interval", type=int, default=50, help="in milliseconds")
    parser.add_argument("--seconds", type=float, default=120.0, help="of each measurement")
    parser.add_argument("--neighbor", action="append", choices=NEIGHBORS, help="default: each")
    parser.add_argument("--load", action="append", choices=LOADS, help="default: all at once")
    parser.add_argument("--scheduling", action="append", choices=SCHEDULING, help="default: each")
    args = parser.parse_args()
    if (reason := unavailable()) is not None:
        sys.exit(reason)
    stand_for_another_machine()
    setup = Setup(args.sessions, args.interval)
    loads: Sequence[str] = args.load or LOADS
    print(f"{args.sessions} sessions of {args.interval} ms beside {', '.join(loads)}", flush=True)
    goals: list[tuple[str, int]] = []
    failed: list[Runs] = []
    for scheduling in args.scheduling or SCHEDULING:
        for kind in args.neighbor or NEIGHBORS:
            ordinary = scheduling == "ordinary"
            result = measure(setup, kind, loads, args.seconds, ordinary=ordinary)
            print(
                f"{scheduling:9}{kind:5}lost {result.lost}, by the neighbor "
                f"{result.lost_by_neighbor}; gap p99.9 {result.gap:.2f} longest "
                f"{result.longest:.2f} of the interval, received {result.own_gap:.2f}; "
                f"lateness {result.lateness:.1f} ms",
                *(f"{'':14}{runs}" for runs in result.loads),
                sep="\n",
                flush=True,
            )
            failed += [runs for runs in result.loads if runs.error]
            if not ordinary:
                goals.append((kind, result.lost + result.lost_by_neighbor))
    print("goals")
    for kind, lost in goals:
        print(f"SCHED_FIFO, {kind}: lost {lost} (goal 0) {'missed' if lost else 'ok'}")
    for runs in failed:
        print(f"no load: {runs}")
    sys.exit(bool(failed) or any(lost for _, lost in goals))


if __name__ == "__main__":
    main()
