"""Lines of a watch: in whatever pieces they come, and without memory that stays after a large one."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.kubernetes.errors import InvalidResponse
from resources.kubernetes.lines import Lines

RESIDENT = """
from pathlib import Path
from resources.kubernetes.errors import InvalidResponse
from resources.kubernetes.lines import Lines

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

def event(size):
    lines, kept = Lines(), []
    try:
        for _ in range(size >> 16):
            lines.feed(b"x" * 65536)
            kept.append(bytes(20_000))  # as the agent goes on
        lines.feed(b"\\n")
    except InvalidResponse:
        pass
    return kept

before = resident()
kept = [event(64 << 20), event(64 << 20)]
print(resident() - before - sum(len(one) for some in kept for one in some))
"""


@given(st.lists(st.binary(max_size=8).map(lambda b: b.replace(b"\r", b"\n")), max_size=20))
def test_the_lines_are_those_of_the_whole_stream(pieces: list[bytes]) -> None:
    lines = Lines()
    found = [line for piece in pieces for line in lines.feed(piece)]
    whole = b"".join(pieces).rpartition(b"\n")[0]
    assert found == [line for line in whole.split(b"\n") if line.strip()]


def test_a_line_beyond_the_limit_is_refused() -> None:
    lines = Lines(100)
    lines.feed(b"x" * 100)
    with pytest.raises(InvalidResponse):
        lines.feed(b"x")


def test_a_large_event_leaves_no_memory_behind() -> None:
    done = subprocess.run(
        [sys.executable, "-c", RESIDENT], stdout=subprocess.PIPE, text=True, check=True
    )
    assert int(done.stdout) < 8 << 20
