"""Copies of the project in which tests run against a mutant.

A run ends when its processes have used several times the CPU time that its tests need, or when all of
them have waited for a minute: other load of the machine makes it longer, and changes no result.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from tests.mutants.rfc_rows import ROOT

POLL_SECONDS: Final = 1.0
IDLE_POLLS: Final = 60
"""Polls without a running process, after which no test goes on: the longest one takes less."""
IDLE_RUNNING: Final = 3
"""Of these polls: in how many a process may run all the same, such as a process that polls itself."""
CPU_SECONDS: Final = 30.0
CPU_FACTOR: Final = 4.0
"""The CPU time of a run: at most this, and this many times the recorded time of its tests."""
TEST_SECONDS: Final = 900
"""Of one test: only where a process that uses little CPU time for ever escapes the rest."""


class Run(NamedTuple):
    """The result of some tests."""

    passed: bool
    failed: tuple[str, ...]
    """The tests that failed; none where no test could be imported, or where the run had to be ended."""
    ended: bool
    """True if the run would not have ended by itself."""


class Copy:
    """A copy of the project, in one place at a time with a mutant."""

    def __init__(self, target: Path, rooms: Sequence[str]) -> None:
        """Copy the project with its compiled modules, and without what else is made of it.

        There is never a mutant in ``rooms``, nor in what they import.
        """
        ignored = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info")
        shutil.copytree(ROOT, target, ignore=ignored)
        self._path = target
        self._output, self._arguments = target / "build-output.txt", target / "build-tests.txt"
        environment = {
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.pathsep.join((str(target), str(target / "cmd"))),
        }
        self._forking = subprocess.Popen(
            [sys.executable, "-m", "tests.mutants.forking", *rooms],
            cwd=target,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )

    def close(self) -> None:
        """End the process that forks runs."""
        self._forking.communicate()

    @contextmanager
    def changed(self, module: str, text: bytes) -> Iterator[None]:
        """Have another text in a module, with another time, so that no compiled module is used."""
        path = self._path / module
        original, times = path.read_bytes(), path.stat()
        path.write_bytes(text)
        os.utime(path, (times.st_atime, times.st_mtime + 10))
        try:
            yield
        finally:
            path.write_bytes(original)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def run(self, tests: Sequence[str], seconds: float, *options: str) -> Run:
        """Run tests; ``seconds``: how long they take without a mutant."""
        self._arguments.write_text("".join(f"{test}\n" for test in tests))
        arguments = [
            *(*options, "-q", "-p", "no:cacheprovider", "-p", "no:xdist"),
            *("--hypothesis-profile", "quick", "--timeout", str(TEST_SECONDS)),
            # Of modules that were imported before the fork.
            *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
            f"@{self._arguments}",
        ]
        assert self._forking.stdin is not None
        self._forking.stdin.write(f"{json.dumps([str(self._output), *arguments])}\n".encode())
        pid = self._answer(60)
        assert pid is not None
        status = self._wait(pid, CPU_SECONDS + CPU_FACTOR * seconds)
        if status is None:
            return Run(passed=False, failed=(), ended=True)
        lines = self.output().splitlines()
        failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
        return Run(status == 0, tuple(_named(failed, tests)), ended=False)

    def output(self) -> str:
        """Return what the last run has written."""
        return self._output.read_text(errors="replace")

    def _wait(self, pid: int, cpu_seconds: float) -> int | None:
        """Return the status of a run at its end, or None where it had to be ended."""
        running: deque[bool] = deque(maxlen=IDLE_POLLS)
        while (status := self._answer(POLL_SECONDS)) is None:
            used, is_running = _usage(pid)
            running.append(is_running)
            is_idle = len(running) == IDLE_POLLS and sum(running) <= IDLE_RUNNING
            if used > cpu_seconds or is_idle:
                _kill(pid)
                self._answer(60)
                return None
        return status

    def _answer(self, seconds: float) -> int | None:
        """Return the next number of the process that forks, if it comes in time."""
        assert self._forking.stdout is not None
        if not select.select([self._forking.stdout], [], [], seconds)[0]:
            return None
        return int(self._forking.stdout.readline())


def _usage(root: int) -> tuple[float, bool]:
    """Return the CPU seconds of a process and its descendants, and whether one runs."""
    ticks, is_running = 0, False
    processes = _processes()
    for pid in _descendants(root, processes):
        fields = processes[pid]
        ticks += sum(map(int, fields[11:15]))
        is_running = is_running or fields[0] in "RD"
    return ticks / os.sysconf("SC_CLK_TCK"), is_running


def _kill(root: int) -> None:
    """End a run and what it has started."""
    processes = _processes()
    for pid in _descendants(root, processes):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _descendants(root: int, processes: dict[int, list[str]]) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, fields in processes.items():
        children.setdefault(int(fields[1]), []).append(pid)
    found = [root] if root in processes else []
    for pid in found:
        found += children.get(pid, ())
    return found


def _processes() -> dict[int, list[str]]:
    """Return the fields of proc(5) stat of each process, from its state on."""
    processes = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        processes[int(path.parent.name)] = text.rpartition(")")[2].split()
    return processes


def _named(lines: Sequence[str], tests: Sequence[str]) -> list[str]:
    """Return the tests that lines of pytest's summary name: ``FAILED test - reason``."""
    texts = [f"{line.partition(' ')[2]} - " for line in lines]
    return [test for test in tests if any(text.startswith(f"{test} - ") for text in texts)]
