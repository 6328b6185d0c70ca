"""Which tests execute which lines or read which modules, and how long each of them takes.

As a plugin of pytest (``-p tests.mutants.reach``, with ``REACH_DIRECTORY`` and ``REACH_ROOMS``) it
records one run, in each process of pytest-xdist; `Reach` reads the records. Programs that tests start
record their own lines as those of the test (`tests/mutants/programs/sitecustomize.py`), unless they
are killed. Tests that fail without a mutant are left out.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import coverage
import pytest

from tests.mutants.page import ROOT

SECONDS = "seconds-{}.json"
READERS = "readers-{}.json"
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
        self._readers: dict[str, set[str]] = {}
        for file in sorted(directory.glob(READERS.format("*"))):
            for module, tests in json.loads(file.read_text()).items():
                self._readers.setdefault(module, set()).update(tests)
        self._importers = _importers()
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

        Those whose file is named after the module come first, for half of ``within`` seconds, then the
        quick ones until their times add up to it. Of lines that run at import: all tests of the module,
        and those of files that import it. Tests that read the module's text, such as those of a page
        that lists what is in the code, see all lines.
        """
        lines = self._lines.get(str(module), {})
        reached = set[str]().union(*(lines.get(line, ()) for line in range(first, last + 1)))
        # A module that one test imports first runs in the name of that test alone.
        files = set[str]()
        if not reached or not _is_in_function(module, first):
            files = self._importers.get(_dotted(module), set())
            reached = reached.union(*lines.values())
            reached |= {test for test in self._seconds if test.partition("::")[0] in files}
        reached |= self._readers.get(str(module), set())
        names = {module.stem, module.parent.name} - {"__init__"}

        def rank(test: str) -> tuple[bool, bool, float, str]:
            file = test.partition("::")[0]
            words = Path(file).stem.removeprefix("test_")
            return words not in names, file not in files, self._seconds[test], test

        chosen: list[str] = []
        total = 0.0
        for test in sorted(reached & self._seconds.keys(), key=rank):
            # Slow tests of the module's own leave half of the time to the others.
            limit = within / 2 if not rank(test)[0] else within
            total += self._seconds[test]
            if total <= limit or not chosen:
                chosen.append(test)
            else:
                total -= self._seconds[test]
                if rank(test)[0]:
                    break
        return chosen

    def leave_out(self, tests: Iterable[str]) -> None:
        """Leave out tests that turn out to fail by themselves."""
        for test in tests:
            del self._seconds[test]


def _importers() -> dict[str, set[str]]:
    """Return the files of tests that import each module, by its dotted name."""
    found: dict[str, set[str]] = {}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_bytes())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            for name in names:
                found.setdefault(name, set()).add(str(file.relative_to(ROOT)))
    return found


def _is_in_function(module: Path, line: int) -> bool:
    """True for a line that runs with a call, and not at the import of the module."""
    return any(
        node.body[0].lineno <= line <= (node.end_lineno or 0)
        for node in ast.walk(ast.parse(module.read_bytes()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def _dotted(module: Path) -> str:
    """Return the name by which a module is imported; `cmd` is not a package."""
    path = module.relative_to(ROOT).with_suffix("")
    parts = [part for part in path.parts if part != "__init__"]
    return ".".join(parts[1:] if parts[0] == "cmd" else parts)


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
            data_file=str(directory / DATA), data_suffix=process, source=rooms, config_file=False
        )
        os.environ["REACH_DATA"] = str(directory / DATA)
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
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        self._test = os.environ["REACH_TEST"] = item.nodeid
        result = yield
        self._test = ""
        del os.environ["REACH_TEST"]
        self._coverage.switch_context("")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        before = self._seconds.get(report.nodeid, 0.0)
        self._seconds[report.nodeid] = before + report.duration
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


def pytest_configure(config: pytest.Config) -> None:
    """Record, in each process that runs tests."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None and config.getoption("numprocesses", None):
        return
    rooms = os.environ["REACH_ROOMS"].split(",")
    recorder = _Recorder(Path(os.environ["REACH_DIRECTORY"]), rooms, worker or "main")
    config.pluginmanager.register(recorder)
