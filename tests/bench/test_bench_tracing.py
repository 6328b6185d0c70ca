"""The processes that measurements start run what the product has now."""

from __future__ import annotations

import subprocess
import sys

from bench.speed.daemons.waggle import Traced


def test_the_router_with_tracing_starts() -> None:
    """Its program is a text, which no type checker reads: it is executed up to its usage."""
    command = [sys.executable, "-P", "-c", Traced.PROGRAM, "router", "--help"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("usage: ")
