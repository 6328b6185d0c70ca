"""The requests of a writer: bodies, preconditions, and lists of several pages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from resources.kubernetes import Connection, StatusError, Writer
from tests.support import looptime

Answer = tuple[int, Mapping[str, Any]]


class Body:
    """The response to one request."""

    headers: Mapping[str, str] = {}

    def __init__(self, status: int, octets: bytes) -> None:
        self.status = status
        self.content = asyncio.StreamReader()
        self.content.feed_data(octets)
        self.content.feed_eof()


class Recorded:
    """In place of a connection: records requests and answers them."""

    def __init__(self, answer: Callable[[str, dict[str, str]], Answer]) -> None:
        self.requests: list[tuple[str, str, Any]] = []
        self._answer = answer

    @asynccontextmanager
    async def request(
        self,
        method: str,
        path: str,
        parameters: Sequence[tuple[str, str]] = (),
        *,
        body: Mapping[str, Any] | None = None,
        **_: object,
    ) -> AsyncIterator[Body]:
        self.requests.append((method, path, body))
        status, content = self._answer(path, dict(parameters))
        yield Body(status, json.dumps(content).encode())


def writer(recorded: Recorded) -> Writer:
    return Writer(cast("Connection", recorded), "waggle-operator")


def paged(names: Sequence[str]) -> Callable[[str, dict[str, str]], Answer]:
    """Answer a list in pages of the requested size."""

    def answer(_: str, query: dict[str, str]) -> Answer:
        start, limit = int(query.get("continue", "0")), int(query["limit"])
        metadata = {"resourceVersion": "7"}
        if start + limit < len(names):
            metadata["continue"] = str(start + limit)
        items = [{"metadata": {"name": name}} for name in names[start : start + limit]]
        return 200, {"kind": "PartialObjectMetadataList", "metadata": metadata, "items": items}

    return answer


@pytest.mark.parametrize("count", [0, 1, 499, 500, 501, 1500])
def test_a_list_has_the_names_of_all_pages(count: int) -> None:
    names = [f"a{number}" for number in range(count)]
    recorded = Recorded(paged(names))
    assert looptime.run(writer(recorded).names("/apis/cilium.io/v2/things")) == names
    assert len(recorded.requests) == max(1, -(-count // 500))


def test_the_pages_of_a_list_have_all_its_objects() -> None:
    names = [f"a{number}" for number in range(1200)]

    async def found() -> list[str]:
        pages = writer(Recorded(paged(names))).pages("/apis/cilium.io/v2/things", [])
        return [one["metadata"]["name"] async for page in pages for one in page]

    assert looptime.run(found()) == names


def test_a_deletion_has_the_uid_as_its_precondition() -> None:
    """An object that was recreated under the same name is not the former one."""
    recorded = Recorded(lambda *_: (200, {"kind": "Status"}))
    looptime.run(writer(recorded).delete("/apis/cilium.io/v2/things/a", "1b4e"))
    ((method, path, body),) = recorded.requests
    assert (method, path) == ("DELETE", "/apis/cilium.io/v2/things/a")
    assert body["preconditions"] == {"uid": "1b4e"}


def test_a_deletion_of_an_object_that_is_gone_has_succeeded() -> None:
    recorded = Recorded(lambda *_: (404, {"kind": "Status", "message": "not found"}))
    looptime.run(writer(recorded).delete("/apis/cilium.io/v2/things/a", "1b4e"))


def test_a_deletion_of_a_recreated_object_is_an_error() -> None:
    recorded = Recorded(lambda *_: (409, {"kind": "Status", "message": "the UID differs"}))
    with pytest.raises(StatusError, match="the UID differs"):
        looptime.run(writer(recorded).delete("/apis/cilium.io/v2/things/a", "1b4e"))
