"""The processes that measurements start run what the product has now."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench.bench_tracing import WITHOUT_SPANS
from bench.speed.daemons.waggle import Traced


@pytest.mark.parametrize(
    ("program", "arguments"),
    [(Traced.PROGRAM, ("router", "--help")), (WITHOUT_SPANS, ("--help",))],
    ids=["traced", "without spans"],
)
def test_programs_that_are_texts_start(program: str, arguments: tuple[str, ...]) -> None:
    """No type checker reads them: they are executed up to their usage."""
    command = [sys.executable, "-P", "-c", program, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("usage: ")
