"""The process that writes routes, as an agent starts it: the only one with CAP_NET_ADMIN."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.agent import Agent
from tests.support.netns import Link
from tests.support.wait import eventually

pytestmark = [pytest.mark.netns, pytest.mark.program]

NET_ADMIN = 1 << 12


def may_write(process: Path) -> bool:
    """Whether a process or thread has the capability, or could gain it."""
    lines = (process / "status").read_text().splitlines()
    sets = dict(line.split(":") for line in lines)
    return any(int(sets[name], 16) & NET_ADMIN for name in ("CapInh", "CapPrm", "CapEff"))


def children(pid: int) -> list[int]:
    """Return the children of a process, of all its threads."""
    texts = [(t / "children").read_text() for t in Path(f"/proc/{pid}/task").iterdir()]
    return sorted(int(child) for text in texts for child in text.split())


@pytest.mark.parametrize("keeps_state", [False, True])
def test_the_writer_alone_has_the_capability(
    link: Link, tmp_path: Path, *, keeps_state: bool
) -> None:
    state = ("--state-directory", str(tmp_path / "state")) if keeps_state else ()
    agent = Agent(link.left, tmp_path, arguments=("--fib", *state), kernel=True)
    agent.start()
    try:
        agent.wait_ready()
        pid = agent.daemon.pid
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        assert [t.name for t in threads if may_write(t)] == [], [
            (t / "comm").read_text() for t in threads
        ]
        (keeper,) = children(pid)
        # The agent is ready as soon as the keeper is there, which then starts the writer.
        eventually(lambda: children(keeper)[0], context=agent.daemon.tail)
        (writer,) = children(keeper)
        assert may_write(Path(f"/proc/{writer}"))

        os.kill(writer, signal.SIGKILL)

        def replaced() -> None:
            (second,) = children(keeper)
            assert second != writer
            assert may_write(Path(f"/proc/{second}"))

        eventually(replaced, context=agent.daemon.tail)

        os.kill(keeper, signal.SIGKILL)

        def reported() -> None:
            health = agent.health()["kernel/capability"]
            assert health["level"] == "degraded"
            assert "when the agent is started again" in health["message"]
            assert "lacks the capability" in agent.health()["kernel/kernel"]["message"]

        eventually(reported, context=agent.daemon.tail)
        (keeper,) = children(pid)
    finally:
        agent.stop()
    assert not Path(f"/proc/{keeper}").exists()
