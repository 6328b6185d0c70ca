"""Agents and routers that are started by mistake beside a running one: its peer sees none of them.

They have the first one's node, addresses and port, and fewer objects. A session of theirs would end the
first one's at a router with graceful restart, and flush its routes.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.conftest import NeedRouter
from tests.interop.transport_lab import ASN, HERE, OURS, PORT, give_addresses
from tests.support.agent import Agent
from tests.support.netns import Link, linked_namespaces
from tests.support.routers import FAMILIES, KINDS, PeerSettings, Router, RouterSettings
from tests.support.routers.base import Originated
from tests.support.routers.waggle import Waggle
from tests.support.wait import eventually

pytestmark = [
    pytest.mark.interop,
    pytest.mark.netns,
    pytest.mark.program,
]

REFUSED = {
    "--api-socket": "another agent listens on",
    "--state-directory": "another agent uses",
    "--record-file": "another process records to it",
    "--http-address": "address already in use",
}
"""What of the first agent's a second one is given, and why it is refused."""


class Node:
    """The first agent, with what others may be given."""

    def __init__(self, link: Link, directory: Path, port: int) -> None:
        self.link = link
        self.directory = directory
        self.taken = {
            "--api-socket": str(directory / "first" / "api"),
            "--state-directory": str(directory / "state"),
            "--record-file": str(directory / "recording"),
            "--http-address": "127.0.0.1:9877",
        }
        arguments = [
            part
            for flag, value in self.taken.items()
            if flag != "--api-socket"
            for part in (flag, value)
        ]
        self.agent = Agent(link.left, directory / "first", arguments=arguments)
        for manifest in HERE.iterdir():
            shutil.copy(manifest, self.agent.manifests)
        text = (HERE / "bgp.yaml").read_text()
        text = text.replace(f"localASN: {ASN}", f"localASN: {ASN}\n      localPort: {port}")
        self.configuration = text.replace(
            "  timers:", "  gracefulRestart: {enabled: true, restartTimeSeconds: 300}\n  timers:"
        )
        self.agent.write("bgp.yaml", self.configuration)

    def mistaken(self, number: int, flag: str | None) -> Agent:
        """Make an agent that has no Services, and the first one's value of a flag."""
        arguments = () if flag is None else (flag, self.taken[flag])
        agent = Agent(self.link.left, self.directory / f"second-{number}", arguments=arguments)
        agent.write("bgp.yaml", self.configuration)
        return agent


@contextlib.contextmanager
def running(kind: str, directory: Path, port: int = PORT) -> Iterator[tuple[Node, Router]]:
    with linked_namespaces() as link, contextlib.ExitStack() as stack:
        give_addresses(link)
        node = Node(link, directory, port)
        peer = PeerSettings(OURS[0], ASN, port=port, passive=False, restart_time=300)
        addresses = ("10.99.0.11", "fd00:99::11")
        settings = RouterSettings(65101, addresses[0], addresses, (peer,), PORT)
        router = KINDS[kind](settings, link.right, directory / kind)
        for part in (node.agent, router):
            part.start()
            stack.callback(part.stop)
        yield node, router


def has_whole_table(router: Router) -> bool:
    """Return whether a router has read the End-of-RIB of each family, by its log."""
    log = router.directory / ("bird.log" if router.kind == "bird" else "log")
    ends = re.findall("Got END-OF-RIB|rcvd End-of-RIB", log.read_text(errors="replace"))
    return len(ends) >= len(FAMILIES)


@pytest.mark.parametrize("kind", ["bird", "frr"])
def test_ten_mistaken_starts_send_the_router_nothing(
    kind: str, need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router(kind)
    with running(kind, tmp_path) as (node, router), contextlib.ExitStack() as stack:

        def complete() -> None:
            (session,) = router.peers().values()
            assert session.established
            routes = router.routes("ipv4-unicast", OURS[0])
            assert "198.51.100.10/32" in routes
            assert node.agent.peers()["ebgp-ipv4"]["state"] == "Established"
            assert has_whole_table(router)

        eventually(complete, context=node.agent.daemon.tail)
        before = (router.peers(), router.message_counts(OURS[0]).updates)
        table = router.routes("ipv4-unicast", OURS[0])
        others = {
            number: (flag, node.mistaken(number, flag))
            for number, flag in enumerate([*REFUSED, None] * 2)
        }
        for _, agent in others.values():
            agent.start()
            stack.callback(agent.stop)
        for flag, agent in others.values():
            if flag is not None:
                assert agent.daemon.wait(60) == 1
                assert REFUSED[flag] in agent.daemon.tail()
                continue

            def waits(agent: Agent = agent) -> None:
                item = agent.peers()["ebgp-ipv4"]
                assert "another process listens there" in item.get("reason", ""), item

            eventually(waits, context=agent.daemon.tail)
            agent.daemon.kill()
        assert (router.peers(), router.message_counts(OURS[0]).updates) == before
        assert router.routes("ipv4-unicast", OURS[0]) == table
        assert node.agent.peers()["ebgp-ipv4"]["flaps"] == 0

        # The kernel releases everything of an agent that is killed: the next one takes over.
        node.agent.daemon.signal(signal.SIGKILL)
        node.agent.daemon.wait(60)
        node.agent.start()
        eventually(complete, context=node.agent.daemon.tail)


def test_an_agent_that_may_not_bind_the_port_of_the_first_one_sends_nothing(
    need_router: NeedRouter, tmp_path: Path
) -> None:
    """The kernel refuses it the port before it looks who listens there."""
    need_router("bird")
    with running("bird", tmp_path, port=179) as (node, router):

        def complete() -> None:
            (session,) = router.peers().values()
            assert session.established
            assert has_whole_table(router)

        eventually(complete, context=node.agent.daemon.tail)
        before = (router.peers(), router.message_counts(OURS[0]).updates)
        flaps = node.agent.peers()["ebgp-ipv4"]["flaps"]
        plain = node.mistaken(1, None)
        no_port = "-net_bind_service"
        plain.daemon.command[:0] = ["setpriv", "--inh-caps", no_port, "--bounding-set", no_port]
        plain.start()
        try:

            def waits() -> None:
                item = plain.peers()["ebgp-ipv4"]
                assert "another process listens there" in item.get("reason", ""), item

            eventually(waits, context=plain.daemon.tail)
            assert node.agent.peers()["ebgp-ipv4"]["flaps"] == flaps
            assert (router.peers(), router.message_counts(OURS[0]).updates) == before
            # Without the first one the port is free: no session is in danger.
            node.agent.stop()
            eventually(complete, context=plain.daemon.tail)
        finally:
            plain.stop()


@pytest.mark.parametrize("kind", ["bird", "frr"])
def test_ten_mistaken_starts_of_waggle_router_send_its_neighbor_nothing(
    kind: str, need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router(kind)
    with linked_namespaces() as link, contextlib.ExitStack() as stack:
        give_addresses(link)
        theirs = "10.99.0.11"
        ours = PeerSettings(OURS[0], ASN, port=PORT, passive=True, restart_time=300)
        router = KINDS[kind](
            RouterSettings(65101, theirs, (theirs,), (ours,), PORT), link.right, tmp_path / kind
        )
        neighbor = PeerSettings(theirs, 65101, port=PORT, passive=False, restart_time=300)
        settings = RouterSettings(ASN, OURS[0], (OURS[0],), (neighbor,), PORT)

        def waggle(name: str) -> Waggle:
            return Waggle(settings, link.left, tmp_path / name)

        first = waggle("first")
        first.announced = {"198.51.100.0/24": Originated()}
        for part in (router, first):
            part.start()
            stack.callback(part.stop)

        def complete() -> None:
            (session,) = router.peers().values()
            assert session.established
            assert "198.51.100.0/24" in router.routes("ipv4-unicast", OURS[0])
            assert has_whole_table(router)

        eventually(complete, context=first.daemon.tail)
        before = (router.peers(), router.message_counts(OURS[0]).updates)
        others = [waggle(f"second-{number}") for number in range(10)]
        for other in others:
            other.start()
            stack.callback(other.stop)
        for other in others:

            def waits(other: Waggle = other) -> None:
                (session,) = other.ask("peers")
                assert "another process listens there" in session["reason"], session

            eventually(waits, context=other.daemon.tail)
        same = waggle("first")
        same.daemon.start()
        assert same.daemon.wait(60) == 1
        assert "another router listens on" in same.daemon.tail()
        assert (router.peers(), router.message_counts(OURS[0]).updates) == before
        assert router.routes("ipv4-unicast", OURS[0])
        # An agent that has another port works beside all of them.
        agent = Agent(link.left, tmp_path / "agent")
        agent.start()
        stack.callback(agent.stop)
        agent.wait_ready()
        complete()
