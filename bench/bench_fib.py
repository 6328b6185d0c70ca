"""Routes from a BGP session into the kernel: Waggle beside BIRD, and FRR's bgpd with zebra.

In network namespaces of its own: BIRD announces a table to each in turn. Measured are the seconds from
the first route in the kernel until all are there but for the feeder's last UPDATE, and the
processor seconds of the processes from the start of the session; then the seconds from the end of the
session until all are gone. With ``--ecmp`` a second session with the same routes ends before: the
seconds until no route uses it. With
``--change`` one route of a third session comes and goes meanwhile, and on a quiet router: the 99th
percentile, of all rounds, of the seconds until the kernel has it. With ``--restart`` the agent is
restarted with its routes in the kernel: the seconds until a writer knows them, and the changes of
routes that the kernel notifies of until all is settled. With ``--pass-on`` ``waggle router``, with and
without routes in the kernel (``without``), advertises all to a further peer: the 99th percentile until
that peer has the change of one route, quiet and while the table is installed. The routers ``least`` and
``least2`` are the floor in one and in two processes: `bench.least_router`, over IPv4. ``beside`` is the
floor of passing a change on: ``without``, while another program installs as many routes
(`bench.route_load`). With ``--all`` all of it, then 10,000 routes, then as many over IPv6 as at first,
and each goal with its verdict at the end.

``python -m bench.bench_fib [--all] [--routes N] [--rounds N] [--family 4|6] [--router NAME]`` (root)
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from bench.fib.contestants import (
    Beside,
    Bird,
    Contestant,
    Frr,
    Least,
    LeastOfTwo,
    Router,
    RouterWithout,
    Waggle,
)
from bench.fib.lab import Figure, Lab, lab, percentile
from tests.support.netns import unavailable

KINDS: Final[dict[str, type[Contestant]]] = {
    kind.name: kind
    for kind in (Waggle, Bird, Frr, Least, LeastOfTwo, Router, RouterWithout, Beside)
}
BESIDE: Final = ("waggle", "bird", "frr")
"""The routers whose installation is compared."""
PASSING_ON: Final = ("router", "without")
GOALS: Final = {
    ("install", "seconds", "waggle", "bird"): 0.8,
    ("install", "cpu", "waggle", "bird"): 1.0,
    ("install", "seconds", "waggle", "frr"): 0.5,
    ("remove", "seconds", "waggle", "frr"): 0.5,
    ("lose", "seconds", "waggle", "frr"): 0.1,
    ("change", "seconds", "waggle", "bird"): 1.5,
    ("change in load", "seconds", "waggle", "bird"): 1.5,
    ("pass on in load", "seconds", "router", "without"): 1.5,
}
"""The median of the first router divided by that of the second one, at the most."""
GOALS_IPV6: Final = {("install", "seconds", "waggle", "bird"): 0.8}
LIMITS: Final = {("lose", "seconds"): 0.05, ("restart", "seconds"): 0.5, ("restart", "writes"): 0.0}
"""Waggle's own."""
WRITER_MEGABYTES: Final = 60
FEWER_ROUTES: Final = 10_000
LEAST_SECONDS: Final = 0.001
"""What is measured of few routes may be less."""
STEPS: Final = ("ecmp", "change", "restart", "pass_on")
"""Options that add steps."""


class Run(NamedTuple):
    """What is measured together."""

    family: int
    routes: int
    extra: frozenset[str]

    def __str__(self) -> str:
        """Return it for people."""
        return f"{self.routes} routes over IPv{self.family}"


class Results:
    """The figures of one run, by step and router."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.figures: dict[tuple[str, str], list[Figure]] = {}
        self.megabytes = 0.0

    def median(self, step: str, name: str, what: str) -> float:
        """Return the median of all rounds; of changes the 99th percentile of all rounds together."""
        figures = self.figures[step, name]
        if what == "seconds" and figures[0].changes:
            # A round has few of them.
            return percentile([seconds for figure in figures for seconds in figure.changes])
        at = Figure._fields.index(what)
        return statistics.median(figure[:3][at] for figure in figures)

    def report(self) -> int:
        """Print medians, and each goal with its verdict; returns the number of missed ones."""
        print(f"\n{self.run}")
        for step, name in self.figures:
            seconds, cpu, writes = (
                self.median(step, name, each) for each in ("seconds", "cpu", "writes")
            )
            changes = tuple(s for figure in self.figures[step, name] for s in figure.changes)
            print(f"median  {_line(name, step, Figure(seconds, cpu, writes, changes))}")
        verdicts = list(self._verdicts())
        for text, value, goal in verdicts:
            print(f"{'MET' if value <= goal else 'MISSED':6}  {text}: {value:.3g} (goal {goal:g})")
        return sum(value > goal for _, value, goal in verdicts)

    def _verdicts(self) -> Iterator[tuple[str, float, float]]:
        """Yield each goal of what was measured: its text, the value and its limit."""
        for (step, what), limit in LIMITS.items():
            if (step, "waggle") in self.figures:
                yield f"{step}, {what}", self.median(step, "waggle", what), limit
        goals = GOALS if self.run.family == 4 else GOALS_IPV6
        for (step, what, name, other), goal in goals.items():
            if {(step, name), (step, other)} <= self.figures.keys():
                ratio = self.median(step, name, what) / max(
                    LEAST_SECONDS, self.median(step, other, what)
                )
                yield f"{step}, {what} of {name} in {what} of {other}", ratio, goal
        if self.megabytes:
            yield "megabytes of the writer", self.megabytes, WRITER_MEGABYTES


def measure(run: Run, rounds: int, names: Sequence[str]) -> Results:
    """Measure all routers in turns."""
    results = Results(run)
    for _ in range(rounds):
        for name in names:
            with lab(KINDS[name], run.family, run.routes) as running:
                for step, work in _steps(name, run, running):
                    figure = work()
                    results.figures.setdefault((step, name), []).append(figure)
                    print(_line(name, step, figure), flush=True)
                if name == "waggle":
                    results.megabytes = max(results.megabytes, running.writer_megabytes())
    return results


def _steps(name: str, run: Run, running: Lab) -> list[tuple[str, Callable[[], Figure]]]:
    if issubclass(KINDS[name], Router):
        return [("pass on", running.pass_on), ("pass on in load", running.pass_on_in_load)]
    steps: list[tuple[str, Callable[[], Figure]]] = []
    if "change" in run.extra:
        steps.append(("change", running.change))
    steps.append(("install", running.install))
    if "ecmp" in run.extra:
        steps.append(("lose", running.lose))
    if "restart" in run.extra and name == "waggle":
        steps.append(("restart", running.restart))
    steps.append(("remove", running.remove))
    if "change" in run.extra:
        steps.append(("change in load", running.change_in_load))
    return steps


def main() -> int:
    """Measure; returns 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="all steps, and all goals")
    parser.add_argument("--routes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--family", type=int, choices=(4, 6), default=4)
    parser.add_argument(
        "--ecmp", action="store_true", help="a second session with the same routes ends, too"
    )
    parser.add_argument(
        "--change", action="store_true", help="one route of a third session changes"
    )
    parser.add_argument(
        "--restart",
        action="store_true",
        help="the agent is restarted with the routes in the kernel",
    )
    parser.add_argument(
        "--pass-on",
        action="store_true",
        help="a change is passed on to another peer, while routes are installed and without",
    )
    parser.add_argument("--router", action="append", choices=list(KINDS))
    args = parser.parse_args()
    reason = unavailable()
    if reason is not None:
        print(reason)
        return 2
    extra = frozenset(step for step in STEPS if args.all or getattr(args, step))
    runs = [Run(args.family, args.routes, extra)]
    if args.all:
        fewer = min(FEWER_ROUTES, args.routes)
        runs += [Run(4, fewer, frozenset()), Run(6, args.routes, frozenset())]
    results = []
    for run in runs:
        beside = PASSING_ON if run.family == 4 and "pass_on" in run.extra else ()
        results.append(measure(run, args.rounds, args.router or (*BESIDE, *beside)))
    return int(sum(each.report() for each in results) > 0)


def _line(name: str, step: str, figure: Figure) -> str:
    more = f" {figure.writes:.0f} changes" if step == "restart" else ""
    if figure.changes:
        median = statistics.median(figure.changes)
        more = f", median {median:.4f} s of {len(figure.changes)} changes"
    return f"{name:7} {step:15} {figure.seconds:7.4f} s {figure.cpu:6.2f} s CPU{more}"


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt, subprocess.SubprocessError):
        sys.exit(main())
