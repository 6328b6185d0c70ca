"""The page of a made-up agent on loopback, in a thread of its own. Only its data is invented."""

from __future__ import annotations

import asyncio
import shutil
import ssl
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, cast

from cells.api.history import FieldChangeItem, HistoryItem
from cells.api.model import (
    ExplainItem,
    OriginItem,
    ProcessItem,
    ReconcilerItem,
    RouteItem,
    StatusItem,
)
from cells.api.resource import ApiResource, ApiStream
from cells.history.api import history_resource
from cells.history.log import HistoryLog
from cells.hive import HealthTree
from cells.page.access import Access
from cells.page.files import files
from cells.page.listener import BoundedListener
from cells.serve.agent_resources import agent_resources
from cells.serve.handlers import Listener
from tests.support.api import MadeUp
from tests.support.background_loop import BackgroundLoop

CHROMIUM: Final = shutil.which("chromium")
"""Installed by tests/support/install-chromium."""
HOSTILE: Final = "<img src=x onerror=\"document.title='owned'\">\x1b[2J"
NOW: Final = datetime(2026, 11, 2, 9, 30, 12, 345_000, UTC)
"""The time of its data."""


def ago(**time: float) -> datetime:
    """Return a time in the past."""
    return NOW - timedelta(**time)


def _session(
    name: str, address: str, state: str = "Established", **members: object
) -> dict[str, Any]:
    routes = {"family": "ipv4-unicast", "routes": 12, "accepted": 3}
    counts = {"received": [routes | {"routes": 3}], "advertised": [routes]}
    return {
        "node": "worker-1",
        "instance": "main",
        "name": name,
        "address": address,
        "peerASN": 65000,
        "state": state,
        "sinceTime": ago(hours=5, minutes=12),
        "families": ["ipv4-unicast"],
        "updatesReceived": 42,
        "updatesSent": 17,
        **(counts if state == "Established" else {}),
        **members,
    }


WEB: Final = OriginItem(kind="Service", namespace="shop", name="web")
RULE: Final = OriginItem(kind="CiliumBGPAdvertisement", name="services")


def made_up(hostile: str = "") -> MadeUp:
    """Return an agent with a session that is down; ``hostile`` is in texts of peers and objects."""
    peers = [
        _session("tor-1", "192.0.2.1", bfd="Up"),
        _session("tor-2", "192.0.2.2", flaps=2),
        _session(
            f"tor-3{hostile}", "2001:db8::3", "Active", reason=f"connection refused{hostile}",
            sinceTime=ago(minutes=4), peerASN=65003, flaps=1,
        ),
    ]  # fmt: skip
    routes = [
        RouteItem(
            node="worker-1",
            instance="main",
            peer=peer,
            family="ipv4-unicast",
            prefix=f"198.51.100.{number}/32",
            communities=["65000:100"],
            med=10,
            status="advertised",
            origins=[OriginItem(kind="Service", namespace="shop", name=f"web{hostile}")],
            since_time=ago(minutes=number),
        )
        for number in range(10, 16)
        for peer in ("tor-1", "tor-2")
    ]
    explained = [
        ExplainItem(
            node="worker-1",
            instance="main",
            peer=peer,
            object=WEB,
            family="ipv4-unicast",
            prefix="198.51.100.10/32",
            advertised=advertised,
            reason="Advertised" if advertised else "SessionDown",
            message=None if advertised else f"the session is Active: connection refused{hostile}",
            rule=RULE,
        )
        for peer, advertised in (("tor-1", True), ("tor-2", True), ("tor-3", False))
    ]
    status = StatusItem(node="worker-1", ready=True, health="degraded", reporting="on", peers=peers)
    return MadeUp(peers, routes, explained, status)


def history(hostile: str = "") -> HistoryLog:
    """Return the changes of the made-up agent."""
    log = HistoryLog("worker-1", 100)
    causes = ("Service/shop/web", "CiliumBGPAdvertisement/services")
    for minutes, kind, name, change, members in (
        (312, "Agent", "start", "OCCURRED", {"message": "read: 3 Node, 14 Service, 12 Route"}),
        (9, "Service", "shop/web", "MODIFIED", {"changes": (
            FieldChangeItem(field="spec.loadBalancerIP", old="198.51.100.9", new="198.51.100.10"),
        )}),
        (9, "Route", "198.51.100.10/32", "ADDED", {"causes": causes, "changes": (
            FieldChangeItem(field="med", new="10"),
        )}),
        (9, "Route", "198.51.100.9/32", "DELETED", {"causes": causes}),
        (4, "Session", "main/tor-3", "MODIFIED", {"address": "2001:db8::3", "changes": (
            FieldChangeItem(field="state", old="Established", new="Idle"),
        ), "message": f"hold timer expired{hostile}"}),
        (0, "Session", "main/tor-3", "OCCURRED", {
            "message": "not Established: connection refused", "count": 17,
        }),
    ):  # fmt: skip
        item: Any = {"event_time": ago(minutes=minutes), "type": change, "kind": kind, "name": name}
        log.add(HistoryItem(**item, **cast("dict[str, Any]", members)))
    return log


def resources(hostile: str = "", log: HistoryLog | None = None) -> list[ApiResource]:
    """Return the paths of the made-up agent."""
    agent: Any = made_up(hostile)
    health = HealthTree()
    for name in ("apply", "intent", "report", "api", "history/follow"):
        health.scope(name).ok("running")
    health.scope("speaker").scope("main").scope("tor-3").degraded(f"connection refused{hostile}")
    process = ProcessItem(
        node="worker-1",
        version="0.1.0",
        pid=1,
        start_time=ago(hours=5, minutes=12),
        cpu_seconds=38.2,
        resident_octets=87_400_000,
    )
    reconcilers = [
        ReconcilerItem(
            name=name, order=10 * order, summary=summary, target="speaker", tables=[], objects=objects,
            errors=0, waiting=0, drifted=0, last_run_time=ago(minutes=9), duration_seconds=0.0004,
        )
        for order, (name, summary, objects) in enumerate((
            ("instance", "BGP instances: AS, router ID, VRF, listening port", 1),
            ("route-set", "route sets: the prefixes and attributes that peers are advertised", 2),
            ("peer", "peers: session settings, password, families", 3),
        ), 1)
    ]  # fmt: skip
    composition: Any = None
    return [
        *agent_resources(
            agent, agent, agent, agent, agent, agent, agent, agent, health, composition
        ),
        history_resource(history(hostile) if log is None else log),
        ApiResource(path="/v1/process", kind="ProcessList", read=lambda _: [process]),
        ApiResource(path="/v1/reconcilers", kind="ReconcilerList", read=lambda _: reconcilers),
    ]


class Page(NamedTuple):
    """A page that is served."""

    port: int
    bounds: BoundedListener
    change: Callable[..., None]
    """Send each page new revisions; without any, as a stream that names no part."""

    @property
    def url(self) -> str:
        """The address for a browser."""
        return f"http://127.0.0.1:{self.port}/"


@contextmanager
def page(
    paths: Sequence[ApiResource] = (),
    *,
    token: bytes | None = None,
    tls: ssl.SSLContext | None = None,
    local: bool = True,
) -> Iterator[Page]:
    """Serve the page on loopback while the block runs."""
    following: set[asyncio.Queue[dict[str, int]]] = set()

    async def follow() -> AsyncGenerator[Sequence[Any]]:
        events: asyncio.Queue[dict[str, int]] = asyncio.Queue()
        following.add(events)
        yield [{"sessions": 0}]
        while True:
            yield [await events.get()]

    async def send(revisions: dict[str, int]) -> None:
        for events in following:
            events.put_nowait(revisions)

    def change(**revisions: int) -> None:
        loop.do(send(revisions or {"sessions": 1}))

    stream = ApiStream(path="/v1/live", read=lambda _: follow())
    bounds = BoundedListener({stream.path})
    access = Access(None if token is None else lambda: token, secure=tls is not None, local=local)
    middlewares = (bounds.once, access.middleware, bounds.admitted)
    listener = Listener(paths, [stream], (), (), files(), middlewares=middlewares)

    async def start() -> tuple[str, int]:
        return await bounds.listen(await listener.protocol(), "127.0.0.1", 0, tls)

    async def stop() -> None:
        await bounds.close()
        await listener.close()

    with BackgroundLoop("page") as loop:
        _, port = loop.do(start())
        try:
            yield Page(port, bounds, change)
        finally:
            loop.do(stop())
