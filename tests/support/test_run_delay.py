"""What the kernel has of a process that has ended."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.run_delay import seconds_to_end


def test_the_time_until_the_end_of_a_process_leaves_its_exit_status_to_its_parent() -> None:
    command = [sys.executable, "-S", "-c", "raise SystemExit(7)"]
    with subprocess.Popen(command) as process:
        seconds_to_end(process.pid, within=60)
        assert process.wait() == 7


def test_a_process_that_does_not_end_is_a_failure() -> None:
    with subprocess.Popen(["sleep", "1000"]) as process:
        with pytest.raises(AssertionError, match=r"has not ended within 0\.1 s"):
            seconds_to_end(process.pid, within=0.1)
        process.kill()
