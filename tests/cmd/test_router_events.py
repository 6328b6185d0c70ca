"""Events of ``waggle router``: what it prints, and the memory of a large session after its end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from speaker.api import ESTABLISHED, PrefixLimit, StateChanged
from speaker.nlri import IPV4_UNICAST
from speaker.server import MemoryRelease
from speaker.server.free_memory import IDLE_SECONDS, LARGE_SESSION_ROUTES
from tests.support import looptime
from waggle.commands.router.program import Events
from waggle.router_config import load


@pytest.mark.parametrize(
    ("old", "routes", "released"),
    [
        (ESTABLISHED, LARGE_SESSION_ROUTES, 1),
        (ESTABLISHED, LARGE_SESSION_ROUTES - 1, 0),
        ("OpenSent", 0, 0),
    ],
)
def test_memory_is_released_after_the_end_of_a_large_session(
    old: str, routes: int, released: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found: list[float] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        memory = MemoryRelease(cpu=lambda: 0.0, release=lambda: found.append(loop.time()))
        events = Events(load(Path("examples/router.yaml")), memory)
        for peer in ("tor-1", "tor-2"):
            events(
                StateChanged(
                    instance="main",
                    peer=peer,
                    address="192.0.2.1",
                    old=old,
                    new="Idle",
                    reason="connection lost",
                    routes=routes,
                )
            )
        await asyncio.sleep(60)

    looptime.run(main())
    # Once for both sessions, when the process is idle.
    assert found == [IDLE_SECONDS] * released
    assert ("tor-2: Idle: connection lost" in capsys.readouterr().err) == (old == ESTABLISHED)


def test_a_warning_of_a_prefix_limit_is_printed_and_its_end_with_the_session_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    events = Events(load(Path("examples/router.yaml")), MemoryRelease())
    for received, ended in ((75, False), (101, True)):
        events(
            PrefixLimit(
                instance="main",
                peer="tor-1",
                family=IPV4_UNICAST,
                received=received,
                limit=100,
                ended=ended,
            )
        )
    assert capsys.readouterr().err == (
        "waggle router: tor-1: 75 prefixes of ipv4-unicast received, the limit is 100\n"
    )
