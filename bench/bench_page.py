"""What the history and the page cost a change: both off, and on with one page open, side by side.

Agents of the same manifests run at once, each with its sinks, and a round changes the Service of each
of them (`bench.bench_tracing`): a busy machine slows all alike. The page is read as a browser does: the
stream of revisions; the open view, after an event with another revision of what is in it: the
counts of the sessions, the first 500 routes, the explanation of one address, the last changes, or cells
and reconcilers; the head of the page, which has the status with the sessions, after another revision of
it and every two minutes; the process, and the counts in the view of sessions, every 30 seconds. A test
compares all of it with the script, ``cells/page/static/page.js``.

Printed are the median time from the file to all sessions, and the processor time of the agent for a
change, with the readings of the page: the median and the mean, and the ratio of each to the agent
without. The median of pairs decides: a pair is the processor time of two agents in the same block of
rounds, as the speed of a shared machine drifts. A block takes four seconds, and the page reads every
eight while routes change all the time, in every other block. Of single rounds few have a reading: their
median would be without one. What is rarer is in the mean alone: the process, and the head.

``python -m bench.bench_page [--rounds N] [--peers N] [--services N] [--view VIEW]``
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from bench.bench_propagation import cpu_ms
from bench.bench_tracing import Variant, measure, paired, running

GOAL = 1.05
READINGS = 30
"""Of a view on its own."""
BLOCK = 20
"""Rounds whose processor time is compared at once."""
PORT = 18767
OFF = ("--history-entries", "0", "--disable-cell", "page")
HISTORY = ("--disable-cell", "page")
ON = ("--page-address", str(PORT))
VARIANTS = {"off": OFF, "off, once more": OFF, "history": HISTORY, "history and a page": ON}
PROCESS = ("/v1/process",)
HEAD = ("/v1/status", *PROCESS)
PROCESS_SECONDS = 30.0
HEAD_SECONDS = 120.0
COUNTS = ("/v1/peer-counts",)
EXPLAINED = "172.16.0.1"
"""The address of a Service that does not change."""
VIEWS: Final[Mapping[str, Sequence[str]]] = {
    "sessions": COUNTS,
    "routes": ("/v1/routes?table=advertised&limit=500",),
    "explain": (f"/v1/explain?target={EXPLAINED}",),
    "changes": ("/v1/history?limit=200",),
    "health": ("/v1/health", "/v1/reconcilers"),
}
"""What each view of the page reads."""
READ_WITH: Final[Mapping[str, frozenset[str]]] = {
    "sessions": frozenset({"state", "routes"}),
    "routes": frozenset({"routes"}),
    "explain": frozenset({"state", "routes", "history"}),
    "changes": frozenset({"history"}),
    "health": frozenset({"health"}),
}
"""The revisions with which it is read again."""
VIEW_SECONDS: Final[Mapping[str, float]] = {"routes": 20.0, "explain": 60.0}
"""Of a view that costs much: after `VIEW_BURST` readings one in so many seconds."""
VIEW_BURST = 5


class Allowance:
    """When a view may be read again."""

    def __init__(self, period: float) -> None:
        self._period = period
        self._next = float("-inf")

    def pause(self, now: float) -> float:
        """Return the seconds until it may be read; 0 takes a reading."""
        at = max(self._next, now - (VIEW_BURST - 1) * self._period)
        if at > now:
            return at - now
        self._next = at + self._period
        return 0


class Cost(NamedTuple):
    """The processor time of an agent for a change in ms, and its ratio to the agent without."""

    median: float
    ratio: float
    """The median of the ratios of one block, which decides."""
    mean: float
    ratio_of_means: float


def cost(rounds: Sequence[float], off: Sequence[float]) -> Cost:
    """Return the cost of an agent, by its rounds and the rounds of the agent without."""
    # A shorter block at the end has fewer readings, or none: ignored, unless it is the only one.
    starts = range(0, max(1, len(rounds) - BLOCK + 1), BLOCK)
    own, other = (
        [statistics.mean(values[start : start + BLOCK]) for start in starts]
        for values in (rounds, off)
    )
    mean = statistics.mean(rounds)
    return Cost(statistics.median(own), paired(own, other), mean, mean / statistics.mean(off))


def get(path: str) -> None:
    """Read one answer as the page does. Raises ValueError for another status."""
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=10)
    connection.request("GET", path)
    response = connection.getresponse()
    response.read()
    connection.close()
    if response.status != 200:
        raise ValueError(f"{path}: status {response.status}")


@contextmanager
def one_page(view: str = "changes") -> Iterator[Counter[str]]:
    """Have one page open; yields the numbers of its readings."""
    readings: Counter[str] = Counter()
    stream = http.client.HTTPConnection("127.0.0.1", PORT, timeout=30)
    stream.request("GET", "/v1/live", headers={"Accept": "text/event-stream"})
    answer = stream.getresponse()

    def follow() -> None:
        before: dict[str, int] = {}
        head_at = process_at = float("-inf")
        allowance = Allowance(VIEW_SECONDS.get(view, 0))
        waits = False
        while line := answer.readline():
            if not line.startswith(b"data: "):
                continue
            item = json.loads(line[len(b"data: ") :])
            differing = {name for name, value in item.items() if before.get(name) != value}
            before = item
            readings["events"] += 1
            now = time.monotonic()
            head = "state" in differing or now - head_at > HEAD_SECONDS
            if head:
                head_at = now
                read("head", HEAD)
            # The head has the sessions.
            if (waits or READ_WITH[view] & differing) and not (head and view == "sessions"):
                waits = not head and allowance.pause(now) > 0
                if not waits:
                    read(view, VIEWS[view])
            if head:
                continue
            if now - process_at > PROCESS_SECONDS:
                process_at = now
                read("process", (*PROCESS, *COUNTS) if view == "sessions" else PROCESS)

    def read(part: str, paths: Sequence[str]) -> None:
        for path in paths:
            get(path)
        readings[part] += 1

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    yield readings


def one_reading(pid: int, view: str) -> float:
    """Return the processor time of one reading of a view in ms, of several while nothing changes."""
    began = cpu_ms(pid)
    for _ in range(READINGS):
        for path in VIEWS[view]:
            get(path)
    return (cpu_ms(pid) - began) / READINGS


def main() -> int:
    """Measure and print; exit status 1 if the processor time with a page is over the goal."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=200, metavar="N")
    parser.add_argument("--peers", type=int, default=100, metavar="N")
    parser.add_argument("--services", type=int, default=1000, metavar="N")
    parser.add_argument("--view", choices=tuple(VIEWS), default="changes")
    args = parser.parse_args()
    with contextlib.ExitStack() as stack:
        sides = [
            stack.enter_context(running(name, Variant(flags), args.services, args.peers))
            for name, flags in VARIANTS.items()
        ]
        readings = stack.enter_context(one_page(args.view))
        measure(sides, 3)  # imports of the first readings; the last address is not the next one
        for side in sides:
            side.times.clear()
            side.rounds.clear()
        readings.clear()
        measure(sides, args.rounds)
        own_time = one_reading(sides[-1].pid, args.view)
    print(f"{args.peers} peers, {args.services} Services, {args.rounds} changes, in ms")
    print(f"{'on':<20} {'time':>7} {'ratio':>6} {'CPU':>7} {'ratio':>6} {'mean':>7} {'ratio':>6}")
    off = sides[0]
    costs = [cost(side.rounds, off.rounds) for side in sides]
    for side, used in zip(sides, costs, strict=True):
        took = statistics.median(side.times)
        pairs = (
            (took, took / statistics.median(off.times)),
            (used.median, used.ratio),
            (used.mean, used.ratio_of_means),
        )
        print(f"{side.name:<20} {' '.join(f'{v:>7.2f} {ratio:>6.3f}' for v, ratio in pairs)}")
    print(f"the page: {dict(readings)}; one reading of its view takes {own_time:.1f} ms")
    return 0 if costs[-1].ratio <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
