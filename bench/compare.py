"""``python -m bench.compare CHECKOUT``: the figures of another checkout and of this one, in turn.

Each round measures both, the other one first in one round and second in the next. Printed are the
medians over the rounds and their ratio: a busy machine slows both sides. Each side runs its own
programs with its own ``.venv``; the speaker's speed needs root, and ``build/bench-tester`` in both.
With ``--pure`` both have prefix tables in Python: a checkout without tables in C has no other.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench.bench_start import of_help

ROOT: Final = Path(__file__).resolve().parent.parent
SECONDS: Final = 1_800
"""Of one program."""


class Program(NamedTuple):
    """One program of this package, and how its output is read."""

    arguments: Sequence[str]
    figures: Sequence[tuple[str, str]]
    """Names, and expressions: the number is the only group that matches."""


PROGRAMS: Final = (
    Program(
        ["bench.bench_propagation", "--changes", "30", "--peers", "50", "--services", "1000"],
        [("propagation, median, ms", r"(?m)^\s+1000\s+([0-9.]+)")],
    ),
    Program(
        ["bench.bench_kubernetes"],
        [
            # 10,000 Services: a sentence once, a table now.
            ("list and commit, s", r"(?m)committed in ([0-9.]+) s|^ +10,000 +([0-9.]+)"),
            ("list and commit, CPU, s", r"(?m)CPU ([0-9.]+) s|^ +10,000 +[0-9.]+ +([0-9.]+)"),
        ],
    ),
    Program(
        ["bench.bench_start", "--repetitions", "3"],
        [
            ("start, CPU, ms", r"(?m)^start with 10 Services.*? +\d+ +\d+ +(\d+) +\d+  "),
        ],
    ),
)
HELP: Final = ("waggle_agent", "waggle_operator")
"""Programs whose ``--help`` this program measures itself: an earlier `bench.bench_start` counts
processor time in ticks of 10 ms."""
HELPS_PER_ROUND: Final = 20
TRACEBACK: Final = "Traceback (most recent call last)"
SPEED: Final = "bench.speed"
SPEED_PROGRAM: Final = "bench/speed/__main__.py"
TESTER: Final = "build/bench-tester"
SHOWN: Final = ("time", "p50", "cpu")
"""The figures of `bench.speed` that are compared."""


def main() -> int:
    """Measure; exit status 1 if a ratio is over the limit, or a figure was measured on one side."""
    parser = argparse.ArgumentParser(prog="bench.compare", description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", type=Path, help="the other checkout")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    names = "propagation,kubernetes,start,speed"
    parser.add_argument("--programs", default=names, help="default: %(default)s")
    parser.add_argument("--scenarios", default="P1a,P2,P3,P4", help="of bench.speed")
    parser.add_argument("--peers", default="10", help="of bench.speed")
    parser.add_argument("--limit", type=float, default=1.1, help="a ratio over it is marked")
    parser.add_argument("--pure", action="store_true", help="both with prefix tables in Python")
    args = parser.parse_args()
    speed = [SPEED, "--daemons", "waggle", "--scenarios", args.scenarios, "--peers", args.peers]
    speed += ["--repetitions", "3"]
    chosen = {f"bench.bench_{name}" for name in args.programs.split(",")}
    programs = [program for program in PROGRAMS if program.arguments[0] in chosen]
    if "bench.bench_speed" in chosen:
        programs.append(Program(speed, ()))
    sides = {"other": args.checkout.resolve(), "this": ROOT}
    for side in sides.values():
        if "bench.bench_speed" in chosen and not (side / TESTER).exists():
            parser.error(f"{side / TESTER} is not there: run make {TESTER} there")
    measured: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for turn in range(args.rounds):
        for side in sorted(sides, reverse=bool(turn % 2)):
            for program in programs:
                try:
                    figures = list(_measure(sides[side], program, pure=args.pure))
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    # A race of an earlier version, perhaps: the other rounds have its figures.
                    print(f"{side}: {error}", file=sys.stderr, flush=True)
                    continue
                for name, value in figures:
                    measured[name][side].append(value)
        if "bench.bench_start" in chosen:
            for name, side, value in _helps(sides):
                measured[name][side].append(value)
        print(f"round {turn + 1} of {args.rounds}", file=sys.stderr, flush=True)
    return report(measured, args.limit)


def _measure(checkout: Path, program: Program, *, pure: bool) -> Iterator[tuple[str, float]]:
    """Yield the figures of a program of one checkout by name."""
    arguments = [*program.arguments]
    if arguments[0] == SPEED and "most-waited" in (checkout / SPEED_PROGRAM).read_text():
        arguments += ["--most-waited", "1"]  # as an earlier version, which drops no run
    output = _run(checkout, arguments, pure=pure)
    for name, expression in program.figures:
        match = re.search(expression, output)
        if match is not None:
            yield name, float(match[match.lastindex or 0])
    if program.arguments[0] == SPEED:
        yield from _speed(output)


def _helps(sides: Mapping[str, Path]) -> Iterator[tuple[str, str, float]]:
    """Yield the CPU time of ``--help``, of both sides in turn: name, side and milliseconds."""
    with tempfile.TemporaryDirectory() as cache:
        # Byte code is cached, as installed packages have it, by a run that is not counted.
        os.environ["PYTHONPYCACHEPREFIX"] = cache
        unset = os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        try:
            for turn in range(HELPS_PER_ROUND + 1):
                for program, side in itertools.product(HELP, sides):
                    root = sides[side]
                    times = of_help(program, root / ".venv/bin/python", root)
                    if turn:
                        yield f"{program.replace('_', '-')} --help, CPU, ms", side, times.cpu
        finally:
            del os.environ["PYTHONPYCACHEPREFIX"]
            if unset is not None:
                os.environ["PYTHONDONTWRITEBYTECODE"] = unset


def _speed(output: str) -> Iterator[tuple[str, float]]:
    """Yield the figures of each scenario."""
    scenario = ""
    for line in output.splitlines():
        if line.startswith("  waggle"):
            for name, value in re.findall(r"(\w+) ([0-9.]+)", line):
                if name in SHOWN:
                    yield f"{scenario}, {name}, ms", float(value)
        elif re.match(r"P\d", line):
            scenario = line.strip()


def _run(checkout: Path, arguments: Sequence[str], *, pure: bool) -> str:
    environment = dict(os.environ)
    if pure and (checkout / "speaker/rib/prefix_table").is_dir():
        environment["WAGGLE_PURE"] = (
            "1"  # an earlier version refuses a variable that it does not know
        )
    done = subprocess.run(
        [checkout / ".venv" / "bin" / "python", "-m", *arguments],
        cwd=checkout,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    # 1: a goal is missed, or an exception.
    if done.returncode not in (0, 1) or TRACEBACK in done.stdout:
        raise RuntimeError(f"{arguments[0]} in {checkout}: {done.stdout[-500:]}")
    return done.stdout


def report(measured: Mapping[str, Mapping[str, Sequence[float]]], limit: float) -> int:
    """Print the medians and their ratio; 1 as for `main`."""
    print(f"{'':40} {'other':>9} {'this':>9} {'ratio':>6}")
    slower = 0
    for name, sides in measured.items():
        if len(sides) < 2:
            print(f"{name:40} measured in one checkout alone")
            slower += 1
            continue
        other, this = (statistics.median(sides[side]) for side in ("other", "this"))
        ratio = this / other if other else float("inf")
        slower += ratio > limit
        mark = "  over the limit" if ratio > limit else ""
        print(f"{name:40} {other:9.2f} {this:9.2f} {ratio:6.2f}{mark}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
