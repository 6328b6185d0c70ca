"""The instructions of one change are the difference of two runs in callgrind."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.bench_instructions import DIFFERENCE, FEW, MANY, instructions, of_one_change, run

REPORT = """version: 1
events: Ir
fn=(1) main
16 400
summary: 1200
totals: 1200
"""
PYTHON = """#!/bin/sh
case "$4" in 2000) echo no such bench >&2; exit 1;; esac
"""
VALGRIND = """#!/bin/sh
file=${2#--callgrind-out-file=}
shift 2
"$@" || exit
echo "summary: $((5000000 + 4 * $5 * 250000))" > "$file"
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose bench does nothing, and a valgrind with 250,000 instructions a change."""
    for path, text in ((".venv/bin/python", PYTHON), ("bin/valgrind", VALGRIND)):
        program = tmp_path / path
        program.parent.mkdir(parents=True)
        program.write_text(text)
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return tmp_path


def test_the_sum_of_a_file_is_read() -> None:
    assert instructions(REPORT) == 1200


def test_a_file_without_a_sum_is_an_error() -> None:
    with pytest.raises(ValueError, match="no sum"):
        instructions("events: Ir\ntotals:\n")


def test_the_start_of_the_program_is_in_no_change(checkout: Path) -> None:
    assert DIFFERENCE == 4 * (MANY - FEW)
    assert of_one_change(checkout, checkout, pure=False) == 250_000


def test_a_bench_that_fails_is_an_error(checkout: Path) -> None:
    with pytest.raises(RuntimeError, match="no such bench"):
        run(checkout, 2000, checkout / "out", pure=True)
