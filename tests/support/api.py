"""An agent's local API with made-up answers, in a thread of its own: for tests of the command line.

The server is the real one; only its data is invented.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import structlog

from cells.api.model import (
    BfdItem,
    ClearedItem,
    ExplainItem,
    HostItem,
    PasswordItem,
    PeerCountItem,
    ReceivedExplainItem,
    RouteItem,
    StatusItem,
    SupportItem,
)
from cells.api.resource import ApiResource, ApiStream, BadRequestError, NotFoundError
from cells.declarations import API
from cells.hive import Cell, Wiring, load
from cells.hive.cell import Provider
from cells.hive.hive import Hive
from cells.serve.agent_bfd import AgentBfd
from cells.serve.clear import Clear, ClearPeers
from cells.serve.explain import AgentExplanations
from cells.serve.host import AgentHost
from cells.serve.intent import AgentIntent
from cells.serve.missing_peers import MissingPeers
from cells.serve.passwords import AgentPasswords, CandidatePasswords
from cells.serve.received import AgentReceivedExplanations
from cells.serve.routing import SpeakerRouting
from cells.serve.status import AgentStatus
from tests.support.cells import rewired, supply


def session_item(**members: object) -> dict[str, Any]:
    """Return a session as ``/v1/peers`` has it; members are named as in Python."""
    return {
        re.sub(r"_(asn|id)\b|_([a-z])", lambda m: (m[1] or m[2]).upper(), name): value
        for name, value in members.items()
    }


def _sum(families: Sequence[dict[str, Any]] | None) -> int | None:
    return None if families is None else sum(family["routes"] for family in families)


class MadeUp:
    """What the paths of an agent read, as a test has chosen it."""

    def __init__(
        self,
        peers: Sequence[dict[str, Any]] = (),
        routes: Sequence[RouteItem] = (),
        explained: Sequence[ExplainItem] = (),
        status: StatusItem | None = None,
        missing: Sequence[str] = (),
        explained_received: Sequence[ReceivedExplainItem] = (),
        bfd: Sequence[BfdItem] = (),
        bfd_problems: Sequence[str] = (),
        host: HostItem | None = None,
        instances: Sequence[str] = (),
    ) -> None:
        """``instances``: instances without peers."""
        self._instances = instances
        self._host = host or HostItem(node="n", kernel="6.1", supports=SupportItem())
        self._bfd, self._bfd_problems = bfd, bfd_problems
        self._explained_received = explained_received
        self._peers = peers
        self._routes = routes
        self._explained = explained
        self._missing = missing
        self._status = status or StatusItem(node="n", ready=True, health="ok", reporting="no")

    def item(self) -> StatusItem:
        """Return how the agent is."""
        return self._status

    def host(self) -> HostItem:
        """Return how the host is."""
        return self._host

    def reasons(self, *, empty: bool) -> list[str]:
        """Return the reasons, whether there are peers or not."""
        del empty
        return list(self._missing)

    def bfd_sessions(self, peer: str | None, instance: str | None) -> list[BfdItem]:
        """Return the BFD sessions that match."""
        return [
            item
            for item in self._bfd
            if peer in (None, item.peer, item.address) and instance in (None, item.instance)
        ]

    def why_no_bfd(self) -> str:
        """Return why there may be no BFD session."""
        return "no peer has BFD settings"

    def bfd_problems(self) -> list[str]:
        """Return what is wrong with the BFD process."""
        return list(self._bfd_problems)

    def peers(self, *, peer: str | None, instance: str | None) -> list[dict[str, Any]]:
        """Return the peers that match."""
        return [
            item
            for item in self._peers
            if peer in (None, item["name"], item.get("address"))
            and instance in (None, item["instance"])
        ]

    def peer_counts(self) -> list[PeerCountItem]:
        """Return the counts of the peers."""
        return [
            PeerCountItem(
                node=item["node"],
                instance=item["instance"],
                name=item["name"],
                routes_received=_sum(item.get("received")),
                routes_advertised=_sum(item.get("advertised")),
                updates_received=item.get("updatesReceived", 0),
                updates_sent=item.get("updatesSent", 0),
            )
            for item in self._peers
        ]

    def routes(
        self,
        table: str,
        *,
        family: str | None,
        peer: str | None,
        instance: str | None,
        prefix: str | None,
    ) -> Iterator[Sequence[RouteItem]]:
        """Return the routes that match, whatever the table; a prefix as text."""
        assert table in ("available", "advertised", "received")
        instances = {*self._instances, *(item["instance"] for item in self._peers)}
        instances |= {item.instance for item in self._routes}
        if instance is not None and instance not in instances:
            raise NotFoundError.of_name("instance", instance, instances)
        known = {item["name"] for item in self._peers}
        if peer is not None and peer not in known:
            raise NotFoundError.of_name("peer", peer, known)
        chosen = [
            item
            for item in self._routes
            if family in (None, item.family)
            and prefix in (None, item.prefix)
            and peer in (None, item.peer)
            and instance in (None, item.instance)
        ]
        return iter([chosen])

    def explain(
        self, target: str | None, *, peer: str | None, instance: str | None
    ) -> Iterator[Sequence[ExplainItem]]:
        """Return what was chosen for a prefix, or for everything."""
        if target == "not/a/target":
            raise BadRequestError(f"{target} is no target")
        chosen = [
            item
            for item in self._explained
            if target in (None, item.prefix)
            and peer in (None, item.peer)
            and instance in (None, item.instance)
        ]
        if not chosen:
            raise NotFoundError(f"nothing that node n could advertise contains {target}")
        return iter([chosen])

    def explain_received(
        self, prefix: str, *, peer: str | None, instance: str | None
    ) -> Iterator[Sequence[ReceivedExplainItem]]:
        """Return what was chosen for a prefix."""
        chosen = [
            item
            for item in self._explained_received
            if prefix == item.prefix
            and peer in (None, item.peer)
            and instance in (None, item.instance)
        ]
        if not chosen:
            raise NotFoundError(f"no peer is called {peer}")
        return iter([chosen])

    async def clear(self, body: Clear) -> list[ClearedItem]:
        """Return what was asked for, done for the peer tor-1."""
        done = body.peer == "tor-1"
        message = f"soft {body.soft}"
        item = ClearedItem(node="n", instance="i", name=body.peer, done=done, message=message)
        return [item]

    async def compare(self, body: CandidatePasswords) -> list[PasswordItem]:
        """Return that no password is that of its peer."""
        return [
            PasswordItem(node="n", instance=given.instance, peer=given.peer, equal=False)
            for given in body.candidates
        ]

    def intent(self) -> Iterator[Sequence[dict[str, Any]]]:
        """Return the intent of a node without any."""
        return iter([[{"node": "n"}]])


def api_cell(made_up: MadeUp) -> Cell:
    """Return the cell of the local API with made-up answers."""
    paths = (
        AgentStatus,
        AgentHost,
        SpeakerRouting,
        MissingPeers,
        AgentBfd,
        AgentExplanations,
        AgentReceivedExplanations,
        AgentIntent,
        ClearPeers,
        AgentPasswords,
    )
    return rewired(API, private=tuple(Provider(lambda: made_up, path) for path in paths))


@contextmanager
def serving(path: Path, made_up: MadeUp, *parts: ApiStream | ApiResource) -> Iterator[None]:
    """Answer on a socket while the block runs."""
    supplied = tuple(supply(part) for part in parts)
    cells = (
        Cell(name="speaker", description="Speaks BGP.", wiring=Wiring(contributes=supplied)),
        api_cell(made_up),
    )
    hive = Hive(cells, load(cells, flags={"--api-socket": str(path)}))
    hive.health.scope("speaker").ok("all is well")
    ready = threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def run() -> None:
        loops.append(asyncio.get_running_loop())
        await hive.run(ready.set)

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    assert ready.wait(60)
    try:
        yield
    finally:
        loops[0].call_soon_threadsafe(hive.shutdown)
        thread.join(60)
        structlog.reset_defaults()
