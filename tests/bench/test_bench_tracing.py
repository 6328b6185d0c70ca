"""The processes that measurements start run what the product has now."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench.bench_page import GOAL, cost
from bench.bench_tracing import TRACED_ROUTER, WITHOUT_SPANS, paired


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        (TRACED_ROUTER, ("http://127.0.0.1:4318", "router", "--help")),
        (WITHOUT_SPANS, ("--help",)),
    ],
    ids=["traced", "without spans"],
)
def test_programs_that_are_texts_start(program: str, arguments: tuple[str, ...]) -> None:
    """No type checker reads them: they are executed up to their usage."""
    command = [sys.executable, "-P", "-c", program, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("usage: ")


def test_values_side_by_side_are_compared_on_a_machine_that_becomes_slower() -> None:
    slowness = (1.0, 1.0, 2.0, 5.0, 5.0)
    off = [2.0 * of_machine for of_machine in slowness]
    on = [2.1 * of_machine for of_machine in slowness]
    assert paired(on, off) == pytest.approx(1.05)
    # Its runs alone would have it twice as slow.
    assert paired(on[2:3], off[1:2]) == pytest.approx(2.1)


def test_what_the_page_reads_once_a_second_decides_and_what_is_rarer_does_not() -> None:
    """A block of rounds has several readings; the median of single rounds would have none."""
    off = [2.0] * 100
    reading = [2.0, 2.0, 2.0, 2.8]  # in each fourth round
    used = cost(reading * 25, off)
    assert used.ratio == pytest.approx(1.1)
    assert used.ratio > GOAL
    # The last 5 rounds are no block.
    rare = cost([2.0] * 103 + [60.0, 60.0], [2.0] * 105)
    assert rare.ratio == pytest.approx(1.0)
    assert rare.ratio_of_means > GOAL
    assert cost([2.2] * 3, [2.0] * 3).ratio == pytest.approx(1.1)


def test_a_machine_that_becomes_slower_changes_no_ratio() -> None:
    off = [2.0 + step / 50 for step in range(100)]
    used = cost([value * 1.03 for value in off], off)
    assert used.ratio == pytest.approx(1.03)
    assert used.ratio_of_means == pytest.approx(1.03)
