"""What an agent's process keeps of a large session that was lost, as the system counts it."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys

import pytest

from tests.cells import flapping


@pytest.mark.program
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="not glibc")
def test_memory_of_a_lost_session_is_returned_to_the_system_and_flaps_add_none() -> None:
    done = subprocess.run(
        [sys.executable, "-m", flapping.__name__],
        # All blocks from glibc, so that what it returns does not depend on what Python's own
        # allocator has placed beside them.
        env={**os.environ, "PYTHONMALLOC": "malloc"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    with_routes, after = found["with_routes"], found["after"]
    assert len(after) == flapping.FLAPS
    # The routes take 25 MiB, of which not much may stay.
    assert min(with_routes) - max(after) > 16 << 20
    assert max(after) < 1.05 * after[0]
    assert max(with_routes) < 1.05 * with_routes[0]
