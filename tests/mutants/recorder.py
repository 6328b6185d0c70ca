"""A plugin of pytest that records which tests execute which lines, and the time of each of them.

``-p tests.mutants.recorder``, with ``REACH_DIRECTORY`` and ``REACH_ROOMS``, records one run, in each
process of pytest-xdist; `tests.mutants.record` joins the records and `tests.mutants.reach` reads them.
Programs that tests start record their own lines as the test's, unless they are killed
(`tests/mutants/programs/sitecustomize.py`). Tests that fail without a mutant are not recorded.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

SECONDS = "seconds-{}.json"
READERS = "readers-{}.json"
LINES = "lines"
WAITED = 0.1
"""The share of the time of a test that is added to its CPU time, which other load does not change."""


class _Recorder:
    """Records what the tests of this process execute."""

    def __init__(self, directory: Path, rooms: list[str], process: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()
        self._readers: dict[str, set[str]] = {}
        self._test = ""
        self._rooms = tuple(f"{room}/" for room in rooms)
        self._directory, self._process = directory, process
        self._coverage = coverage.Coverage(
            data_file=str(directory / LINES), data_suffix=process, source=rooms, config_file=False
        )
        os.environ["REACH_DATA"] = str(directory / LINES)
        self._coverage.start()
        sys.addaudithook(self._opened)

    def _opened(self, event: str, arguments: tuple[object, ...]) -> None:
        """Record that a test reads a module, other than to import it."""
        if event != "open" or not self._test:
            return
        path = str(arguments[0])
        if path.endswith(".py") and path.startswith(self._rooms):
            caller = sys._getframe(1).f_code.co_filename
            if not caller.startswith("<frozen importlib"):
                self._readers.setdefault(path, set()).add(self._test)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        """Record in a file's name what it executes when it is imported: rows of a table, parameters."""
        if isinstance(collector, pytest.Module):
            self._coverage.switch_context(collector.nodeid)
        result = yield
        self._coverage.switch_context("")
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        self._test = os.environ["REACH_TEST"] = item.nodeid
        began, used = time.monotonic(), _cpu_seconds()
        result = yield
        waited = time.monotonic() - began
        self._seconds[item.nodeid] = _cpu_seconds() - used + WAITED * waited
        self._test = ""
        del os.environ["REACH_TEST"]
        self._coverage.switch_context("")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.add(report.nodeid)

    def pytest_unconfigure(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        passed = {test: time for test, time in self._seconds.items() if test not in self._failed}
        readers = {module: sorted(tests) for module, tests in self._readers.items()}
        self._write(SECONDS, passed)
        self._write(READERS, readers)

    def _write(self, name: str, values: object) -> None:
        (self._directory / name.format(self._process)).write_text(json.dumps(values))


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of the processes that it has waited for."""
    return sum(os.times()[:4])


def pytest_configure(config: pytest.Config) -> None:
    """Record, in each process that runs tests."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None and config.getoption("numprocesses", None):
        return
    rooms = os.environ["REACH_ROOMS"].split(",")
    recorder = _Recorder(Path(os.environ["REACH_DIRECTORY"]), rooms, worker or "main")
    config.pluginmanager.register(recorder)
