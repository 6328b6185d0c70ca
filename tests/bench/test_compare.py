"""Figures of two checkouts: a ratio over the limit fails, and so does a figure that one side lacks."""

from __future__ import annotations

import re

import pytest

from bench.bench_start import FEW, START_MS, Times, _measure
from bench.compare import HELP, PROGRAMS, ROOT, _helps, report


@pytest.mark.parametrize(
    ("sides", "status"),
    [
        ({"other": [2.0, 2.0, 9.0], "this": [2.1, 2.1, 9.0]}, 0),
        ({"other": [2.0], "this": [2.2]}, 1),
        ({"other": [2.0]}, 1),
        ({"this": [2.0]}, 1),
    ],
)
def test_medians_are_compared_and_a_figure_of_one_side_fails(
    sides: dict[str, list[float]], status: int
) -> None:
    assert report({"starts, s": sides}, limit=1.05) == status


def test_the_cpu_time_of_a_start_is_compared(capsys: pytest.CaptureFixture[str]) -> None:
    (starts,) = (program for program in PROGRAMS if program.arguments[0] == "bench.bench_start")
    expression = dict(starts.figures)["start, CPU, ms"]
    _measure(f"start with {FEW} Services, until all is advertised", START_MS, [Times(500.0, 320.0)])
    assert re.findall(expression, capsys.readouterr().out) == ["320"]


def test_help_of_both_sides_is_measured_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.compare.HELPS_PER_ROUND", 2)
    measured = [*_helps({"other": ROOT, "this": ROOT})]
    assert [side for _, side, _ in measured] == ["other", "this"] * 2 * len(HELP)
    assert all(milliseconds > 1 for _, _, milliseconds in measured)
