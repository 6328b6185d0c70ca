"""One router of ours and one of theirs for each cell, many pairs at a time.

What a cell of this kind does is mostly waiting, for a daemon that starts or a timer of the other's;
so these cells are coroutines, a bounded number of which go on together. Each has two namespaces and
routers of its own, so that none sees the others. What a router leaves behind when it goes is read
from the other's table.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.support.netns import Link, linked_namespaces
from tests.support.routers import KINDS, PeerSettings, Router, RouterSettings
from tests.support.routers.base import IPV4, RouterRoute
from tests.support.routers.waggle import Waggle
from tests.support.wait import FACTOR, PATIENCE, NotReadyError

HERE, THERE, BESIDE = "10.98.0.1", "10.98.0.2", "10.98.0.3"
OUR_ASN, THEIR_ASN, MEMBER_ASN = 65001, 65002, 65003
CONFEDERATION = 64999
PORT = 1790
# The second of each is gone after a restart.
OURS = ("192.0.2.0/24", "198.18.1.0/24")
THEIRS = ("198.51.100.0/24", "198.18.101.0/24")

AT_ONCE = 6
"""How many pairs there are at a time: each start costs a core for a while."""
INTERVAL = 0.1

Cell = tuple[str, str]
"""Feature and kind."""
Scenario = Callable[[str, Link, Path], Awaitable[None]]


class LostError(Exception):
    """A route that had to stay was away: nothing that may still become better."""


async def becomes(
    check: Callable[[], object],
    *,
    stays: float = 0.0,
    context: Callable[[], str] | None = None,
) -> None:
    """Wait, while others go on, until ``check`` has passed each time for ``stays`` seconds.

    The arguments are as in `tests.support.wait.settles`.
    """
    within = PATIENCE * FACTOR
    deadline = time.monotonic() + within
    since: float | None = None
    while True:
        try:
            check()
        except (AssertionError, NotReadyError) as failure:
            since = None
            if time.monotonic() >= deadline:
                more = "" if context is None else f"\n{context()}"
                message = f"not within {within:g} s: {failure}{more}"
                raise AssertionError(message) from failure
        else:
            since = time.monotonic() if since is None else since
            if time.monotonic() - since >= stays:
                return
        await asyncio.sleep(INTERVAL)


async def ready(router: Router) -> None:
    """Wait until a router that was started answers."""
    await becomes(router.answers, context=router.daemon.tail)
    router.finish()


@contextlib.asynccontextmanager
async def running(*routers: Router) -> AsyncIterator[None]:
    """Run routers until they are no longer needed."""
    try:
        # From this thread, to which their lives are tied.
        for router in routers:
            router.start()
        for router in routers:
            await ready(router)
        yield
    finally:
        for router in routers:
            await asyncio.to_thread(router.stop)


@dataclasses.dataclass(frozen=True, slots=True)
class Duel:
    """Our router and theirs."""

    ours: Waggle
    theirs: Router

    def advertised_routes(self) -> dict[str, RouterRoute]:
        """Return our routes in their table."""
        return self.theirs.routes(IPV4, HERE)

    def received_routes(self) -> dict[str, RouterRoute]:
        """Return their routes in our table."""
        return self.ours.routes(IPV4, THERE)

    def assert_up(self) -> None:
        """Check the session at both ends."""
        assert self.ours.peers()[THERE].established, self.ours.peers()
        assert self.theirs.peers()[HERE].established, self.theirs.peers()

    def assert_exchanged(self) -> None:
        """Check the session and both tables."""
        self.assert_up()
        assert set(self.advertised_routes()) >= set(OURS), self.advertised_routes()
        assert set(self.received_routes()) == set(THEIRS), self.received_routes()

    def logs(self) -> str:
        """Return the ends of both logs."""
        return f"{self.ours.daemon.tail()}\n{self.theirs.daemon.tail()}"


def router_settings(
    own: str, asn: int, *peers: PeerSettings, confederation: int | None = None
) -> RouterSettings:
    """Return the settings of a router at an IPv4 address."""
    return RouterSettings(asn, own, (own,), peers, PORT, confederation)


@contextlib.asynccontextmanager
async def duel(
    kind: str,
    link: Link,
    directory: Path,
    *,
    confederation: int | None = None,
    **session: Any,  # noqa: ANN401
) -> AsyncIterator[Duel]:
    """Run both until they have exchanged their routes; ``session`` has the settings of both ends.

    Theirs gets only settings that it supports: some are graceful restart helpers without a setting.
    """
    driver = KINDS[kind]
    understood = {name: v for name, v in session.items() if name not in driver.CANNOT}
    ours = PeerSettings(THERE, THEIR_ASN, PORT, families=(IPV4,), passive=False, **session)
    theirs = PeerSettings(HERE, OUR_ASN, PORT, families=(IPV4,), **understood)
    async with meeting(
        kind,
        link,
        directory,
        router_settings(HERE, OUR_ASN, ours, confederation=confederation),
        router_settings(THERE, THEIR_ASN, theirs, confederation=confederation),
    ) as match:
        yield match


@contextlib.asynccontextmanager
async def meeting(
    kind: str, link: Link, directory: Path, ours: RouterSettings, theirs: RouterSettings
) -> AsyncIterator[Duel]:
    """Run two routers until they have exchanged their routes."""
    for namespace, address in ((link.left, HERE), (link.right, THERE)):
        namespace.add_address(f"{address}/24")
    match = Duel(
        Waggle(ours, link.left, directory / "ours"),
        KINDS[kind](theirs, link.right, directory / kind),
    )
    async with running(match.theirs, match.ours):
        match.theirs.announce(*THEIRS)
        match.ours.announce(*OURS)
        await becomes(match.assert_exchanged, stays=0.2, context=match.logs)
        yield match


def play(scenarios: dict[Cell, Scenario], directory: Path) -> dict[Cell, Exception | None]:
    """Play them all; give what went wrong with each, or None."""
    outcomes: dict[Cell, Exception | None] = {}
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(cell: Cell) -> None:
        feature, kind = cell
        async with turns:
            with linked_namespaces() as link:
                try:
                    await scenarios[cell](kind, link, directory / f"{feature}-{kind}")
                # The test of that cell raises it again; the others go on.
                except Exception as error:  # noqa: BLE001
                    outcomes[cell] = error
                else:
                    outcomes[cell] = None

    async def everything() -> None:
        await asyncio.gather(*map(one, scenarios))

    asyncio.run(everything())
    return outcomes
