"""A kind whose lists fail while the API server answers for others (a conversion webhook is down)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from resources.core.kinds import SECRET
from resources.kind import Kind
from resources.kubernetes import Connection, Phase, Selection, Timeouts
from resources.kubernetes.discovery import Discovery
from resources.kubernetes.errors import (
    InvalidResponse,
    KubernetesError,
    ReadTimeout,
    StatusError,
    Unreachable,
)
from resources.kubernetes.feed import Feed
from resources.kubernetes.recovery import Recovery
from resources.kubernetes.reflector import Reflector
from tests.resources.kubernetes.virtual import Answer
from tests.support import looptime
from tests.support.kinds import ADVERTISEMENT, SERVICE

DOWN = StatusError(500, "conversion webhook failed")


class FailingServer:
    """In place of a connection: every list fails."""

    server = "https://192.0.2.1"

    def __init__(self, error: KubernetesError) -> None:
        self._error = error

    async def renew(self) -> None:
        """Nothing is kept."""

    @asynccontextmanager
    async def get(self, *_: object, **__: object) -> AsyncIterator[Answer]:
        raise self._error
        yield


class KnownVersions:
    """In place of discovery: the server has every kind in its first version."""

    async def version_of(self, kind: Kind[Any], **_: object) -> str:
        return kind.versions[0]


def released_after(
    kind: Kind[Any], error: KubernetesError, *, others_read: bool, limit: float, secret: str = ""
) -> float | None:
    """Return after how many seconds others do not wait for a kind, or for one object of it."""

    async def scenario() -> float | None:
        rng = random.Random(7)  # noqa: S311  jitter
        recovery = Recovery(rng, Timeouts().first_retry, Timeouts().longest_retry)
        recovery.reading = int(others_read)
        times: list[float] = []
        loop = asyncio.get_running_loop()
        began = loop.time()
        reflector = Reflector(
            Feed(kind, "bgp" if secret else "", secret, hold=60.0),
            cast("Connection", FailingServer(error)),
            cast("Discovery", KnownVersions()),
            recovery,
            Selection(),
            Timeouts(),
            rng,
            on_list=lambda: times.append(loop.time() - began),
            on_event=lambda _: None,
            on_status=lambda: None,
        )
        task = asyncio.create_task(reflector.run())
        await asyncio.sleep(limit)
        assert reflector.status.phase is Phase.FAILING
        assert reflector.status.unread
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return times[0] if times else None

    return looptime.run(scenario())


@pytest.mark.parametrize(
    ("error", "others_read", "after"),
    [
        pytest.param(ReadTimeout("silence"), True, 30, id="a request that hangs"),
        pytest.param(InvalidResponse("a page"), True, 30, id="no answer of the API"),
        pytest.param(ReadTimeout("silence"), False, None, id="the whole server hangs"),
        pytest.param(Unreachable("x", "refused"), True, None, id="no connection"),
    ],
)
def test_a_single_secret_that_cannot_be_read_delays_the_others_for_half_a_minute(
    error: KubernetesError, *, others_read: bool, after: float | None
) -> None:
    found = released_after(SECRET, error, others_read=others_read, limit=300, secret="k")
    if after is None:
        assert found is None
    else:
        assert found is not None
        assert after <= found <= after + 31, "the attempt after the grace"


def test_f06_a_kind_that_fails_alone_delays_its_dialect_for_three_minutes() -> None:
    found = released_after(ADVERTISEMENT, DOWN, others_read=True, limit=300)
    assert found is not None
    assert 180 <= found <= 240


@pytest.mark.parametrize(
    ("kind", "error", "others_read"),
    [
        pytest.param(ADVERTISEMENT, DOWN, False, id="no other kind is read"),
        pytest.param(SERVICE, DOWN, True, id="a kind of all dialects"),
        pytest.param(ADVERTISEMENT, StatusError(429, "slow down"), True, id="too many requests"),
        pytest.param(ADVERTISEMENT, StatusError(401, "who?"), True, id="rejected credentials"),
        pytest.param(ADVERTISEMENT, Unreachable("x", "refused"), True, id="no connection"),
    ],
)
def test_f06_an_error_of_the_whole_server_is_waited_for(
    kind: Kind[Any], error: KubernetesError, *, others_read: bool
) -> None:
    assert released_after(kind, error, others_read=others_read, limit=3600) is None
