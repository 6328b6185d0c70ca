"""``python -m bench.speed``: runs the scenarios, prints and writes the figures.

Without options it runs the quick form of all scenarios and updates the table and the picture of
docs/performance.md; with selected scenarios or daemons it only prints the figures. Needs root, for
network namespaces. One daemon runs at a time.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from bench.speed import plan, plot, report, streams
from bench.speed.arena import ROOT, Arena, TesterError, address_of, arena, asn_of
from bench.speed.daemons import CONTENDERS
from tests.support.netns import unavailable

RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "performance.svg"
MOST_WAITED = 0.1
"""Share of its time for which a daemon waits for a CPU because of other programs, in a used run."""
ATTEMPTS = 3
"""Attempts for each wanted run, where the machine is busy."""
FILES = 8192
"""The limit of open files; each of a thousand sessions needs one."""


def main() -> int:
    """Run the selected scenarios; the exit status is 1 if a goal is missed."""
    parser = argparse.ArgumentParser(prog="bench.speed", description=__doc__.partition("\n")[0])
    parser.add_argument("--full", action="store_true", help="all sizes, more repetitions")
    parser.add_argument("--scenarios", metavar="P1a,P3", help="only these scenarios")
    parser.add_argument("--daemons", metavar="waggle,bird", help="only these daemons")
    parser.add_argument(
        "--peers", metavar="1,10", help="only these numbers of peers, for P1 and P2"
    )
    parser.add_argument("--repetitions", type=int, metavar="N")
    parser.add_argument(
        "--most-waited",
        type=float,
        default=MOST_WAITED,
        metavar="SHARE",
        help="of its time, for a CPU, beyond what every run of the daemon waits, at most as much: "
        f"a longer run is dropped, and repeated some times (default {MOST_WAITED}; 1: none is)",
    )
    args = parser.parse_args()
    if reason := unavailable():
        print(f"not measured: {reason}", file=sys.stderr)
        return 0
    size = plan.FULL if args.full else plan.QUICK
    if args.peers:
        size = replace(size, peers=tuple(int(word) for word in args.peers.split(",")))
    if args.repetitions:
        size = replace(size, repetitions=args.repetitions)
    daemons = args.daemons.split(",") if args.daemons else list(CONTENDERS)
    wanted = args.scenarios.split(",") if args.scenarios else None
    there = _there(daemons)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(FILES, hard), hard))
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        table = directory / "table"
        if wanted is None or {"P4", "stall"} & set(wanted):
            print("making the table ...", flush=True)
            streams.table(table, asn_of(0), address_of(0))
        run = directory / "run"
        run.mkdir()
        cases = [
            case
            for case in plan.cases(size, table, streams.TABLE_PREFIXES)
            if wanted is None or case.scenario in wanted
        ]
        with arena(run) as place:
            outcomes = [_measure(place, case, there, args.most_waited) for case in cases]
    seconds = time.monotonic() - began
    everything = not (args.scenarios or args.daemons or args.peers or args.repetitions)
    command = "make bench-speed" + (" ARGS=--full" if args.full else "")
    if everything:
        _write(outcomes, there, command, seconds, full=args.full)
    goals = [(outcome, judged) for outcome in outcomes for judged in report.judge(outcome)]
    missed = [
        f"{outcome.case.scenario} {outcome.case.size}: {judged.goal}: {judged.value:.2f}"
        for outcome, judged in goals
        if judged.met is False
    ]
    # Without a figure, or a rival's to compare it with: not met either.
    unknown = sum(judged.met is None for _, judged in goals)
    print(f"\n{seconds:.0f} s; goals missed: {len(missed)}, not measured: {unknown}")
    for line in missed:
        print(f"  {line}")
    return 1 if missed else 0


def _there(daemons: list[str]) -> dict[str, str]:
    """Return the versions of the daemons that are installed."""
    versions = {}
    for name in daemons:
        contender = CONTENDERS[name]
        if reason := contender.missing():
            print(f"without {name}: {reason}", file=sys.stderr)
        else:
            versions[name] = contender.version()
            print(f"{name}: {versions[name]}")
    return versions


def _measure(
    place: Arena, case: plan.Case, there: dict[str, str], most_waited: float
) -> report.Outcome:
    outcome = report.Outcome(case, {}, {})
    print(f"\n{case.scenario} {case.size}", flush=True)
    taking_part = [contender for contender in case.repetitions if contender.split(":")[0] in there]
    for turn in range(ATTEMPTS * max(case.repetitions.values())):
        for contender in taking_part:
            used = len(outcome.runs.get(contender, ()))
            failed = len(outcome.failures.get(contender, ()))
            wanted = case.repetitions[contender]
            if used + failed >= wanted or turn >= ATTEMPTS * wanted:
                continue
            try:
                figures = case.run(place, contender)
            except (TesterError, TimeoutError, RuntimeError) as error:
                outcome.failures.setdefault(contender, []).append(str(error))
                print(f"  {contender}: {error}", flush=True)
            else:
                outcome.add(contender, figures, most_waited)
    for contender, dropped in outcome.dropped.items():
        shares = ", ".join(f"{run['waited_share']:.0%}" for run in dropped)
        print(f"  {contender}: {len(dropped)} runs dropped, which waited for a CPU for {shares}")
    for contender in outcome.runs:
        shown = "  ".join(
            f"{figure} {report.number(value)}"
            for figure in case.shown
            if (value := outcome.median(contender, figure)) is not None
        )
        print(f"  {contender:16} {shown}")
    for judged in report.judge(outcome):
        if judged.value is not None:
            print(f"    {judged.goal}: {judged.value:.2f}{'' if judged.met else '  MISSED'}")
    return outcome


def _write(
    outcomes: list[report.Outcome],
    versions: dict[str, str],
    command: str,
    seconds: float,
    *,
    full: bool,
) -> None:
    RESULTS.mkdir(exist_ok=True)
    name = "speed-full.json" if full else "speed-quick.json"
    (RESULTS / name).write_text(report.as_json(outcomes, versions, command, seconds))
    PICTURE.write_text(plot.draw(outcomes))
    head = (
        f"`{command}` ({seconds / 60:.0f} minutes) on {report.machine()}: "
        + ", ".join(versions.values())
        + f". The raw figures are in `bench/results/{name}`.\n\n"
        + f"![time by number of peers]({PICTURE.name})\n\n"
    )
    report.write_docs(PAGE, head + report.tables(outcomes))


if __name__ == "__main__":
    sys.exit(main())
