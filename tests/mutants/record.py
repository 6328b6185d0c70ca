"""Records of which tests execute which lines, kept in ``build`` and completed after changes.

The first run takes some minutes. Later ones run the tests of files that have changed; lines of modules
that have changed are found by comparison (`tests.mutants.reach`).

There are two records: of the tests without real programs, and of tests with a real router, API server
or network namespace, which only the mutants need that survive the others.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from coverage import CoverageData

from tests.mutants.recorder import LINES, READERS, SECONDS
from tests.mutants.rfc_rows import ROOT


class Kind(NamedTuple):
    """Which tests are recorded together."""

    name: str
    """The end of the name of the record's directory."""
    marks: str
    """As pytest's ``-m``."""
    folders: Sequence[str]
    """Of their files."""
    without: Sequence[str] = ()
    """The begins of the names of files that are not among them."""


QUICK: Final = Kind("", "not interop and not netns and not apiserver and not helm", ("tests",))
REAL: Final = Kind(
    "-real",
    "interop or netns or apiserver",
    ("tests/cells", "tests/cmd", "tests/dialects", "tests/interop"),
    # Hundreds of runs that differ in the router and in its configuration, and not in what is executed.
    without=("test_matrix",),
)
ORDER: Final = ("statedb", "speaker", "resources", "reconcilers", "cells", "cmd")
"""The rooms; each imports rooms before it, so that the tests of these execute nothing of it."""
_JOINED: Final = "record.json"


class Part(NamedTuple):
    """One run of tests, perhaps of some files only."""

    seconds: dict[str, float]
    """The time of each test, mostly of CPU (`recorder`), without tests that failed."""
    readers: dict[str, list[str]]
    """By module: the tests that read its text."""
    files: dict[str, str]
    """The files whose tests have run, and the digests of their texts."""
    texts: dict[str, str]
    """By module: its text at that time."""
    lines: CoverageData
    """By module, relative to the project: the tests that executed each line."""


def recorded(rooms: Sequence[str], write: Callable[[str], None], kind: Kind = QUICK) -> list[Part]:
    """Return the record of the present tests, the latest part first; runs the tests that it lacks."""
    directory = ROOT / "build" / f"reach-{'-'.join(rooms)}{kind.name}"
    parts = read(directory)
    known: dict[str, str] = {}
    for part in reversed(parts):
        known |= part.files
    present = _files(rooms, kind)
    lacking = sorted(file for file, digest in present.items() if known.get(file) != digest)
    if lacking:
        what = f"{len(lacking)} files of tests" if parts else "all tests; this takes some minutes"
        write(f"recording which lines are executed by {what} ...")
        write(_record(rooms, kind, lacking, directory / str(len(parts)), present))
        parts = read(directory)
    return parts


def read(directory: Path) -> list[Part]:
    """Return the parts in a directory, the latest first."""
    folders = [file.parent for file in directory.glob(f"*/{_JOINED}")]
    return [_part(folder) for folder in sorted(folders, key=lambda one: -int(one.name))]


def _part(folder: Path) -> Part:
    joined = json.loads((folder / _JOINED).read_text())
    lines = CoverageData(basename=str(folder / LINES))
    lines.read()
    return Part(**joined, lines=lines)


def _files(rooms: Sequence[str], kind: Kind) -> dict[str, str]:
    """Return the digests of the files with tests that can execute something of the rooms."""
    before = ORDER[: min(ORDER.index(room) for room in rooms)]
    files = {}
    for folder in kind.folders:
        for path in sorted((ROOT / folder).rglob("test_*.py")):
            is_left_out = path.name.startswith(tuple(kind.without))
            if path.relative_to(ROOT).parts[1] not in before and not is_left_out:
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                files[str(path.relative_to(ROOT))] = digest
    return files


def _record(
    rooms: Sequence[str], kind: Kind, files: Sequence[str], target: Path, digests: dict[str, str]
) -> str:
    """Run the tests of files and write the record; returns pytest's last line."""
    partial = target.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "tests.mutants.recorder", "-m", kind.marks),
        *("--hypothesis-profile", "quick", "-n", "auto", "--dist", "loadgroup", *files),
    ]
    environment = {
        "REACH_DIRECTORY": str(partial),
        "REACH_ROOMS": ",".join(str(ROOT / room) for room in rooms),
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(Path(__file__).parent / "programs"))),
    }
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True
    )
    # 5: the markers deselect all tests of the files.
    if done.returncode not in (0, 1, 5):
        raise RuntimeError(f"{' '.join(command)}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    texts = {
        str(path.relative_to(ROOT)): path.read_text()
        for room in rooms
        for path in sorted((ROOT / room).rglob("*.py"))
    }
    join(partial, target, {file: digests[file] for file in files}, texts)
    return done.stdout.splitlines()[-1]


def join(partial: Path, target: Path, files: dict[str, str], texts: dict[str, str]) -> None:
    """Write the files of all processes of a run as one part; their directory goes."""
    prefix = f"{ROOT}/"
    seconds: dict[str, float] = {}
    readers: dict[str, set[str]] = {}
    target.mkdir(parents=True, exist_ok=True)
    for file in partial.glob(SECONDS.format("*")):
        seconds |= json.loads(file.read_text())
    for file in partial.glob(READERS.format("*")):
        for module, tests in json.loads(file.read_text()).items():
            readers.setdefault(module.removeprefix(prefix), set()).update(tests)
    lines = CoverageData(basename=str(target / LINES))
    lines.erase()
    for file in partial.glob(f"{LINES}.*"):
        data = CoverageData(basename=str(file))
        data.read()
        lines.update(data, map_path=lambda path: path.removeprefix(prefix))
    lines.write()
    joined = {
        "seconds": seconds,
        "readers": {module: sorted(tests) for module, tests in readers.items()},
        "files": files,
        "texts": texts,
    }
    (target / _JOINED).write_text(json.dumps(joined))
    shutil.rmtree(partial)
