"""BFD of an agent with BIRD: states read from BIRD's side, a router that dies, an agent that does."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reconcilers.bfd.coupling import AFTER_BGP_SECONDS
from tests.interop.conftest import NeedRouter
from tests.support.agent import Agent
from tests.support.netns import Link, linked_namespaces
from tests.support.routers import PeerSettings, RouterSettings
from tests.support.routers.base import IPV4
from tests.support.routers.bird import STEADY, Bird
from tests.support.wait import eventually, settles

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

OURS, THEIRS, PORT = "10.99.0.1", "10.99.0.11", 1790
INTERVAL = 100
DETECTION = 3 * INTERVAL / 1000
HOLD = 90
KILLS = 2
GRACE = 0.05
ATTEMPTS = 5
"""Of a measured time, on a machine that does other things."""


class Lab:
    """An agent with BFD, a router of BIRD, and what both say."""

    def __init__(self, agent: Agent, router: Bird, link: Link) -> None:
        self.agent, self.router, self.link = agent, router, link

    def up(self) -> None:
        # The agent's own reading, too: it has found the session of the process.
        assert (self.peer["state"], self.peer["bfd"]) == ("Established", "Up")
        state, _, interval, detection = self.router.bfd()[OURS]
        assert (state, interval, detection) == ("Up", INTERVAL / 1000, DETECTION)

    @property
    def peer(self) -> dict[str, Any]:
        (peer,) = self.agent.peers().values()
        return peer

    def logs(self) -> str:
        return f"{self.agent.daemon.tail()}\n{self.router.daemon.tail()}"


@contextlib.contextmanager
def lab(directory: Path) -> Iterator[Lab]:
    with linked_namespaces() as link, contextlib.ExitStack() as stack:
        link.left.add_address(f"{OURS}/24")
        link.right.add_address(f"{THEIRS}/24")
        agent = Agent(
            link.left,
            directory / "agent",
            arguments=(
                *("--enable-cell", "frrk8s", "--disable-cell", "cilium"),
                *("--bfd", "--bfd-directory", str(directory / "bfd")),
            ),
        )
        agent.write_objects("configuration.json", configuration())
        settings = RouterSettings(
            asn=64701,
            router_id=THEIRS,
            addresses=(THEIRS,),
            port=PORT,
            peers=(
                PeerSettings(
                    OURS, 64710, port=PORT, families=(IPV4,), hold_time=HOLD, bfd_interval=INTERVAL
                ),
            ),
        )
        router = Bird(settings, link.right, directory / "router")
        stack.callback(end_process, directory / "bfd")
        for part in (agent, router):
            part.start()
            stack.callback(part.stop)
        for part in (agent, router):
            part.wait_ready()
        found = Lab(agent, router, link)
        eventually(found.up, within=30, context=found.logs)
        yield found


def end_process(directory: Path) -> None:
    """End the process with the sessions, which outlives its agent."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if b"waggle_bfd" in words and str(directory).encode() in words:
                os.kill(int(process.name), signal.SIGTERM)


def configuration() -> dict[str, Any]:
    """Return an FRRConfiguration with a BFD profile."""
    neighbor = {"address": THEIRS, "asn": 64701, "port": PORT, "bfdProfile": "quick"}
    return {
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfiguration",
        "metadata": {"name": "spine", "namespace": "frr-k8s-system"},
        "spec": {
            "bgp": {
                "routers": [{"asn": 64710, "id": OURS, "neighbors": [neighbor]}],
                "bfdProfiles": [
                    {"name": "quick", "receiveInterval": INTERVAL, "transmitInterval": INTERVAL}
                ],
            }
        },
    }


def test_bird(need_router: NeedRouter, tmp_path: Path) -> None:
    need_router("bird")
    with lab(tmp_path) as found:
        agent, router = found.agent, found.router
        _, since, _, _ = router.bfd()[OURS]

        # The agent is killed, and starts again: its BFD session has not ended.
        for _ in range(KILLS):
            agent.daemon.kill()
            agent.start()
            agent.wait_ready()
        eventually(found.up, within=30, context=found.logs)
        assert router.bfd()[OURS][1] == pytest.approx(since, abs=STEADY)

        def ended() -> bool:
            # A router that finds its own BFD session expired first reads no NOTIFICATION.
            return "6.10" in router.last_notification(OURS)

        # The router stands still: its path is down, long before the hold time.
        took: list[float] = []
        while len(took) < ATTEMPTS and (min(took, default=HOLD) > DETECTION + GRACE or not ended()):
            if took:
                # Soon after the end of a BGP session a loss is judged twice.
                stays = DETECTION + 2 * AFTER_BGP_SECONDS
                settles(found.up, stays=stays, context=found.logs)
            before = len(losses(agent))
            frozen = time.time()
            router.daemon.freeze()
            try:
                (lost,) = eventually(
                    partial(losses_after, agent, before), within=10, context=found.logs
                )
            finally:
                router.daemon.thaw()
            took.append(lost - frozen)
            eventually(found.up, within=30, context=found.logs)
        assert DETECTION / 2 < min(took) < DETECTION + GRACE
        assert ended(), "Cease, BFD Down (RFC 9384)"


def losses(agent: Agent) -> list[float]:
    """Return when the agent ended sessions for BFD, by its log."""
    lines = [line for line in agent.daemon.log.read_text().splitlines() if "bfd.path_down" in line]
    assert all("Control Detection Time Expired" in line for line in lines)
    return [
        dt.datetime.fromisoformat(line.split("ts=")[1].split()[0]).timestamp() for line in lines
    ]


def losses_after(agent: Agent, count: int) -> list[float]:
    """Return those beyond the first ``count``: a line comes later than the state it is of."""
    later = losses(agent)[count:]
    assert later
    return later
