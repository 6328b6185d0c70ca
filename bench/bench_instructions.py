"""Instructions of the speaker's core for one change: a figure that other load does not change.

Runs `bench.bench_pause` in valgrind's callgrind twice, with few changes and with many: the difference
is of changes alone. It has all that the processor executes, of functions in C as well, whose calls
`bench.bench_walk` does not see; it has no time in which memory answers. With ``--checkout`` another
checkout runs too, with its own virtual environment, and the ratio is printed. ``--keep DIRECTORY``
keeps the files, for ``callgrind_annotate``, which names the functions.

``python -m bench.bench_instructions [--checkout DIRECTORY] [--pure] [--keep DIRECTORY]`` (valgrind)
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.bench_pause import PAUSES_MS, ROUNDS

ROOT: Final = Path(__file__).resolve().parent.parent
PROGRAM: Final = """
import gc, runpy
gc.disable()
runpy.run_module("bench.bench_pause", run_name="__main__")
"""
"""Without the cyclic collector: one collection of all objects is as much as a hundred changes."""
FEW, MANY = 40, 240
"""Changes for each pause."""
DIFFERENCE: Final = len(PAUSES_MS) * (MANY - FEW)
"""Changes that the longer run has more: both numbers are multiples of `ROUNDS` and of 2."""
assert not FEW % (2 * ROUNDS)
assert not MANY % (2 * ROUNDS)


def instructions(report: str) -> int:
    """Return the sum in a file of callgrind (``totals: N``). Raises ValueError without one."""
    for line in report.splitlines():
        key, _, value = line.partition(":")
        if key in ("totals", "summary") and value.split():
            return int(value.split()[0])
    raise ValueError("the file of callgrind has no sum")


def run(root: Path, changes: int, output: Path, *, pure: bool) -> int:
    """Run the bench of a checkout in callgrind; returns its instructions. Raises RuntimeError."""
    python = root / ".venv/bin/python"
    program = python if python.exists() else Path(sys.executable)
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": f"{root}:{root / 'cmd'}"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if pure:
        environment["WAGGLE_PURE"] = "1"
    valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}"]
    # Modules are compiled in the first run, which is not measured.
    for command, number in (([], 0), (valgrind, changes)):
        ended = subprocess.run(
            [*command, program, "-c", PROGRAM, "--changes", str(number)],
            cwd=root,
            env=environment,
            capture_output=True,
            check=False,
        )
        if ended.returncode:
            raise RuntimeError(ended.stderr.decode(errors="replace")[-2000:])
    return instructions(output.read_text())


def of_one_change(root: Path, directory: Path, *, pure: bool) -> float:
    """Return the instructions of one change, in the core of a checkout."""
    few, many = (
        run(root, changes, directory / f"{changes}.callgrind", pure=pure) for changes in (FEW, MANY)
    )
    return (many - few) / DIFFERENCE


@contextlib.contextmanager
def _directory(kept: Path | None, name: str) -> Iterator[Path]:
    if kept is None:
        with tempfile.TemporaryDirectory() as temporary:
            yield Path(temporary)
    else:
        directory = kept / name
        directory.mkdir(parents=True, exist_ok=True)
        yield directory


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--checkout", type=Path, help="another checkout, whose figure is the base")
    parser.add_argument("--pure", action="store_true", help="prefix tables in Python")
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="keep callgrind's files")
    args = parser.parse_args()
    if shutil.which("valgrind") is None:
        parser.error("valgrind is not installed")
    with _directory(args.keep, "this") as directory:
        this = of_one_change(ROOT, directory, pure=args.pure)
    print(f"one change, sent to ten peers: {this:,.0f} instructions")
    if args.checkout is not None:
        with _directory(args.keep, "other") as directory:
            other = of_one_change(args.checkout.resolve(), directory, pure=args.pure)
        print(f"of the other checkout: {other:,.0f}; ratio {this / other:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
