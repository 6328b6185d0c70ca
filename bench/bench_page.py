"""What the history and the page cost a change: both off, and on with one page open, side by side.

Agents of the same manifests run at once, each with its sinks, and a round changes the Service of each
of them (`bench.bench_tracing`): a busy machine slows all alike. The page is read as a browser does: the
stream of revisions, and after each of its events the status with the sessions, and the last changes.
Printed are the median time from the file to all sessions, and the processor time of the agent over the
whole run for each change, which decides.

``python -m bench.bench_page [--rounds N] [--peers N] [--services N]``
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import statistics
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bench.bench_tracing import cpu_ms, measure, running

GOAL = 1.05
PORT = 18767
OFF = ("--history-entries", "0", "--disable-cell", "page")
HISTORY = ("--disable-cell", "page")
ON = ("--page-address", str(PORT))
VARIANTS = {"off": OFF, "off, once more": OFF, "history": HISTORY, "history and a page": ON}
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


def main() -> int:
    """Measure and print; exit status 1 if the processor time with a page is over the goal."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=100, metavar="N")
    parser.add_argument("--peers", type=int, default=100, metavar="N")
    parser.add_argument("--services", type=int, default=1000, metavar="N")
    args = parser.parse_args()
    with contextlib.ExitStack() as stack:
        sides = [
            stack.enter_context(running(name, flags, args.services, args.peers))
            for name, flags in VARIANTS.items()
        ]
        readings = stack.enter_context(one_page())
        measure(sides, 3)  # imports of the first readings; the last address is not the next one
        for side in sides:
            side.times.clear()
        before = [cpu_ms(side.pid) for side in sides]
        measure(sides, args.rounds)
        spent = [
            (cpu_ms(side.pid) - start) / (args.rounds + 1)
            for side, start in zip(sides, before, strict=True)
        ]
    print(f"{args.peers} peers, {args.services} Services, {args.rounds} changes, in ms")
    print(f"{'on':<20} {'time':>7} {'ratio':>6} {'CPU':>7} {'ratio':>6}")
    times = [statistics.median(side.times) for side in sides]
    for side, took, used in zip(sides, times, spent, strict=True):
        cells = (f"{v:>7.2f} {v / of:>6.3f}" for v, of in ((took, times[0]), (used, spent[0])))
        print(f"{side.name:<20} {' '.join(cells)}")
    print(f"{readings[0]} readings of the page")
    return 0 if spent[-1] <= GOAL * spent[0] else 1


if __name__ == "__main__":
    sys.exit(main())
