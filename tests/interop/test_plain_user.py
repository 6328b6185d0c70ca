"""The tests of a plain user: network namespaces and routers work without root."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.conftest import NeedRouter

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

ROOT = Path(__file__).parents[2]
MATRIX = ("tests/interop/test_matrix.py", "tests/interop/test_matrix_alone.py")
NOBODY = 65534
AS_NOBODY = [
    "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
    # The checkout and the interpreter may be in the home of root.
    "--inh-caps=-all,+dac_read_search", "--ambient-caps=+dac_read_search",
]  # fmt: skip


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory that belongs to the plain user; pytest's own belong to root alone."""
    with tempfile.TemporaryDirectory() as made:
        if os.geteuid() == 0:
            os.chown(made, NOBODY, NOBODY)
        yield Path(made)


def as_plain_user(directory: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command as another user than root."""
    return subprocess.run(
        [*(AS_NOBODY if os.geteuid() == 0 else ()), *command],
        cwd=ROOT,
        env={
            **os.environ,
            "HOME": str(directory),
            "PATH": f"{directory}:{os.environ['PATH']}",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )


def need(directory: Path, *command: str) -> None:
    done = as_plain_user(directory, *command)
    if done.returncode != 0:
        reason = " ".join(done.stderr.split())
        pytest.skip(f"a plain user cannot run {Path(command[0]).name} here: {reason}")


def run_tests(directory: Path, *arguments: str) -> tuple[int, str]:
    need(directory, sys.executable, "-c", "import pytest, tests.support")
    done = as_plain_user(
        directory,
        sys.executable, "-m", "pytest", "-p", "no:cacheprovider",
        f"--basetemp={directory / 'tests'}", *arguments,
    )  # fmt: skip
    return done.returncode, done.stdout


def test_routers_run_in_the_user_namespace_of_a_plain_user(
    need_router: NeedRouter, directory: Path
) -> None:
    for kind in ("bird", "frr", "gobgp"):
        need_router(kind)
    need(directory, "unshare", "--user", "--map-root-user", "--net", "--mount", "true")
    status, output = run_tests(
        directory, "tests/interop/test_routers.py", "-k", "bird-gobgp or frr-bird"
    )
    assert status == 0, output
    assert "2 passed" in output


def test_without_user_namespaces_the_tests_of_a_plain_user_are_skipped(directory: Path) -> None:
    unshare = directory / "unshare"
    unshare.write_text("#!/bin/sh\necho >&2 unshare: Operation not permitted\nexit 1\n")
    unshare.chmod(0o755)
    status, output = run_tests(directory, *MATRIX, "-k", "bird")
    assert status == 0, output
    assert not re.search(r"\d passed", output), output
    assert re.search(
        r"^skipped tests against real routers: network namespaces need root, or a user namespace,"
        r" which fails: unshare: Operation not permitted.* \(\d+ tests\)$",
        output,
        re.MULTILINE,
    ), output
