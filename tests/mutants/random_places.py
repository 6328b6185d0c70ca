"""Mutants of random places of rooms, each against the tests that execute the place.

``make mutants ARGS="--random 200 --seed 7"``. The first run of a version of the project records for
some minutes which tests execute which lines (`tests.mutants.reach`), and keeps that in ``build``.

Tests of programs are among them: their programs are those of the copy with the mutant. Tests with real
routers, API servers or helm are not. What notices a mutant has to pass without it, at the end of the
run as well; else the other tests decide.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Final, NamedTuple

from tests.mutants.equivalent import EQUIVALENT, Equivalent
from tests.mutants.page import ROOT
from tests.mutants.places import Change, changes
from tests.mutants.reach import Reach

ROOMS: Final = ("cells", "cmd")
TESTS_SECONDS: Final = 25.0
"""Of recorded time: the tests of one mutant, at most."""
MUTANT_TIMEOUT_SECONDS: Final = 180.0
RUN_TIMEOUT_SECONDS: Final = 1800.0
ALONE: Final = ("speaker", "statedb")
"""Rooms that import no other: their tests execute nothing of another room."""
QUICK: Final = "not interop and not netns and not apiserver and not helm"
IMPORT: Final = "the import"
ENDLESS: Final = "(does not end)"


class Place(NamedTuple):
    """One change of one module."""

    module: str
    change: Change

    def describe(self) -> str:
        """Return module, line and change as one line."""
        source = (ROOT / self.module).read_bytes()
        return f"{self.module}:{self.change.line}: {self.change.describe(source)}"

    @property
    def equivalent(self) -> Equivalent | None:
        """The entry of `EQUIVALENT` for this change, if any."""
        source = (ROOT / self.module).read_bytes()
        text = source.splitlines()[self.change.line - 1].decode().strip()
        change = self.change.describe(source)
        wanted = (self.module, text, change)
        return next((entry for entry in EQUIVALENT if entry[:3] == wanted), None)


def chosen(rooms: Sequence[str], count: int, seed: int) -> list[Place]:
    """Return ``count`` places of the rooms; the same for the same text and seed."""
    sources = {
        str(path.relative_to(ROOT)): path.read_bytes()
        for room in rooms
        for path in sorted((ROOT / room).rglob("*.py"))
    }
    every = [Place(module, change) for module in sources for change in changes(sources[module])]
    random.Random(seed).shuffle(every)  # noqa: S311
    valid = (place for place in every if place.change.is_valid(sources[place.module]))
    return list(islice(valid, count))


def run(
    rooms: Sequence[str],
    count: int,
    seed: int,
    record: Path | None,
    write: Callable[[str], None],
) -> int:
    """Run the tests of each mutant; returns the exit status: 1 if fewer than 85 % are noticed.

    ``record`` is the directory of an earlier record; None: that of the present text, which is made.
    """
    reach = Reach(record or recorded(rooms, write))
    places = chosen(rooms, count, seed)
    tested = [place for place in places if place.equivalent is None]
    for place in places:
        if place.equivalent is not None:
            write(f"{place.describe()}: is equivalent: {place.equivalent.reason}")
    with tempfile.TemporaryDirectory(prefix="waggle-mutants-") as name:
        copies = [copied(Path(name) / str(at)) for at in range(len(os.sched_getaffinity(0)))]
        noticed = _all_noticed(tested, reach, copies, write)
        unreliable = _failing(sorted(set(noticed.values()) - {"", IMPORT, ENDLESS}), copies[0])
        if unreliable:
            write(f"these fail without a mutant, too: {', '.join(sorted(unreliable))}")
            reach.leave_out(unreliable)
            again = [place for place in tested if noticed[place] in unreliable]
            noticed |= _all_noticed(again, reach, copies, write)
    survivors = [place for place in tested if not noticed[place]]
    write(
        f"{len(tested) - len(survivors)} of {len(places)} mutants are noticed, "
        f"{len(places) - len(tested)} are equivalent; the others:"
    )
    for place in survivors:
        write(f"  {place.describe()}")
    return 0 if len(places) - len(survivors) >= 0.85 * len(places) else 1


def _all_noticed(
    places: Sequence[Place], reach: Reach, copies: Sequence[Path], write: Callable[[str], None]
) -> dict[Place, str]:
    """Return the test that notices each mutant, or nothing; one mutant in each copy at a time."""
    free: SimpleQueue[Path] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def result(place: Place) -> tuple[str, float]:
        copy = free.get()
        began = time.monotonic()
        try:
            return _noticed(place, reach, copy), time.monotonic() - began
        finally:
            free.put(copy)

    noticed = {}
    with ThreadPoolExecutor(len(copies)) as pool:
        for place, (test, seconds) in zip(places, pool.map(result, places), strict=True):
            noticed[place] = test
            text = f"fails {test}" if test else "SURVIVES"
            write(f"{len(noticed)}/{len(places)} {place.describe()}: {text} ({seconds:.1f} s)")
    return noticed


def copied(target: Path) -> Path:
    """Copy the project, without what is made of it."""
    ignored = shutil.ignore_patterns("__pycache__", ".*", "build", "dist", "*.egg-info")
    shutil.copytree(ROOT, target, ignore=ignored)
    return target


def recorded(rooms: Sequence[str], write: Callable[[str], None]) -> Path:
    """Return the directory with the record of the present text; makes it if there is none."""
    digest = hashlib.sha256(",".join(rooms).encode())
    for room in (*rooms, "tests"):
        for path in sorted((ROOT / room).rglob("*.py")):
            digest.update(path.read_bytes())
    directory = ROOT / "build" / f"reach-{digest.hexdigest()[:12]}"
    if directory.is_dir():
        return directory
    write("recording which tests execute which lines; this takes some minutes ...")
    partial = directory.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "tests.mutants.reach", "-m", QUICK),
        *("--hypothesis-profile", "quick", "-n", "auto", "--dist", "loadgroup"),
        *(f"--ignore=tests/{room}" for room in ALONE if room not in rooms),
    ]
    environment = {
        "REACH_DIRECTORY": str(partial),
        "REACH_ROOMS": ",".join(str(ROOT / room) for room in rooms),
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(Path(__file__).parent / "programs"))),
    }
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(command)}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    write(done.stdout.splitlines()[-1])
    partial.rename(directory)
    return directory


def _noticed(place: Place, reach: Reach, copy: Path) -> str:
    """Return which test fails with a mutant, or nothing."""
    tests = reach.tests(
        ROOT / place.module, place.change.line, place.change.last_line, TESTS_SECONDS
    )
    if not tests:
        return ""
    module = copy / place.module
    original = module.read_bytes()
    module.write_bytes(place.change.apply(original))
    try:
        status, lines = _pytest(tests, copy, MUTANT_TIMEOUT_SECONDS, "-x")
    except subprocess.TimeoutExpired:
        return ENDLESS
    finally:
        module.write_bytes(original)
    return "" if status == 0 else next(iter(_named(lines, tests)), IMPORT)


def _failing(tests: Sequence[str], copy: Path) -> set[str]:
    """Return those of some tests that fail in a copy without a mutant."""
    return _named(_pytest(tests, copy, RUN_TIMEOUT_SECONDS)[1], tests) if tests else set()


def _pytest(
    tests: Sequence[str], copy: Path, timeout: float, *options: str
) -> tuple[int, list[str]]:
    """Run tests in a copy; returns the exit status and the lines of the summary that name failures.

    Raises subprocess.TimeoutExpired, with all processes of the tests ended.
    """
    arguments = copy / "build-tests.txt"
    arguments.write_text("".join(f"{test}\n" for test in tests))
    command = [
        *(sys.executable, "-m", "pytest", *options, "-q", "-p", "no:cacheprovider"),
        *("-p", "no:xdist", "--hypothesis-profile", "quick", "--timeout", "60", f"@{arguments}"),
    ]
    environment = {
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join((str(copy), str(copy / "cmd"))),
    }
    with subprocess.Popen(
        command,
        cwd=copy,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            written, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    # 4 is also the status where a mutant breaks the import of a test.
    is_unknown = process.returncode == 4 and "ERROR collecting" not in written
    if process.returncode not in (0, 1, 2, 4) or is_unknown:
        raise RuntimeError(f"{' '.join(command)}: status {process.returncode}\n{written[-4000:]}")
    failed = [line for line in written.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return process.returncode, failed


def _named(lines: Sequence[str], tests: Sequence[str]) -> set[str]:
    """Return the tests that lines of pytest's summary name: ``FAILED test - reason``."""
    texts = [f"{line.partition(' ')[2]} - " for line in lines]
    return {test for test in tests for text in texts if text.startswith(f"{test} - ")}
