"""A lab: one agent and four routers of one kind, for each transport one eBGP and one iBGP.

The manifests are in ``lab/``. A lab compares what routers hold with what ``waggle render`` promises
and decides nothing itself.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.agent import Agent
from tests.support.expected_routes import (
    TableRoute,
    actual_table,
    expected_table,
    table_differences,
)
from tests.support.netns import Link, linked_namespaces
from tests.support.routers import KINDS, PeerSettings, Router, RouterSettings
from tests.support.wait import eventually

HERE = Path(__file__).with_name("lab")
PORT = 1790
ASN = 65001
OURS = ("10.99.0.1", "fd00:99::1")

# name of the peer -> its AS, and the last part of its addresses; the transport is in the name.
PEERS = {
    "ebgp-ipv4": (65101, 11),
    "ebgp-ipv6": (4200000102, 12),
    "ibgp-ipv4": (ASN, 13),
    "ibgp-ipv6": (ASN, 14),
}


@dataclass(frozen=True, slots=True)
class Lab:
    """The agent and the routers, by the name of the peer that each is."""

    kind: str
    link: Link
    agent: Agent
    routers: dict[str, Router]

    def assert_promises_kept(self, *names: str) -> None:
        """Check that the routers hold exactly what ``waggle render`` promises them, now."""
        document = self.agent.render()
        (instance,) = document["instances"]
        peers = {peer["name"]: peer for peer in instance["peers"]}
        for name in names or self.routers:
            differences = table_differences(
                self.held(name), expected_table(instance, peers[name], self.own(name))
            )
            assert not differences, f"{name}: {differences}"

    def keeps_promises(self, *names: str) -> None:
        """Wait until the routers hold exactly what is promised."""
        eventually(lambda: self.assert_promises_kept(*names), context=self.logs, interval=0.1)

    def held(self, name: str) -> dict[str, TableRoute]:
        """Return what a router holds from the agent."""
        router = self.routers[name]
        return actual_table(router.all_routes(), internal=router.settings.asn == ASN)

    def own(self, name: str) -> tuple[str, ...]:
        """Return the agent's addresses, that of the session first."""
        return OURS if name.endswith("ipv4") else OURS[::-1]

    def assert_established(self) -> None:
        """Check all sessions, at both ends."""
        ours = self.agent.peers()
        for name, router in self.routers.items():
            (theirs,) = router.peers().values()
            assert theirs.established, (name, theirs)
            assert name in ours
            assert ours[name]["state"] == "Established", (name, ours[name])

    def session_tokens(self) -> dict[str, tuple[str, object]]:
        """Return something that changes when any session is lost and established again."""
        ours = self.agent.peers()
        tokens: dict[str, tuple[str, object]] = {}
        for name, router in self.routers.items():
            (theirs,) = router.peers().values()
            tokens[name] = (theirs.uptime_token, ours[name].get("flaps", 0))
        return tokens

    def logs(self) -> str:
        """Return the ends of all logs."""
        daemons = [self.agent.daemon, *(router.daemon for router in self.routers.values())]
        return "\n".join(daemon.tail() for daemon in daemons)


def router_for(
    kind: str,
    name: str,
    link: Link,
    directory: Path,
    *,
    asn: int | None = None,
    password: str | None = None,
    passive: bool = True,
) -> Router:
    """Make the router that is the peer ``name`` (not started); ``asn`` if it is to be wrong."""
    peer_asn, number = PEERS[name]
    ours = OURS[0] if name.endswith("ipv4") else OURS[1]
    driver = KINDS[kind]
    return driver(
        RouterSettings(
            asn=peer_asn if asn is None else asn,
            router_id=f"10.99.0.{number}",
            addresses=(f"10.99.0.{number}", f"fd00:99::{number}"),
            port=PORT,
            peers=(
                PeerSettings(
                    ours,
                    ASN,
                    port=PORT,
                    passive=passive,
                    password=password,
                    extended_next_hop="extended_next_hop" not in driver.CANNOT and ":" in ours,
                ),
            ),
        ),
        link.right,
        directory / name,
    )


def give_addresses(link: Link) -> None:
    """Give both ends of the cable the addresses that the lab's manifests talk about."""
    link.left.add_address(*(f"{a}/{length}" for a, length in zip(OURS, (24, 64), strict=True)))
    numbers = [number for _, number in PEERS.values()]
    link.right.add_address(*(f"10.99.0.{number}/24" for number in numbers))
    link.right.add_address(*(f"fd00:99::{number}/64" for number in numbers))


@contextlib.contextmanager
def running_lab(
    kind: str,
    directory: Path,
    *names: str,
    password: str | None = None,
    passive: bool = True,
    arguments: Sequence[str] = (),
) -> Iterator[Lab]:
    """Run a lab with the peers ``names``, all by default; nothing need be established yet.

    ``arguments`` are the agent's.
    """
    with linked_namespaces() as link, contextlib.ExitStack() as stack:
        give_addresses(link)
        agent = Agent(link.left, directory / "agent", arguments=arguments)
        for manifest in HERE.iterdir():
            shutil.copy(manifest, agent.manifests)
        routers = {
            name: router_for(kind, name, link, directory, password=password, passive=passive)
            for name in names or PEERS
        }
        parts: list[Agent | Router] = [agent, *routers.values()]
        for part in parts:
            part.start()
            stack.callback(part.stop)
        for part in parts:
            part.wait_ready()
        yield Lab(kind, link, agent, routers)
