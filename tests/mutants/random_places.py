"""Mutants of random places of rooms, each against the tests that execute the place.

``make mutants ARGS="--random 200 --seed 7"``; which places are changed: `tests.mutants.places`. The
first run records for some minutes which tests execute which lines (`tests.mutants.record`).
``--results FILE`` keeps the results: an interrupted run goes on with it, and mutants whose lines are
removed are tried again. ``--at MODULE:LINE`` takes the mutants of a module or line.

Tests of programs are among them: their programs run in the copy with the mutant. A mutant that
survives the most specific and quickest tests has a second pass: more of the tests that execute its
place, and then tests with a real router, API server or network namespace. Second passes begin in the
first `LIMIT_SECONDS` of a run only, so that a run on a busy machine ends, too.

A test that takes long has to fail twice with a mutant, as load may be the reason. A test that fails
without the mutants as well is named at the end of the run, and the other tests decide.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Final, NamedTuple

from tests.mutants.copies import Copy
from tests.mutants.equivalent import EQUIVALENT, Equivalent
from tests.mutants.places import Change, changes
from tests.mutants.reach import Reach
from tests.mutants.record import ORDER, REAL, read, recorded
from tests.mutants.rfc_rows import ROOT

ROOMS: Final = ("cells", "cmd")
TESTS_SECONDS: Final = 25.0
"""Of recorded time: the tests of one mutant in the first pass, at most."""
MORE_SECONDS: Final = 45.0
"""The same of the second pass, beyond the tests of the first."""
REAL_SECONDS: Final = 15.0
"""The same of tests with real programs, which wait for most of their time."""
LIMIT_SECONDS: Final = 35 * 60.0
"""After this time of a run no second pass begins."""
LONG_SECONDS: Final = 1.0
"""Tests that take longer depend on the machine, perhaps: they have to fail twice."""
IMPORT: Final = "the import"
ENDLESS: Final = "(does not end)"


class Place(NamedTuple):
    """One change of one module."""

    module: str
    change: Change
    text: str
    """Its first line, without the indentation."""
    what: str
    """As printed: ``old -> new``."""
    number: int
    """Among the places of its module with the same text and change."""

    def describe(self) -> str:
        """Return module, line and change as one line."""
        return f"{self.module}:{self.change.line}: {self.what}"

    @property
    def key(self) -> str:
        """What does not change with other lines of the module."""
        return json.dumps((self.module, self.text, self.what, self.number))

    @property
    def equivalent(self) -> Equivalent | None:
        """The entry of `EQUIVALENT` for this change, if any."""
        own = (self.module, self.text, self.what)
        return next((entry for entry in EQUIVALENT if entry[:3] == own), None)


class Asked(NamedTuple):
    """Which mutants are tried, and how."""

    rooms: Sequence[str]
    limit: int
    seed: int
    at: str = ""
    """A module, perhaps with a line: ``MODULE:LINE``. Empty: all of the rooms."""
    record: Path | None = None
    """The directory of an earlier record. None: the present one, completed."""
    results: Path | None = None
    jobs: int | None = None
    """At a time. None: as many as processors are idle."""


def chosen(asked: Asked) -> list[Place]:
    """Return places of the rooms, in an order that the seed and each place itself decide."""
    prefix, _, line = asked.at.partition(":")
    every = [
        place
        for module in _modules(asked.rooms)
        if module.startswith(prefix)
        for place in places(module)
        if line in ("", str(place.change.line))
    ]

    def order(place: Place) -> bytes:
        return hashlib.sha256(f"{asked.seed} {place.key}".encode()).digest()

    valid = (
        place
        for place in sorted(every, key=order)
        if place.change.is_valid((ROOT / place.module).read_bytes())
    )
    return list(islice(valid, asked.limit))


def _modules(rooms: Sequence[str]) -> Iterator[str]:
    for room in rooms:
        for path in sorted((ROOT / room).rglob("*.py")):
            yield str(path.relative_to(ROOT))


def places(module: str) -> Iterator[Place]:
    """Yield all places of a module, in the order of its text; a few of the changes are not Python."""
    source = (ROOT / module).read_bytes()
    lines = source.splitlines()
    numbers: Counter[tuple[str, str]] = Counter()
    for change in changes(source):
        text = lines[change.line - 1].decode().strip()
        what = change.describe(source)
        yield Place(module, change, text, what, numbers[text, what])
        numbers[text, what] += 1


def run(asked: Asked, write: Callable[[str], None]) -> int:
    """Run the tests of each mutant; returns the exit status: 1 if fewer than 85 % are noticed."""
    began = time.monotonic()
    every = chosen(asked)
    for place in every:
        if place.equivalent is not None:
            write(f"{place.describe()}: is equivalent: {place.equivalent.reason}")
    tested = [place for place in every if place.equivalent is None]
    results = _Results(asked.results)
    new = [place for place in tested if place.key not in results.tests]
    if new:
        with tempfile.TemporaryDirectory(prefix="waggle-mutants-") as name:
            before = ORDER[: min(map(ORDER.index, asked.rooms))]
            copies = [Copy(Path(name) / str(at), before) for at in range(asked.jobs or _idle())]
            for one in _passes(asked, write):
                until = math.inf if one.is_first else began + LIMIT_SECONDS
                trial = _Trial(one, copies, results, write, until)
                tried = new
                while tried:
                    trial.run(tried)
                    unreliable = trial.unreliable()
                    tried = [place for place in new if results.tests[place.key] in unreliable]
                new = [place for place in new if not results.tests[place.key]]
                if not new or time.monotonic() > began + LIMIT_SECONDS:
                    break
            for copy in copies:
                copy.close()
    survivors = [place for place in tested if not results.tests[place.key]]
    write(
        f"{len(tested) - len(survivors)} of {len(every)} mutants are noticed, "
        f"{len(every) - len(tested)} are equivalent; the others:"
    )
    for place in survivors:
        write(f"  {place.describe()}")
    return 0 if len(every) - len(survivors) >= 0.85 * len(every) else 1


class _Pass(NamedTuple):
    """Tests of a mutant: of a record those beyond ``passed`` seconds, for ``seconds``."""

    reach: Reach
    seconds: float
    passed: float = 0.0
    is_real: bool = False
    """True for tests with real programs."""

    @property
    def is_first(self) -> bool:
        """True for the pass of all mutants."""
        return not self.passed and not self.is_real

    def tests(self, place: Place) -> list[str]:
        """Return the tests of a mutant, as pytest's arguments."""
        module, first, last = place.module, place.change.line, place.change.last_line
        if not self.passed:
            return self.reach.tests(module, first, last, self.seconds)
        done = self.reach.tests(module, first, last, self.passed)
        return self.reach.tests(module, first, last, self.seconds, done)


def _passes(asked: Asked, write: Callable[[str], None]) -> Iterator[_Pass]:
    """Yield the passes; the record of tests with real programs is made once one is needed."""
    reach = Reach(read(asked.record) if asked.record else recorded(asked.rooms, write))
    yield _Pass(reach, TESTS_SECONDS)
    yield _Pass(reach, MORE_SECONDS, passed=TESTS_SECONDS)
    if asked.record is None:
        yield _Pass(Reach(recorded(asked.rooms, write, REAL)), REAL_SECONDS, is_real=True)


def _idle() -> int:
    """Return how many processors are idle, at least one."""
    return max(1, round(len(os.sched_getaffinity(0)) - os.getloadavg()[0]))


class _Results:
    """By `Place.key`: the test that notices a mutant, or nothing. In a file, where there is one."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self.tests: dict[str, str] = {}
        if file is not None and file.exists():
            for line in file.read_text().splitlines():
                result = json.loads(line)
                self.tests[result["place"]] = result["test"]

    def add(self, place: Place, test: str, seconds: float) -> None:
        self.tests[place.key] = test
        if self._file is not None:
            line = {"place": place.key, "test": test, "seconds": round(seconds, 1)}
            with self._file.open("a") as file:
                file.write(f"{json.dumps(line)}\n")


class _Trial:
    """Runs mutants, one in each copy at a time."""

    def __init__(
        self,
        one: _Pass,
        copies: Sequence[Copy],
        results: _Results,
        write: Callable[[str], None],
        until: float = math.inf,
    ) -> None:
        self._pass, self._reach, self._copies = one, one.reach, copies
        self._results, self._write = results, write
        self._until = until
        self._seen = {IMPORT, ENDLESS}
        """Tests that have failed with a mutant, and have been tried without."""
        self._lock = threading.Lock()

    def run(self, places: Sequence[Place]) -> None:
        """Try mutants. Raises RuntimeError where a test that has passed does not without them."""
        for copy in self._copies:
            test = min(self._reach.names, key=self._reach.seconds)
            if not copy.run([test], 0).passed:
                raise RuntimeError(f"{test} fails in a copy of the project:\n{copy.output()}")
        free: SimpleQueue[Copy] = SimpleQueue()
        for copy in self._copies:
            free.put(copy)
        count = 0

        def try_one(place: Place) -> None:
            nonlocal count
            if time.monotonic() > self._until:
                return
            copy = free.get()
            began = time.monotonic()
            try:
                test = self._noticed(place, copy)
            finally:
                free.put(copy)
            seconds = time.monotonic() - began
            with self._lock:
                count += 1
                self._results.add(place, test, seconds)
                result = f"fails {test}" if test else "SURVIVES"
                head = f"{count}/{len(places)} {place.describe()}"
                self._write(f"{head}: {result} ({seconds:.1f} s)")

        with ThreadPoolExecutor(len(self._copies)) as pool:
            for _ in pool.map(try_one, places):
                pass

    def unreliable(self) -> set[str]:
        """Return tests that have failed with mutants, and fail without one; they are not used."""
        failed = {test for test in self._results.tests.values() if test and test not in self._seen}
        tests = sorted(failed & self._reach.names)
        self._seen |= failed
        result = self._copies[0].run(tests, self._seconds(tests)) if tests else None
        if result is None or result.passed:
            return set()
        for test in result.failed:
            self._write(f"not used, as it fails without a mutant: {test}")
        self._reach.leave_out(result.failed)
        return set(result.failed)

    def _noticed(self, place: Place, copy: Copy) -> str:
        """Return which test fails with a mutant, or nothing."""
        tests = self._pass.tests(place)
        text = place.change.apply((ROOT / place.module).read_bytes())
        with copy.changed(place.module, text):
            while tests:
                run = copy.run(tests, self._seconds(tests), "-x")
                if run.passed:
                    break
                if run.ended or not run.failed:
                    return ENDLESS if run.ended else IMPORT
                test = run.failed[0]
                is_quick = self._reach.seconds(test) < LONG_SECONDS
                if (is_quick and not self._pass.is_real) or not copy.run(
                    [test], self._seconds([test])
                ).passed:
                    return test
                # The tests before it have passed.
                tests = tests[tests.index(test) + 1 :]
        return ""

    def _seconds(self, tests: Sequence[str]) -> float:
        return sum(self._reach.seconds(test) for test in tests)
