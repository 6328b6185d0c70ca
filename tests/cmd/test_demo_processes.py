"""The programs of the demo: their last lines are kept, and they end in order."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.support.wait import until
from waggle.commands.demo import processes
from waggle.commands.demo.processes import Child

PROGRAM = """
import os, signal, sys, time

def end(*_):
    os.write(1, b"ended in order\\n")  # not print: the signal may come during the last one
    sys.exit(7)

signal.signal(signal.SIGTERM, {handler})
for number in range(25):
    print("line", number, *sys.argv[1:], flush=True)
time.sleep(60)
"""


async def started(directory: Path, handler: str) -> Child:
    """Start a program with a handler of SIGTERM, and wait for its lines."""
    (directory / "a_program.py").write_text(PROGRAM.format(handler=handler))
    child = await Child.start("a", "a_program", ["first", "second"])
    await until(lambda: "line 24 first second" in child.output)
    return child


@pytest.fixture(autouse=True)
def on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ":".join((str(tmp_path), *filter(None, sys.path))))


def test_a_program_is_ended_by_sigterm_and_its_last_lines_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "STOP_TIMEOUT_SECONDS", 60.0)

    async def scenario() -> None:
        child = await started(tmp_path, "end")
        assert (child.name, child.ended) == ("a", None)
        await child.stop()
        assert child.ended == 7
        assert child.output[-1] == "ended in order"
        assert child.output[0] == "line 6 first second"
        await child.stop()  # again has no effect

    asyncio.run(scenario())


def test_a_program_that_does_not_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "STOP_TIMEOUT_SECONDS", 0.05)

    async def scenario() -> None:
        child = await started(tmp_path, "signal.SIG_IGN")
        await child.stop()
        assert child.ended == -9

    asyncio.run(scenario())
