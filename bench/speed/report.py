"""Medians, spreads, ratios and goals, as JSON and as tables."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.speed.plan import OURS, Case, Goal
from bench.speed.scenarios import Figures

BEGIN = "<!-- measured: begin -->"
END = "<!-- measured: end -->"
TITLES = {
    "rest": "At rest",
    "P1a": "P1a: N peers come up, 10,000 prefixes are advertised to each",
    "P1b": "P1b: 10,000 prefixes arrive and are advertised to N peers",
    "P2": "P2: N feeders with 10,000 prefixes each, one monitor (or mesh: all prefixes to all peers)",
    "P3": "P3: one prefix, 10,000 present, until ten peers have received it",
    "P4": "P4: a full table from one peer",
    "stall": "The longest stall: a change of one peer while P4's table comes from another",
    "P5": "P5: idle sessions, KEEPALIVE each 30 s",
    "P6": "P6: P3 while one peer floods and one has stopped reading",
}
HEADS = {
    "time": "time, ms",
    "cpu": "CPU, ms",
    "rss": "peak RSS, MB",
    "initial_table": "initial table to a new peer, ms",
    "rss_initial_table": "peak RSS then, MB",
    "p50": "p50, ms",
    "p99": "p99, ms",
    "max": "max, ms",
    "changes": "changes",
    "percent": "% of a core",
    "established": "sessions",
    "p50_before": "p50 alone, ms",
    "p99_before": "p99 alone, ms",
    "flooded": "changes/s taken",
    "rss_before": "peak RSS before, MB",
}
NAMES = {
    "waggle": "Waggle", "pure": "Waggle, tables in Python", "compiled": "Waggle, compiled",
    "bird": "BIRD", "frr": "FRR", "openbgpd": "OpenBGPD", "gobgp": "GoBGP", "exabgp": "ExaBGP",
    "relay": "A bare relay in Python", "relay-uvloop": "The same on uvloop",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    """All runs of a case by contender; a failure is a sentence instead of figures."""

    case: Case
    runs: dict[str, list[Figures]]
    failures: dict[str, list[str]]
    dropped: dict[str, list[Figures]] = field(default_factory=dict)
    """Runs in which other programs had the CPU."""

    def add(self, contender: str, run: Figures, most_waited: float) -> None:
        """Add a run; runs that have waited for a CPU for more than a share of their time are dropped.

        The tester has a CPU as well, and takes it from the daemon where there are many sessions: what
        every run of a contender has waited, up to the same share again, is the scenario's own.
        """
        runs = [*self.runs.pop(contender, ()), *self.dropped.pop(contender, ()), run]
        own = min(figures.get("waited_share", 0.0) for figures in runs)
        for figures in runs:
            used = figures.get("waited_share", 0.0) <= most_waited + min(own, most_waited)
            (self.runs if used else self.dropped).setdefault(contender, []).append(figures)

    def median(self, contender: str, figure: str) -> float | None:
        """Return the median of a figure."""
        values = self.values(contender, figure)
        return statistics.median(values) if values else None

    def values(self, contender: str, figure: str) -> list[float]:
        """Return a figure of each run."""
        return [run[figure] for run in self.runs.get(contender, ()) if figure in run]


@dataclass(frozen=True, slots=True)
class Judged:
    """A goal and the measured value."""

    goal: Goal
    value: float | None

    @property
    def met(self) -> bool | None:
        """Whether it is met; None where the rival has nothing to be compared with."""
        return None if self.value is None else self.value <= self.goal.limit


def judge(outcome: Outcome) -> list[Judged]:
    """Compare with the goals, by medians."""
    judged = []
    ours = next(
        (contender for contender in outcome.case.repetitions if contender.split(":")[0] == OURS),
        OURS,
    )
    for goal in outcome.case.goals:
        value = outcome.median(ours if goal.contender == OURS else goal.contender, goal.figure)
        base: float | None = 1.0
        if goal.rival is not None:
            base = outcome.median(goal.rival, goal.figure)
        elif goal.own is not None:
            base = outcome.median(ours, goal.own)
        judged.append(Judged(goal, None if value is None or not base else value / base))
    return judged


def name_of(contender: str) -> str:
    """Return the name of a contender for people."""
    daemon, _, way = contender.partition(":")
    return NAMES[daemon] + (f" ({way})" if way else "")


def number(value: float) -> str:
    """Write a figure with three digits or so."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _cell(values: Sequence[float], *, spread: bool) -> str:
    if not values:
        return ""
    text = number(statistics.median(values))
    if spread and len(values) > 1:
        text += f" [{number(min(values))}–{number(max(values))}]"  # noqa: RUF001  a range
    return text


def tables(outcomes: Iterable[Outcome]) -> str:
    """Return Markdown: a table for each scenario, with the ratio to ours and the goals below."""
    lines: list[str] = []
    last = ""
    for outcome in outcomes:
        case = outcome.case
        if case.scenario != last:
            last = case.scenario
            lines += ["", f"### {TITLES[last]}"]
        figure, *others = case.shown
        lines += [
            "",
            f"**{case.size}**",
            "",
            "| | " + " | ".join(HEADS[name] for name in case.shown) + " | Waggle/it | runs |",
            "| --- " * (len(case.shown) + 3) + "|",
        ]
        ours = next(
            (contender for contender in case.repetitions if contender.split(":")[0] == OURS), OURS
        )
        mine = outcome.median(ours, figure)
        for contender in case.repetitions:
            values = outcome.values(contender, figure)
            if not values:
                why = outcome.failures.get(contender, ["not run"])[0]
                lines.append(f"| {name_of(contender)} | {why} |" + " |" * (len(case.shown) + 1))
                continue
            theirs = statistics.median(values)
            ratio = f"{mine / theirs:.2f}" if mine and theirs and contender != ours else ""
            cells = [
                _cell(values, spread=True),
                *(_cell(outcome.values(contender, other), spread=False) for other in others),
            ]
            lines.append(
                f"| {name_of(contender)} | {' | '.join(cells)} | {ratio} | {len(values)} |"
            )
        judged = [goal for goal in judge(outcome) if goal.value is not None]
        if judged:
            lines += ["", "; ".join(_goal(goal) for goal in judged) + "."]
    return "\n".join(lines).strip() + "\n"


def _goal(judged: Judged) -> str:
    assert judged.value is not None
    verdict = "met" if judged.met else "**missed**"
    return f"{judged.goal}: {number(judged.value)}, {verdict}"


def _rounded(runs: dict[str, list[Figures]]) -> dict[str, list[Figures]]:
    return {
        contender: [{name: round(value, 3) for name, value in run.items()} for run in of]
        for contender, of in runs.items()
    }


def as_json(
    outcomes: Iterable[Outcome], versions: dict[str, str], command: str, seconds: float
) -> str:
    """Return the raw figures."""
    document: dict[str, Any] = {
        "command": command,
        "machine": machine(),
        "seconds": round(seconds),
        "versions": versions,
        "cases": [
            {
                "scenario": outcome.case.scenario,
                "size": outcome.case.size,
                "goals": [
                    {"goal": str(judged.goal), "value": judged.value, "met": judged.met}
                    for judged in judge(outcome)
                ],
                "runs": _rounded(outcome.runs),
                "dropped": _rounded(outcome.dropped),
                "failures": outcome.failures,
            }
            for outcome in outcomes
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def machine() -> str:
    """Describe the machine of the measurement."""
    cores = len(os.sched_getaffinity(0))
    return (
        f"{cores} cores, {platform.machine()}, Linux {'.'.join(platform.release().split('.')[:2])}"
    )


def write_docs(page: Path, text: str) -> None:
    """Put text between the marks of a page."""
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no marks for the measured part")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}")
