"""Compiles `native.c`: ``python speaker/rib/prefix_table/build.py [--missing] [FOLDER]``.

Beside it by default. Needs a C compiler (``CC``, or cc) and the headers of this Python, and nothing
else; the build of the package calls it (pyproject.toml), and goes on without the module where either
is missing. ``--missing``: does nothing where the module of this source is there or not wanted
(``WAGGLE_PURE``), and succeeds, with one line, where it cannot be compiled; for ``make``, as pip does
not show what a build says.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
import zlib
from pathlib import Path

SOURCE = Path(__file__).with_name("native.c")
FLAGS = (
    "-O3",
    "-fPIC",
    "-shared",
    "-Wall",
    "-Wextra",
    "-Wno-missing-field-initializers",
    "-Wno-cast-function-type",
)


class NotBuiltError(Exception):
    """Why the module could not be compiled."""


def module_of(folder: Path) -> Path:
    """Return the file of the module in a folder."""
    return folder / f"native{sysconfig.get_config_var('EXT_SUFFIX')}"


def is_built(folder: Path) -> bool:
    """Return whether the module in a folder is there and of this source."""
    # Not imported: it would be that of this process from then on.
    code = "import native, sys; sys.exit(native.SOURCE != int(sys.argv[1]))"
    arguments = [sys.executable, "-c", code, str(_checksum())]
    return (
        module_of(folder).exists()
        and not subprocess.run(  # noqa: S603
            arguments, cwd=folder, capture_output=True, check=False
        ).returncode
    )


def _checksum() -> int:
    return zlib.crc32(SOURCE.read_bytes())


def build(folder: Path, *flags: str) -> Path:
    """Compile the module into a folder; returns its file. Raises `NotBuiltError`."""
    headers = Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").exists():
        raise NotBuiltError("the headers of Python are missing (on Debian: python3-dev)")
    output = module_of(folder)
    source = f"-DSOURCE={_checksum()}L"
    arguments = [*FLAGS, *flags, source, f"-I{headers}", str(SOURCE), "-o", f"{output}.new"]
    compiler = os.environ.get("CC") or "cc"
    try:
        ended = subprocess.run(  # noqa: S603
            [*shlex.split(compiler), *arguments], capture_output=True, text=True, check=False
        )
        if not ended.returncode:
            Path(f"{output}.new").replace(output)
            return output
    except OSError as error:
        raise NotBuiltError(f"the C compiler {error.filename}: {error.strerror}") from error
    except ValueError as error:
        raise NotBuiltError(f"the C compiler {compiler}: {error}") from error
    lines = ended.stderr.splitlines() or [f"exit code {ended.returncode}"]
    reason = next((line for line in lines if "error" in line), lines[0])
    raise NotBuiltError(f"the C compiler failed: {reason[:300]}")


def main(arguments: list[str]) -> int | str:
    """Build, and return an exit status."""
    if_missing = "--missing" in arguments
    folders = [Path(given) for given in arguments if given != "--missing"]
    folder = folders[0] if folders else SOURCE.parent
    if if_missing and (os.environ.get("WAGGLE_PURE", "") not in ("", "0") or is_built(folder)):
        return 0
    try:
        sys.stdout.write(f"{build(folder)}\n")
    except NotBuiltError as error:
        line = f"the prefix table in C is not built: {error}"
        if not if_missing:
            return line
        sys.stdout.write(f"{line}; the one in Python is used\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
