"""F06 in virtual time: how often an agent looks for kinds that are not installed."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from resources.kind import Kind
from resources.kubernetes import Connection, Phase, Selection, Timeouts
from resources.kubernetes.discovery import Discovery
from resources.kubernetes.feed import Feed
from resources.kubernetes.recovery import Recovery
from resources.kubernetes.reflector import Reflector
from tests.resources.kubernetes.virtual import Answer
from tests.support import looptime
from tests.support.kinds import KINDS

HOUR = 3600.0
CUSTOM = tuple(kind for kind in KINDS if kind.custom)
CILIUM_V2 = tuple(kind for kind in CUSTOM if kind.api_version(kind.versions[0]) == "cilium.io/v2")


class EmptyServer:
    """An API server that serves a group without any of the kinds."""

    server = "https://192.0.2.1"

    def __init__(self) -> None:
        self.paths: list[str] = []

    @asynccontextmanager
    async def get(
        self,
        path: str,
        _: Sequence[tuple[str, str]],
        *,
        silence: float,  # noqa: ARG002
    ) -> AsyncIterator[Answer]:
        self.paths.append(path)
        assert path in ("/apis", "/apis/cilium.io/v2"), path
        versions = [{"groupVersion": "cilium.io/v2"}]
        document = {"groups": [{"versions": versions}]} if path == "/apis" else {"resources": []}
        yield Answer(json.dumps(document).encode())


def reflectors_of(server: EmptyServer, kinds: Sequence[Kind[Any]]) -> list[Reflector]:
    """Return a reflector for each kind, with one discovery."""
    connection = cast("Connection", server)
    discovery = Discovery(connection, 60.0)
    rng = random.Random(5)  # noqa: S311  jitter
    return [
        Reflector(
            Feed(kind),
            connection,
            discovery,
            Recovery(rng, 0.5, 30.0),
            Selection(),
            Timeouts(),
            rng,
            on_list=lambda: None,
            on_event=lambda _: None,
            on_status=lambda: None,
        )
        for kind in kinds
    ]


class ServerWithCrds(EmptyServer):
    """An API server whose CRDs are installed after a while; its lists never end."""

    def __init__(self, installed_at: float) -> None:
        super().__init__()
        self._installed_at = installed_at
        self.listed_at: list[float] = []

    @asynccontextmanager
    async def get(
        self,
        path: str,
        query: Sequence[tuple[str, str]],
        *,
        silence: float,
        accept: str = "",  # noqa: ARG002
    ) -> AsyncIterator[Answer]:
        now = asyncio.get_running_loop().time()
        if path == "/apis/cilium.io/v2" and now >= self._installed_at:
            resources = [{"name": kind.plural} for kind in CILIUM_V2]
            yield Answer(json.dumps({"resources": resources}).encode())
        elif path.startswith("/apis/cilium.io/v2/"):
            self.listed_at.append(now)
            await asyncio.sleep(HOUR)
        else:
            async with super().get(path, query, silence=silence) as answer:
                yield answer


def test_f06_kinds_that_are_installed_later_are_found_together() -> None:
    async def scenario() -> None:
        server = ServerWithCrds(installed_at=160.0)
        reflectors = reflectors_of(server, CILIUM_V2)
        tasks = [asyncio.create_task(reflector.run()) for reflector in reflectors]
        await asyncio.sleep(160 + 300)
        assert len(server.listed_at) == len(CILIUM_V2)
        assert max(server.listed_at) - min(server.listed_at) < 1
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    looptime.run(scenario())


def test_f06_kinds_that_are_not_installed_cost_fewer_than_fifty_requests_an_hour() -> None:
    async def scenario() -> None:
        server = EmptyServer()
        reflectors = reflectors_of(server, CUSTOM)
        tasks = [asyncio.create_task(reflector.run()) for reflector in reflectors]
        await asyncio.sleep(1)
        assert server.paths == ["/apis", "/apis/cilium.io/v2"]
        await asyncio.sleep(29)
        server.paths.clear()
        await asyncio.sleep(HOUR)
        assert len(server.paths) < 50
        assert all(reflector.status.phase is Phase.MISSING for reflector in reflectors)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    looptime.run(scenario())
