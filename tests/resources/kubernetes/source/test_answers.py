"""F04: responses that are errors, truncated, foreign or too old delete no row."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from resources.kubernetes import Phase
from resources.source import Delete
from tests.resources.kubernetes.objects import service
from tests.resources.kubernetes.source.reading import reader, run
from tests.support.apiserver import ApiServer, cut, event, status, stream, text
from tests.support.wait import until


@pytest.mark.parametrize("how", ["event", "status"])
def test_f04_410_leads_to_a_list_that_shows_deletions(tmp_path: Path, how: str) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            for name in ("web", "old"):
                server.put(service(name))
            gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
            answers = {
                "event": stream(event("ERROR", gone)),
                "status": status(410, "Expired", "too old resource version"),
            }
            server.once("watch", "services", cut)
            async with reader(server, tmp_path) as observed:
                await until(lambda: observed.names() == {"web", "old"})
                server.once("watch", "services", answers[how])
                server.delete("Service", "old", "shop")
                server.put(service("new"))
                await until(lambda: observed.names() == {"web", "new"})
                await until(lambda: observed.phase() is Phase.FOLLOWING)

    run(scenario)


def test_f04_a_compaction_between_watches_loses_no_change(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            async with reader(server, tmp_path) as observed:
                await until(lambda: observed.names() == {"web"})
                await server.stop()
                server.delete("Service", "web", "shop")
                server.put(service("new"))
                server.compact()
                await server.start()
                await until(lambda: observed.names() == {"new"})
                assert observed.replacements() == 2

    run(scenario)


def test_f04_410_within_a_paged_list_repeats_it_without_pages(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            for i in range(5):
                server.put(service(f"s{i}"))
            async with reader(server, tmp_path) as observed:
                await until(lambda: all(observed.events.values()))
                first = len(server.queries("list", "services"))
                expired = status(410, "Expired", "the provided continue parameter is too old")
                pages = 0

                async def third_page_expired(request: web.Request) -> web.StreamResponse:
                    """Whatever else is requested meanwhile: a check of the version is a list, too."""
                    nonlocal pages
                    if "continue" not in request.query:
                        return await server.usual(request)
                    pages += 1
                    return await (expired if pages == 2 else server.usual)(request)

                server.always("list", "services", third_page_expired)
                await server.stop()
                server.put(service("late"))
                server.compact()
                await server.start()
                await until(lambda: observed.replacements() == 2)
                assert observed.names() == {"late", *(f"s{i}" for i in range(5))}
                queries = server.queries("list", "services")[first:]
                assert any("limit" not in query and "continue" not in query for query in queries)

    run(scenario)


def test_f04_the_retry_after_of_a_429_is_respected(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            answer = status(429, "TooManyRequests", "slow down", {"Retry-After": "1"})
            server.once("list", "services", answer)
            loop = asyncio.get_running_loop()
            async with reader(server, tmp_path) as observed:
                began = loop.time()
                await until(lambda: observed.names() == {"web"})
                assert loop.time() - began >= 1.0
                assert len(server.queries("list", "services")) == 2
                failing = [
                    m for n, p, m in observed.messages if n == "Service" and p is Phase.FAILING
                ]
                assert failing == [f"{server.url} answers 429: slow down"]

    run(scenario)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (status(500, "InternalError", "etcd is sad"), "answers 500: etcd is sad"),
        (text(503, "upstream connect error"), "answers 503: upstream connect error"),
        (text(502, "<html>Bad Gateway</html>", "text/html"), "answers 502: a web page"),
        (text(200, "<html>Log in</html>", "text/html"), "text/html instead of JSON"),
        (text(200, '{"kind": "Status"}', "application/json"), "a list that is not understood"),
        (text(200, '{"kind": "ServiceList", "meta', "application/json"), "not understood"),
        (text(200, '{"kind": "ServiceList", "metadata": {}}', "application/json"), "`items`"),
        (
            text(
                200,
                '{"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "5"}, '
                '"items": []}',
                "application/json",
            ),
            "sends v1 PodList in place of v1 ServiceList",
        ),
        (
            text(
                200,
                '{"kind": "ServiceList", "apiVersion": "v2", "metadata": {"resourceVersion": "5"}, '
                '"items": []}',
                "application/json",
            ),
            "sends v2 ServiceList in place of v1 ServiceList",
        ),
        (
            text(
                200,
                '{"kind": "ServiceList", "apiVersion": "v1", "items": [], '
                '"metadata": {"resourceVersion": "999", "remainingItemCount": 3}}',
                "application/json",
            ),
            "announces more objects without a continue token",
        ),
        (cut, ": the connection was closed"),
        (text(404, "page not found"), "answers 404"),
    ],
    ids=[
        "500",
        "503",
        "502-html",
        "200-html",
        "status",
        "cut-json",
        "no-items",
        "pods",
        "version",
        "half",
        "cut",
        "404",
    ],
)
def test_f04_a_failed_list_deletes_nothing(
    tmp_path: Path, answer: Callable[..., Any], expected: str
) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            async with reader(server, tmp_path) as observed:
                await until(lambda: observed.names() == {"web"})
                server.always("list", "services", answer)
                await server.stop()
                server.put(service("new"))
                server.compact()
                await server.start()
                await until(
                    lambda: any(expected in m for n, _, m in observed.messages if n == "Service")
                )
                assert observed.names() == {"web"}
                server.always("list", "services", None)
                await until(lambda: observed.names() == {"web", "new"})
                await until(lambda: observed.phase() is Phase.FOLLOWING)

    run(scenario)


@pytest.mark.parametrize(
    "answer",
    [
        stream("upstream connect error\n"),
        stream('{"type": "ADDED", "object": {"meta', then="cut"),
        stream('{"type": "ADDED", "object": {"meta'),
        stream("<html>\n</html>\n", then="hang"),
        text(200, "<html>", "text/html"),
        status(500, "InternalError", "no"),
        stream(event("ERROR", {"kind": "Status", "code": 500, "message": "decoding"})),
        stream(event("ERROR", {"kind": "Status", "code": 429, "message": "busy"})),
        stream(event("NONSENSE", {"metadata": {"resourceVersion": "100000"}})),
        cut,
    ],
    ids=[
        "text",
        "cut",
        "truncated",
        "html",
        "html-type",
        "500",
        "error-500",
        "429",
        "type",
        "abort",
    ],
)
def test_f04_a_failed_watch_is_resumed(tmp_path: Path, answer: Callable[..., Any]) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            server.once("watch", "services", answer, answer)
            async with reader(server, tmp_path) as observed:
                await until(lambda: observed.names() == {"web"})
                server.put(service("new"))
                await until(lambda: observed.names() == {"web", "new"})
                await until(lambda: observed.phase() is Phase.FOLLOWING)

    run(scenario)


def test_f04_an_undecodable_event_is_skipped_by_a_list(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.always("watch", "services", stream("{\n"))
            async with reader(server, tmp_path) as observed:
                await until(lambda: all(observed.events.values()))
                server.put(service("web"))
                await until(lambda: observed.names() == {"web"})

    run(scenario)


def test_events_out_of_order_require_a_list(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            stored = server.put(service("web"))
            server.put(service("other"))
            server.once("watch", "services", stream(event("DELETED", stored), then="hang"))
            async with reader(server, tmp_path) as observed:
                await until(lambda: observed.replacements() == 2)
                assert observed.names() == {"web", "other"}
                assert not any(isinstance(e, Delete) for e in observed.events["Service"])

    run(scenario)
