"""Run the tests of its rule against each mutant; exit status 1 if one survives.

docs/rfcs.md names the tests of an RFC; `tests.mutants.merging` and `tests.mutants.corrections` have
their own.

Each mutant is a change of a copy of the project, so the working tree stays as it is. ``-k RULE``
selects rules: ``make mutants ARGS="-k 8212"``, ``-k correction``.

``--random N --seed S`` takes mutants of random places of rooms instead (`tests.mutants.random_places`).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.mutants import random_places
from tests.mutants.corrections import CORRECTIONS
from tests.mutants.merging import MERGING
from tests.mutants.rfc_rows import ROOT, named_tests
from tests.mutants.rules import MUTANTS, Mutant

COPIED = ("cells", "cmd", "deploy", "docs", "examples", "reconcilers", "resources", "speaker")
TIMEOUT_SECONDS = 600
_DEFINITION = re.compile(r"^( {4})?(class|(?:async )?def) (\w+)", re.MULTILINE)


def main() -> int:
    """Run; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("-k", metavar="RULE", default="", help="only rules that begin so")
    parser.add_argument("--random", metavar="N", type=int, help="mutants of N random places")
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="of the random places")
    parser.add_argument(
        "--rooms",
        metavar="FOLDER,...",
        default=",".join(random_places.ROOMS),
        help="of the random places (default: %(default)s)",
    )
    parser.add_argument(
        "--at", metavar="MODULE[:LINE]", default="", help="only of random places here"
    )
    parser.add_argument(
        "--record", metavar="DIRECTORY", type=Path, help="a record of an earlier version, in build/"
    )
    parser.add_argument(
        "--results",
        metavar="FILE",
        type=Path,
        help="of random places: mutants that it has are done",
    )
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=int,
        help="mutants at a time (default: one; of random places: one for each idle CPU)",
    )
    arguments = parser.parse_args()
    if arguments.random is not None or arguments.at:
        asked = random_places.Asked(
            rooms=arguments.rooms.split(","),
            limit=sys.maxsize if arguments.random is None else arguments.random,
            seed=arguments.seed,
            at=arguments.at,
            record=arguments.record,
            results=arguments.results,
            jobs=arguments.jobs,
        )
        return random_places.run(asked, _print)
    every = (*MUTANTS, *MERGING, *CORRECTIONS)
    chosen = [mutant for mutant in every if mutant.rule.startswith(arguments.k)]
    if not chosen:
        parser.error(f"no rule begins with {arguments.k!r}")
    return _run(chosen, arguments.jobs or 1)


def _run(mutants: Sequence[Mutant], jobs: int) -> int:
    """Run the tests of each mutant, of as many at a time as there are jobs; returns the exit status."""
    copies: SimpleQueue[Path] = SimpleQueue()

    def killed(mutant: Mutant) -> tuple[str, float]:
        copy, began = copies.get(), time.monotonic()
        try:
            return _killer(mutant, copy), time.monotonic() - began
        finally:
            copies.put(copy)

    survivors = 0
    with (
        tempfile.TemporaryDirectory(prefix="waggle-mutants-") as name,
        ThreadPoolExecutor(jobs) as pool,
    ):
        for number in range(jobs):
            copies.put(_copied(Path(name) / str(number)))
        for number, (mutant, (killer, took)) in enumerate(
            zip(mutants, pool.map(killed, mutants), strict=True), 1
        ):
            text = " ".join(mutant.text.split())
            result = f"fails {killer}" if killer else "SURVIVES"
            head = f"{number}/{len(mutants)} {mutant.rule} {mutant.module}: {text}"
            _print(f"{head}: {result} ({took:.1f} s)")
            survivors += not killer
    _print(f"{len(mutants) - survivors} of {len(mutants)} mutants fail a test of their rule")
    return 1 if survivors else 0


def _copied(copy: Path) -> Path:
    """Copy what the tests need."""
    for folder in (*COPIED, "statedb", "tests"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, copy / folder, ignore=ignored)
    for file in ("pyproject.toml", "README.md", "Makefile"):
        shutil.copy(ROOT / file, copy / file)
    return copy


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _killer(mutant: Mutant, copy: Path) -> str:
    """Return the test of the mutant's rule that fails, or nothing."""
    module = copy / mutant.module
    original = module.read_text()
    assert original.count(mutant.text) == 1, f"{mutant.module}: {mutant.text!r} is not there once"
    module.write_text(original.replace(mutant.text, mutant.replaced_by))
    try:
        nodes = mutant.tests or _nodes(named_tests(mutant.rule), copy)
        return _first_failure(nodes, copy)
    finally:
        module.write_text(original)


def _nodes(names: Sequence[str], copy: Path) -> list[str]:
    """Return the tests with these names, as pytest's arguments; methods with their classes."""
    nodes = []
    for file in sorted((copy / "tests").rglob("test_*.py")):
        within = ""
        for match in _DEFINITION.finditer(file.read_text()):
            indent, kind, name = match.groups()
            if not indent:
                within = f"{name}::" if kind == "class" else ""
            if kind != "class" and name in names:
                nodes.append(f"{file.relative_to(copy)}::{within if indent else ''}{name}")
    assert nodes, f"there is no test of {names}"
    return nodes


def _first_failure(nodes: Sequence[str], copy: Path) -> str:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *nodes]
    done = subprocess.run(
        command,
        cwd=copy,
        env={
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "1",
            # For the programs that tests start.
            "PYTHONPATH": os.pathsep.join((str(copy), str(copy / "cmd"))),
        },
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode == 0:
        if not re.search(r"\d+ passed", done.stdout):
            raise RuntimeError(f"no test has run: {' '.join(command)}:\n{done.stdout}")
        return ""
    if done.returncode not in (1, 2):
        raise RuntimeError(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
    found = re.search(r"^(?:FAILED|ERROR) \S*?(?:::(\w+)|(\S+))", done.stdout, re.MULTILINE)
    return (found[1] or found[2]) if found else "the import"


if __name__ == "__main__":
    sys.exit(main())
