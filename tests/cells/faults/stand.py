"""An agent, the API server that it reads, and a router that is its peer: all within one loop.

The API server follows a script, the router is the speaker library, listening on loopback. Times of
the source are shortened; what is waited for is a condition. Never looks inside the agent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cells.hive import Level, load
from cells.hive.hive import Hive
from cells.report import cell as report
from speaker.api import InstanceConfig, PeerConfig, PeerStatus
from speaker.nlri import IPV4_UNICAST
from speaker.server import Speaker
from tests.cells.hurry import hurry
from tests.reconcilers.build import advertisement, cluster_config, node, peer, peer_config, service
from tests.support.apiserver import ApiServer, Object
from tests.support.wait import until
from waggle_agent.__main__ import CELLS

NODE = "n1"
PODS = "10.244.0.0/24"
AGENT, ROUTER = "127.0.0.1", "127.0.0.2"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the agents of a test try again, and report, within its time."""
    hurry(monkeypatch)
    monkeypatch.setattr(report, "SETTLE_SECONDS", 0.1)


@dataclass(slots=True)
class Stand:
    """All parts. Routes are the agent's routes at the router."""

    server: ApiServer
    router: Speaker
    directory: Path
    hive: Hive | None = None
    task: asyncio.Task[None] | None = None

    @property
    def session(self) -> PeerStatus:
        """The router's session with the agent."""
        return self.router.peers()[0]

    def routes(self) -> set[str]:
        """Return what the router has."""
        views = self.router.routes_received("router", "agent", IPV4_UNICAST)
        return {view.prefix for view in views}

    async def has(self, *prefixes: str) -> None:
        """Wait until the router has exactly these."""
        with suppress(AssertionError):
            await until(lambda: self.session.established and self.routes() == set(prefixes))
        assert self.session.established, self.session
        assert self.routes() == set(prefixes)

    def put(self, kind: str, value: Object, **metadata: Any) -> Object:  # noqa: ANN401
        """Write an object into the API server."""
        value = {**value, "metadata": {**value["metadata"], **metadata}}
        return self.server.put({"kind": kind, **value})

    def service(self, name: str, address: str) -> None:
        """Write a Service with an address."""
        self.put("Service", service(name, address), namespace="shop")

    def levels(self) -> dict[str, tuple[Level, str]]:
        """Return level and message of each health scope."""
        assert self.hive is not None
        return {"/".join(s.path): (s.level, s.message) for s in self.hive.health.report()}

    def message(self, name: str) -> str:
        """Return the message of a health scope; empty without a report."""
        return self.levels().get(name, (Level.OK, ""))[1]

    async def start_agent(self, **flags: str) -> None:
        """Run the agent."""
        given: dict[str, Any] = {
            "--kubeconfig": str(self.server.kubeconfig(self.directory / "kubeconfig")),
            "--node-name": NODE,
            "disable_cell": ["logging", "api"],
            **{f"--{name.replace('_', '-')}": value for name, value in flags.items()},
        }
        self.hive = Hive(CELLS, load(CELLS, flags=given))
        started = asyncio.Event()
        self.task = asyncio.create_task(self.hive.run(started.set))
        await started.wait()

    async def stop_agent(self) -> None:
        """End it in order."""
        assert self.hive is not None
        assert self.task is not None
        self.hive.shutdown()
        await self.task
        self.hive = self.task = None


def fill(server: ApiServer, port: int, **config: Any) -> None:  # noqa: ANN401
    """Add a node and a peer, the router, with an advertisement of pod networks and Services."""
    objects = {
        "Node": node(NODE),
        "CiliumBGPClusterConfig": cluster_config(peers=[peer(peerAddress=ROUTER)]),
        "CiliumBGPPeerConfig": peer_config(
            transport={"peerPort": port}, timers={"connectRetryTimeSeconds": 1}, **config
        ),
        "CiliumBGPAdvertisement": advertisement(),
    }
    for kind, value in objects.items():
        server.put({"kind": kind, **value})


@asynccontextmanager
async def stand(directory: Path, **config: Any) -> AsyncIterator[Stand]:  # noqa: ANN401
    """Make all parts; the agent is not started. ``config`` is of the PeerConfig's spec."""
    async with Speaker() as router, ApiServer() as server:
        router.set_instance(
            InstanceConfig(
                name="router", local_asn=65010, router_id="192.0.2.9", listen=((ROUTER, 0),)
            )
        )
        await until(lambda: bool(router.instances()[0].listening))
        router.set_peer(
            "router",
            PeerConfig(
                name="agent",
                address=AGENT,
                peer_asn=65001,
                passive=True,
                idle_hold_time=0,
                import_="all",
            ),
        )
        fill(server, router.instances()[0].listening[0][1], **config)
        made = Stand(server, router, directory)
        try:
            yield made
        finally:
            if made.task is not None:
                await made.stop_agent()


def run(directory: Path, scenario: Callable[[Stand], Awaitable[None]], **config: Any) -> None:  # noqa: ANN401
    """Run a scenario on a stand whose agent is Established and advertises the pod network."""

    async def whole() -> None:
        async with asyncio.timeout(120), stand(directory, **config) as it:
            await it.start_agent()
            await it.has(PODS)
            await scenario(it)

    asyncio.run(whole())
