"""Mutants of random places of rooms, each against the tests that execute the place.

``make mutants ARGS="--random 200 --seed 7"``. The first run of a version of the project records for
some minutes which tests execute which lines (`tests.mutants.reach`), and keeps that in ``build``.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
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
TESTS_SECONDS: Final = 40.0
"""Of recorded time: the tests of one mutant, at most."""
MUTANT_TIMEOUT_SECONDS: Final = 180.0
QUICK: Final = "not interop and not netns and not apiserver and not helm and not program"


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
    copies: SimpleQueue[Path] = SimpleQueue()
    survivors: list[Place] = []
    workers = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="waggle-mutants-") as name:
        for worker in range(workers):
            copies.put(copied(Path(name) / str(worker)))

        def result(place: Place) -> str:
            if place.equivalent is not None:
                return f"is equivalent: {place.equivalent.reason}"
            copy = copies.get()
            began = time.monotonic()
            try:
                noticed = _noticed(place, reach, copy)
            finally:
                copies.put(copy)
            if not noticed:
                survivors.append(place)
            return f"{noticed or 'SURVIVES'} ({time.monotonic() - began:.1f} s)"

        with ThreadPoolExecutor(workers) as pool:
            for number, (place, text) in enumerate(
                zip(places, pool.map(result, places), strict=True), 1
            ):
                write(f"{number}/{len(places)} {place.describe()}: {text}")
    found = len(places) - len(survivors)
    write(f"{found} of {len(places)} mutants are noticed or equivalent; the others:")
    for place in survivors:
        write(f"  {place.describe()}")
    return 0 if found >= 0.85 * len(places) else 1


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
    ]
    environment = {
        "REACH_DIRECTORY": str(partial),
        "REACH_ROOMS": ",".join(str(ROOT / room) for room in rooms),
        "PYTHONPATH": str(ROOT),
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
    arguments = copy / "build-tests.txt"
    arguments.write_text("".join(f"{test}\n" for test in tests))
    module.write_bytes(place.change.apply(original))
    command = [
        *(sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"),
        *("--hypothesis-profile", "quick", "--timeout", "60", f"@{arguments}"),
    ]
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=MUTANT_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "does not end"
    finally:
        module.write_bytes(original)
    if done.returncode == 0:
        return ""
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return f"fails {failed[0].split(' - ')[0].split()[-1]}" if failed else "fails at import"
