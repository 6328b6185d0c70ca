"""Processor time of the writer of kernel routes, and the kernel's with it, for a whole table.

In a network namespace of its own, which it makes and removes: routes are written, written again as they
are, replaced, moved to other next hops, listed by a new writer, read back, and removed. The goals are
for the messages alone, packed 500 of a datagram.

``python -m bench.bench_kernel [--routes N] [--rounds N]`` (root)
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from reconcilers.kernel.writer.protocol_messages import (
    IPV4,
    IPV6,
    MAX_ROUTES,
    Batch,
    Confirmed,
    Move,
    NextHopSet,
    Read,
    Routes,
    RouteTable,
    SetRoutes,
)
from tests.support.kernel_writer import WriterProcess, hop, index, writer_in
from tests.support.netns import DEVICE, linked_namespaces, unavailable

TABLE: Final = 1000
GOALS: Final = {
    "write": {IPV4: 0.45, IPV6: 0.45},
    "write again": {IPV4: 0.10, IPV6: 0.10},
    "replace": {IPV4: 0.40, IPV6: 0.45},
    "lose a next hop": {IPV4: 0.10, IPV6: 0.20},
    "adopt": {IPV4: 0.50, IPV6: 0.50},
    "read back": {IPV4: 0.40, IPV6: 0.50},
    "remove": {IPV4: 0.45, IPV6: 0.45},
    "remove a set": {IPV4: 0.15, IPV6: 0.25},
}
"""CPU seconds for 100,000 routes: of the kernel and the writer together."""
MEMORY_MB: Final = 60.0


class Bench:
    """A writer in a namespace, and its processor time."""

    def __init__(self, writer: WriterProcess, table: RouteTable, count: int) -> None:
        self._writer = writer
        self._table = table
        # Consecutive networks: /24 from 10.0.0.0, /48 from 2001:db8::.
        octets, first = (3, 0x0A0000) if table.family == IPV4 else (6, 0x20010DB80000)
        length = bytes((8 * octets,))
        self._prefixes = [length + (first + n).to_bytes(octets, "big") for n in range(count)]
        self._number = 0

    def _cpu(self) -> float:
        # In nanoseconds, where /proc/PID/stat has hundredths of a second.
        text = Path(f"/proc/{self._writer.process.pid}/schedstat").read_text()
        return int(text.split()[0]) / 1e9

    def measure(self, work: Callable[[], None]) -> tuple[float, float]:
        """Return CPU seconds of the writer, and seconds by the clock."""
        cpu, began = self._cpu(), time.perf_counter()
        work()
        return self._cpu() - cpu, time.perf_counter() - began

    def install(self, next_hops: NextHopSet) -> None:
        """Write the table in batches, two of them on the way."""
        self._send(
            lambda routes: Batch(0, routes=(SetRoutes(next_hops, (routes,)),)), self._prefixes
        )

    def remove(self) -> None:
        """Remove all routes, the last one first."""
        self._send(lambda routes: Batch(0, removed=(routes,)), self._prefixes[::-1])

    def move(self, old: NextHopSet, new: NextHopSet | None) -> None:
        """Move all routes of a set."""
        self._writer.batch(moves=(Move(old, new),))

    def read(self) -> None:
        """Read the table."""
        self._writer.send(Read(1, self._table))
        self._writer.listing()

    def adopt(self) -> tuple[float, float]:
        """Start another writer; returns its CPU seconds without its start, and by the clock."""
        self._writer.kill()
        self._writer.start()
        while self._writer.process.poll() is None and not self._is_idle():
            time.sleep(0.01)
        return self.measure(lambda: self._check(self._writer.connect()))

    def memory(self) -> float:
        """Return the greatest resident memory of the writer so far, in MB."""
        status = Path(f"/proc/{self._writer.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024

    def _is_idle(self) -> bool:
        before = self._cpu()
        time.sleep(0.1)
        return before > 0.0 and self._cpu() == before

    def _check(self, listed: list[SetRoutes]) -> None:
        octets = sum(len(r.prefixes) for s in listed for r in s.routes)
        assert octets == sum(map(len, self._prefixes)), "the writer adopts all routes"

    def _send(self, batch: Callable[[Routes], Batch], prefixes: list[bytes]) -> None:
        waiting = 0
        for at in range(0, len(prefixes), MAX_ROUTES):
            if waiting == 2:
                self._confirm()
                waiting -= 1
            routes = Routes(self._table, b"".join(prefixes[at : at + MAX_ROUTES]))
            self._number += 1
            self._writer.send(batch(routes)._replace(number=self._number))
            waiting += 1
        for _ in range(waiting):
            self._confirm()

    def _confirm(self) -> None:
        assert not self._writer.expect(Confirmed).failures


def main() -> int:
    """Measure; returns 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--routes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    reason = unavailable()
    if reason is not None:
        print(reason)
        return 2
    missed = 0
    for family in (IPV4, IPV6):
        figures: dict[str, list[tuple[float, float]]] = {}
        memory = 0.0
        for _ in range(args.rounds):
            for name, cpu, clock, used in _round(family, args.routes):
                figures.setdefault(name, []).append((cpu, clock))
                memory = max(memory, used)
        for name, measured in figures.items():
            cpu = statistics.median(each[0] for each in measured)
            clock = statistics.median(each[1] for each in measured)
            goal = GOALS[name][family] * args.routes / 100_000
            missed += cpu > goal
            mark = "" if cpu <= goal else "  MISSED"
            version = 4 if family == IPV4 else 6
            print(
                f"IPv{version} {name:16} {cpu:6.3f} s CPU, {clock:6.3f} s by the clock"
                f" (goal {goal:.2f}){mark}"
            )
        print(f"memory {memory:.0f} MB (goal {MEMORY_MB:.0f})")
        missed += memory > MEMORY_MB
    return 1 if missed else 0


def _round(family: int, count: int) -> Iterator[tuple[str, float, float, float]]:
    with linked_namespaces() as link:
        link.left.batch(
            f"addr add 192.0.2.1/24 dev {DEVICE}", f"addr add 2001:db8:a::1/64 dev {DEVICE} nodad"
        )
        device = index(link.left, DEVICE)
        hosts = ("192.0.2.2", "192.0.2.3") if family == IPV4 else ("2001:db8:a::2", "2001:db8:a::3")
        a, b = (hop(host, device) for host in hosts)
        with writer_in(link.left) as writer:
            bench = Bench(writer, RouteTable(TABLE, family, 20), count)
            steps: dict[str, Callable[[], None]] = {
                "write": lambda: bench.install((a,)),
                "write again": lambda: bench.install((a,)),
                "replace": lambda: bench.install((a, b)),
                "lose a next hop": lambda: bench.move((a, b), (b,)),
                "read back": bench.read,
            }
            for name, work in steps.items():
                yield name, *bench.measure(work), bench.memory()
            yield "adopt", *bench.adopt(), bench.memory()
            yield "remove", *bench.measure(bench.remove), bench.memory()
            bench.install((b,))
            yield "remove a set", *bench.measure(lambda: bench.move((b,), None)), bench.memory()


if __name__ == "__main__":
    sys.exit(main())
