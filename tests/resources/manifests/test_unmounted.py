"""A directory of manifests that is a mount of its own, as a volume of a Pod is, and goes away."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.netns
@pytest.mark.program
def test_h52_a_directory_that_is_unmounted_keeps_its_objects_and_is_followed_when_it_is_back(
    tmp_path: Path,
) -> None:
    rights = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    program = [sys.executable, "-m", "tests.resources.manifests.unmounting", str(tmp_path)]
    done = subprocess.run(
        ["unshare", *rights, "--mount", *program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    read, kept, followed, watched = done.stdout.splitlines()
    assert (read, followed, watched) == ("read", "followed", "watched")
    assert f"{tmp_path}: has no manifests any more; its 2 objects are kept" in kept
