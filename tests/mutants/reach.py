"""Which tests execute which lines, and how long each of them takes.

As a plugin of pytest (``-p tests.mutants.reach``, with ``REACH_DIRECTORY`` and ``REACH_ROOMS``) it
records one run, in each process of pytest-xdist; `Reach` reads the records. Programs that tests start
are not recorded.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

SECONDS = "seconds-{}.json"
DATA = "lines"


class Reach:
    """The records of one run."""

    def __init__(self, directory: Path) -> None:
        """Read the records. Raises FileNotFoundError if there are none."""
        self._seconds: dict[str, float] = {}
        for file in sorted(directory.glob(SECONDS.format("*"))):
            self._seconds.update(json.loads(file.read_text()))
        if not self._seconds:
            raise FileNotFoundError(directory)
        self._lines: dict[str, dict[int, set[str]]] = {}
        for file in sorted(directory.glob(f"{DATA}.*")):
            data = coverage.CoverageData(basename=str(file))
            data.read()
            for module in data.measured_files():
                lines = self._lines.setdefault(module, {})
                for line, tests in data.contexts_by_lineno(module).items():
                    lines.setdefault(line, set()).update(filter(None, tests))

    def tests(self, module: Path, first: int, last: int, within: float) -> list[str]:
        """Return the tests of a module's lines, as pytest's arguments, most specific first.

        Those whose file is named after the module come first, then the quick ones, until their times
        add up to ``within`` seconds. Of lines that run at import: all tests of the module.
        """
        lines = self._lines.get(str(module), {})
        reached = set[str]().union(*(lines.get(line, ()) for line in range(first, last + 1)))
        reached = reached or set[str]().union(*lines.values())
        names = {module.stem, module.parent.name} - {"__init__"}

        def rank(test: str) -> tuple[bool, float, str]:
            words = Path(test.partition("::")[0]).stem.removeprefix("test_")
            return words not in names, self._seconds.get(test, 0.0), test

        chosen: list[str] = []
        total = 0.0
        for test in sorted(reached, key=rank):
            total += self._seconds.get(test, 0.0)
            if total > within and chosen:
                break
            chosen.append(test)
        return chosen


class _Recorder:
    """Records what the tests of this process execute."""

    def __init__(self, directory: Path, rooms: list[str], process: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._seconds: dict[str, float] = {}
        self._file = directory / SECONDS.format(process)
        self._coverage = coverage.Coverage(
            data_file=str(directory / DATA), data_suffix=process, source=rooms, config_file=False
        )
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        result = yield
        self._coverage.switch_context("")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        before = self._seconds.get(report.nodeid, 0.0)
        self._seconds[report.nodeid] = before + report.duration

    def pytest_unconfigure(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        self._file.write_text(json.dumps(self._seconds))


def pytest_configure(config: pytest.Config) -> None:
    """Record, in each process that runs tests."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None and config.getoption("numprocesses", None):
        return
    rooms = os.environ["REACH_ROOMS"].split(",")
    recorder = _Recorder(Path(os.environ["REACH_DIRECTORY"]), rooms, worker or "main")
    config.pluginmanager.register(recorder)
