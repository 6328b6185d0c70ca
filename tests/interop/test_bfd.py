"""BFD of an agent with routers: a lost path by their own logs, and an agent that is killed."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Self

import pytest

from reconcilers.bfd.coupling import AFTER_BGP_SECONDS
from speaker.bfd.session_values import SessionKey, Settings
from tests.interop.conftest import NeedRouter
from tests.support.agent import Agent
from tests.support.bfd_process import bfd_in, end_process, processes
from tests.support.netns import Link, linked_namespaces
from tests.support.realtime import prefer, preferring
from tests.support.routers import PeerSettings, RouterSettings
from tests.support.routers.base import IPV4
from tests.support.routers.bird import Bird
from tests.support.routers.frr import Frr
from tests.support.run_delay import run_delay
from tests.support.wait import eventually, settles

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

OURS, THEIRS, PORT = "10.99.0.1", "10.99.0.11", 1790
INTERVAL = 100
DETECTION = 3 * INTERVAL / 1000
PREFIX = "198.51.100.0/24"
HOLD = 90
RESTART = 60
KILLS: Final = int(os.environ.get("BFD_KILLS", "2"))
"""`make bfd-kills`: a hundred."""
GRACE = 0.05
ATTEMPTS = 3
"""Of a measured time."""
MOST_ATTEMPTS = 12
"""With attempts whose path was lost before, as the machine kept the router from sending, and with
attempts in which it stood still for all real-time programs."""
STANDSTILL = 0.02
LOSSY = (
    "table ip lossy {"
    " chain incoming { type filter hook input priority 0; udp dport 3784 drop; };"
    " chain outgoing { type filter hook output priority 0; udp dport 3784 drop; };"
    "}"
)
"""BFD's packets are lost in both directions; BGP's are not: the router reads why its session ends."""


class Lab:
    """An agent with BFD, a router of BIRD, and what both say."""

    def __init__(self, agent: Agent, router: Bird | Frr, link: Link) -> None:
        self.agent, self.router, self.link = agent, router, link

    def up(self) -> None:
        # The agent's own reading, too: it has found the session of the process.
        assert (self.peer["state"], self.peer["bfd"]) == ("Established", "Up")
        if isinstance(self.router, Bird):
            state, interval, _ = self.router.bfd()[OURS]
            assert (state, interval) == ("Up", INTERVAL / 1000)
        assert [route.prefix for route in self.router.paths(IPV4)] == [PREFIX]

    @property
    def peer(self) -> dict[str, Any]:
        (peer,) = self.agent.peers().values()
        return peer

    @property
    def bird(self) -> Bird:
        assert isinstance(self.router, Bird)
        return self.router

    def restart(self) -> None:
        """Kill the agent, and start it again."""
        self.agent.daemon.kill()
        self.agent.start()
        self.agent.wait_ready()
        eventually(self.up, context=self.logs)

    def programs(self) -> list[int]:
        """Return the processes between a lost packet and the line in the router's log."""
        bfd = processes(self.agent.directory.parent / "bfd")
        return [self.agent.daemon.pid, self.router.daemon.pid, *bfd]

    def logs(self) -> str:
        return f"{self.agent.daemon.tail()}\n{self.router.daemon.tail()}"


@contextlib.contextmanager
def lab(
    directory: Path, *, graceful: bool, multiplier: int = 3, kind: str = "bird"
) -> Iterator[Lab]:
    """``multiplier``: after how many intervals the router finds the agent lost.

    FRR has another ``waggle-bfd`` for its end, of which its BGP does not know.
    """
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
        agent.write_objects("configuration.json", configuration(multiplier, graceful=graceful))
        settings = RouterSettings(
            asn=64701,
            router_id=THEIRS,
            addresses=(THEIRS,),
            port=PORT,
            peers=(
                PeerSettings(
                    OURS,
                    64710,
                    port=PORT,
                    families=(IPV4,),
                    hold_time=HOLD,
                    bfd_interval=INTERVAL if kind == "bird" else None,
                    bfd_keeps_routes=graceful,
                    restart_time=RESTART if graceful else None,
                ),
            ),
        )
        router = (Bird if kind == "bird" else Frr)(settings, link.right, directory / "router")
        if kind == "frr":
            bfd = stack.enter_context(bfd_in(link.right))
            bfd.set(SessionKey(OURS, ""), Settings(INTERVAL * 1000, INTERVAL * 1000))
        stack.callback(end_process, directory / "bfd")
        for part in (agent, router):
            part.start()
            stack.callback(part.stop)
        for part in (agent, router):
            part.wait_ready()
        found = Lab(agent, router, link)
        eventually(found.up, context=found.logs)
        yield found


def configuration(multiplier: int, *, graceful: bool) -> dict[str, Any]:
    """Return an FRRConfiguration with a BFD profile."""
    neighbor = {
        "address": THEIRS,
        "asn": 64701,
        "port": PORT,
        "bfdProfile": "quick",
        "enableGracefulRestart": graceful,
        "toAdvertise": {"allowed": {"mode": "all"}},
    }
    profile = {"receiveInterval": INTERVAL, "transmitInterval": INTERVAL}
    router = {"asn": 64710, "id": OURS, "neighbors": [neighbor], "prefixes": [PREFIX]}
    return {
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfiguration",
        "metadata": {"name": "spine", "namespace": "frr-k8s-system"},
        "spec": {
            "bgp": {
                "routers": [router],
                "bfdProfiles": [{"name": "quick", "detectMultiplier": multiplier, **profile}],
            }
        },
    }


class Stalls:
    """How long a thread that wakes each millisecond was kept waiting: the load of the machine.

    Of a real-time thread: a standstill of the machine itself, which is a virtual one; `run_delay` has
    none of it.
    """

    def __init__(self) -> None:
        self.longest = 0.0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        before = time.monotonic()
        while not self._ends.wait(0.001):
            now = time.monotonic()
            self.longest = max(self.longest, now - before - 0.001)
            before = now

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()


@pytest.mark.parametrize("kind", ["bird", "frr"])
def test_a_lost_path_ends_bgp_within_the_detection_time_and_50_ms_by_the_routers_log(
    need_router: NeedRouter, tmp_path: Path, kind: str
) -> None:
    """Each of the losses: nothing is deducted, and the programs are real-time, as on three machines.

    Where that is not permitted the middle one is judged, less the time for which they had to wait.
    """
    need_router(kind)
    if shutil.which("nft") is None:
        pytest.skip("nft is not installed (Debian: nftables)")
    # The router would notice the loss itself after two seconds.
    with lab(tmp_path, graceful=False, multiplier=20, kind=kind) as found:
        took: list[float] = []
        for attempt in range(MOST_ATTEMPTS):
            if len(took) == ATTEMPTS:
                break
            if attempt:
                # Soon after the end of a BGP session a loss is judged twice.
                stays = DETECTION + 2 * AFTER_BGP_SECONDS
                settles(found.up, stays=stays, context=found.logs)
            known = len(found.router.ends(OURS))
            programs = found.programs()
            is_real_time = prefer(*programs)
            with preferring(), Stalls() as stalls:
                delayed = run_delay(*programs)
                before = time.time()
                found.link.right.run("nft", LOSSY)
                lossy = time.time()

                def ended(known: int = known) -> tuple[float, str]:
                    return found.router.ends(OURS)[known]

                at, why = eventually(ended, context=found.logs)
                delayed = run_delay(*programs) - delayed
            found.link.right.run("nft", "delete table ip lossy")
            # Cease / BFD Down (RFC 9384): BIRD 2.0.12 and FRR 8.4 have no name for it.
            assert re.search(r"\b6[./]10\b|BFD", why), why
            assert "BFD session down" not in why, "by its own BFD"
            # The last packet of a router that is not kept waiting came an interval before the loss.
            if at - before <= DETECTION - 1.5 * INTERVAL / 1000:
                pass
            elif not is_real_time:
                took.append(at - lossy - max(stalls.longest, delayed))
            elif stalls.longest < STANDSTILL:
                took.append(at - lossy)
            eventually(found.up, context=found.logs)
        assert len(took) == ATTEMPTS, "the session ends before the detection time"
        judged = max(took) if is_real_time else statistics.median(took)
        assert judged < DETECTION + GRACE


def test_an_agent_that_is_killed_bounces_nothing(need_router: NeedRouter, tmp_path: Path) -> None:
    """With graceful restart: its BFD goes on, its routes stay. BIRD's BFD depends on its BGP.

    BIRD would notice a silence of 0.3 s. Both ends of BFD are real-time programs, the agent is none.
    Where that is not permitted, a busy machine is silent for longer, and BIRD's detection time is 2 s.
    """
    need_router("bird")
    multiplier = 3 if prefer() else 20
    with lab(tmp_path, graceful=True, multiplier=multiplier) as found:
        prefer(found.router.daemon.pid, *processes(tmp_path / "bfd"))
        assert found.bird.bfd()[OURS] == ("Up", INTERVAL / 1000, multiplier * INTERVAL / 1000)
        changes = found.bird.bfd_changes(OURS)
        assert changes, "to Up"
        gone: list[float] = []
        watches = threading.Event()

        def watch() -> None:
            while not watches.wait(0.05):
                if [route.prefix for route in found.router.paths(IPV4)] != [PREFIX]:
                    gone.append(time.time())

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            for _ in range(KILLS):
                found.restart()
            assert found.bird.bfd_changes(OURS) == changes
            if shutil.which("nft") is not None:
                lose_the_path(found)
        finally:
            watches.set()
            thread.join()
        assert not gone, f"BIRD has had no route for a moment\n{found.bird.events()}"


def lose_the_path(found: Lab) -> None:
    """Lose BFD's packets: the C bit of BIRD is clear, so that it may be restarting.

    Both ends keep the routes of the other (RFC 5882 section 4.3; `bfd graceful` of BIRD).
    """
    (session,) = found.agent.ask("/v1/bfd")
    assert session["remoteIndependent"] is False
    # A loss that one end alone has noticed is a second restart for BIRD, which flushes stale routes.
    found.agent.write_objects("configuration.json", configuration(3, graceful=True))

    def alike() -> None:
        assert found.bird.bfd()[OURS] == ("Up", INTERVAL / 1000, DETECTION)

    eventually(alike, context=found.logs)
    ends, changes = len(found.router.ends(OURS)), found.bird.bfd_changes(OURS)
    found.link.right.run("nft", LOSSY)

    def ended() -> None:
        assert found.peer["state"] != "Established"
        assert found.bird.bfd_changes(OURS) > changes

    eventually(ended, context=found.logs)
    found.link.right.run("nft", "delete table ip lossy")
    eventually(found.up, context=found.logs)
    reasons = [why for _, why in found.router.ends(OURS)[ends:]]
    assert not any("Received" in why for why in reasons), (
        "no NOTIFICATION: it would end the restart"
    )
