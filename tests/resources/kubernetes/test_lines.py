"""Lines of a watch: in whatever pieces they come, and without memory that stays after a large one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.kubernetes.errors import InvalidResponse
from resources.kubernetes.lines import Lines, process_lines

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
def test_the_lines_match_the_whole_stream(pieces: list[bytes]) -> None:
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


def test_a_large_event_is_not_kept_until_the_next_one() -> None:
    kept: list[int] = []
    lines: list[int] = []

    async def content() -> AsyncIterator[bytes]:
        yield b"{}\n"
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(64):
            yield bytes(65_536).replace(b"\0", b"x")
        yield b"\n"
        # The event is processed, and no other event comes.
        kept.append(tracemalloc.get_traced_memory()[0] - before)

    tracemalloc.start()
    try:
        asyncio.run(process_lines(content(), lambda line: lines.append(len(line))))
    finally:
        tracemalloc.stop()
    assert lines == [2, 64 << 16]
    assert kept[0] < 1 << 20
