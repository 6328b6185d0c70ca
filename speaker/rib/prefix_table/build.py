"""Compiles `native.c`: ``python speaker/rib/prefix_table/build.py [FOLDER]``, beside it by default.

Needs a C compiler (``CC``, or cc) and the headers of this Python, and nothing else; the build of the
package calls it (pyproject.toml), and goes on without the module where either is missing.
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


def build(folder: Path, *flags: str) -> Path:
    """Compile the module into a folder; returns its file. Raises `NotBuiltError`."""
    headers = Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").exists():
        raise NotBuiltError("the headers of Python are missing (on Debian: python3-dev)")
    output = folder / f"native{sysconfig.get_config_var('EXT_SUFFIX')}"
    source = f"-DSOURCE={zlib.crc32(SOURCE.read_bytes())}L"
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


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{build(Path(sys.argv[1]) if sys.argv[1:] else SOURCE.parent)}\n")
    except NotBuiltError as error:
        sys.exit(f"the prefix table in C is not built: {error}")
