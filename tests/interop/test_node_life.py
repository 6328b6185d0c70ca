"""A node's life: FRRConfigurations that come, change, conflict and go, and an agent that is killed.

A minute of it in `make test`; `make soak` gives it ten, and ``SOAK_SECONDS`` another time.
``SOAK_SEED`` repeats a life, whose seed is in each message.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.interop.conftest import NeedRouter
from tests.support.agent import Agent
from tests.support.netns import linked_namespaces
from tests.support.routers import KINDS, PeerSettings, Router, RouterSettings
from tests.support.run_delay import run_delay
from tests.support.wait import NotReadyError, eventually

SECONDS = float(os.environ.get("SOAK_SECONDS", "60"))
SEED = int(os.environ.get("SOAK_SEED", "0"))
OBJECTS = 50
LATE_SECONDS = 1.0
"""For this long the router may have a route that no object gives, or lack a new route.

Without the time for which agent and router waited for a processor (`Life.clock`).
"""
OURS, THEIRS, ASN, PEER_ASN, PORT = "10.97.0.1", "10.97.0.11", 64900, 64951, 1790

pytestmark = [
    pytest.mark.interop,
    pytest.mark.netns,
    pytest.mark.program,
    pytest.mark.timeout(SECONDS + 600),
]


def configuration(number: int, generation: int, *, conflicts: bool) -> dict[str, Any]:
    """Return an object that gives one prefix; a conflicting object is younger than all others."""
    prefix = prefix_of(number, generation)
    neighbor = {
        "address": THEIRS,
        "asn": PEER_ASN,
        "port": PORT + 1 if conflicts else PORT,
        "connectTime": "1s",
        "enableGracefulRestart": True,
        "toAdvertise": {"allowed": {"prefixes": [prefix]}},
    }
    created = f"2026-0{2 if conflicts else 1}-01T00:00:{number:02d}Z"
    return {
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfiguration",
        "metadata": {
            "name": f"o{number}",
            "namespace": "frr-k8s-system",
            "creationTimestamp": created,
        },
        "spec": {"bgp": {"routers": [{"asn": ASN, "prefixes": [prefix], "neighbors": [neighbor]}]}},
    }


def prefix_of(number: int, generation: int) -> str:
    return f"198.{18 + generation % 2}.{number}.0/24"


class Life:
    """The objects, what they give the router, and since when."""

    def __init__(self, agent: Agent, router: Router, random: Random) -> None:
        self.agent, self.router, self.random = agent, router, random
        self.given: dict[int, str | None] = {}
        """By object: its prefix; None where it conflicts with the others."""
        self._waited: dict[int, float] = {}
        """Seconds by process, of earlier agents, too."""
        self.states: list[tuple[float, frozenset[str]]] = [(self.clock(), frozenset())]
        """What was wanted since when."""
        self.killed_at = self.up_since = self.clock()
        self.kills = 0

    def clock(self, at: float | None = None) -> float:
        """Return a time, now's by default, without all waits of agent and router for a processor.

        Of the waits that have ended: a program that has answered is in none from before.
        """
        at = time.monotonic() if at is None else at
        for daemon in (self.agent.daemon, self.router.daemon):
            if daemon.running:
                self._waited[daemon.pid] = run_delay(daemon.pid)
        return at - sum(self._waited.values())

    def change(self) -> None:
        """Add, change or delete one object."""
        number = self.random.randrange(1, OBJECTS)
        if number in self.given and self.random.random() < 0.4:
            self.agent.remove(f"o{number}.json")
            del self.given[number]
        else:
            generation, conflicts = self.random.randrange(2), self.random.random() < 0.2
            self.put(number, generation, conflicts=conflicts)
        self._note()

    def put(self, number: int, generation: int, *, conflicts: bool) -> None:
        one = configuration(number, generation, conflicts=conflicts)
        self.agent.write_objects(f"o{number}.json", one)
        self.given[number] = None if conflicts else prefix_of(number, generation)

    def _note(self) -> None:
        wanted = frozenset(prefix for prefix in self.given.values() if prefix is not None)
        self.states.append((self.clock(), wanted))

    def kill(self) -> None:
        """Kill the agent, change an object while it is away, and start it again."""
        self.kills += 1
        self.killed_at = self.clock()
        self.agent.daemon.kill()
        self.change()
        self.agent.start()
        self.agent.wait_ready()
        eventually(self._check_up, context=self.agent.daemon.tail)
        self.up_since = self.clock()

    def _check_up(self) -> None:
        (session,) = self.router.peers().values()
        assert session.established

    def check(self) -> None:
        """Compare the router's table with what was wanted of late."""
        with contextlib.suppress(NotReadyError):
            at = time.monotonic()
            table = set(self.router.routes("ipv4-unicast", OURS))
            self.agent.peers()
            now = self.clock(at)
            is_fresh = now - self.up_since < LATE_SECONDS
            since = (self.killed_at if is_fresh else now) - LATE_SECONDS
            recent = [wanted for at, wanted in self.states if at >= since]
            before = [wanted for at, wanted in self.states if at < since]
            states = [*before[-1:], *recent]
            missing = frozenset.intersection(*states) - table
            assert not missing, f"seed {SEED}: {sorted(missing)} are missing"
            extra = table - frozenset.union(*states)
            assert not extra, f"seed {SEED}: nothing gives {sorted(extra)}"
        self.states = [*self.states[-200:]]


def test_a_life(need_router: NeedRouter, tmp_path: Path) -> None:
    need_router("bird")
    with linked_namespaces() as link, contextlib.ExitStack() as stack:
        link.left.add_address(f"{OURS}/24")
        link.right.add_address(f"{THEIRS}/24")
        arguments = (
            *("--disable-cell", "cilium", "--enable-cell", "frrk8s", "--on-conflict", "isolate"),
            *("--state-directory", str(tmp_path / "state")),
        )
        agent = Agent(link.left, tmp_path / "agent", arguments=arguments)
        peer = PeerSettings(OURS, ASN, port=PORT, restart_time=300)
        settings = RouterSettings(PEER_ASN, THEIRS, (THEIRS,), (peer,), PORT)
        router = KINDS["bird"](settings, link.right, tmp_path / "bird")
        life = Life(agent, router, Random(SEED))  # noqa: S311  test data
        life.put(0, 0, conflicts=False)
        for part in (router, agent):
            part.start()
            stack.callback(part.stop)
            part.wait_ready()
        eventually(lambda: _assert_has(router, prefix_of(0, 0)))
        life.states = [(life.clock() - 10, frozenset({prefix_of(0, 0)}))]
        end = time.monotonic() + SECONDS
        changes = 0
        while time.monotonic() < end or changes <= SECONDS / 3 or not life.kills:
            if life.random.random() < 0.03:
                life.kill()
            else:
                life.change()
            changes += 1
            pause = time.monotonic() + life.random.choice((0.05, 0.2, 1.5))
            while time.monotonic() < pause:
                life.check()
                time.sleep(0.05)


def _assert_has(router: Router, prefix: str) -> None:
    assert prefix in router.routes("ipv4-unicast", OURS)
