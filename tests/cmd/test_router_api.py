"""The router's API as its clients meet it: what it announces, refuses and lists, and in what pieces."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from cells.api.client import AgentError, at_socket
from cells.api.model import RouteItem
from cells.serve import items, routing
from cells.unix_socket import UnixSocketError, bind
from speaker.api import InstanceConfig, RouteView
from speaker.server import Speaker
from waggle.commands.router.api import api_socket
from waggle.commands.router.program import NeighborBfd
from waggle.router_config import INSTANCE

NO_BFD = NeighborBfd(cast("Any", None), cast("Any", None))
Client = Callable[..., Awaitable[dict[str, Any]]]


@asynccontextmanager
async def served(path: Path) -> AsyncIterator[tuple[Client, Client]]:
    """Serve a speaker; what is yielded asks it, and has it act."""
    async with Speaker() as speaker:
        speaker.set_instance(InstanceConfig(name=INSTANCE, local_asn=65001, router_id="10.0.0.1"))
        api = api_socket(path, pytest.fail, speaker, NO_BFD)
        api.reserve()
        await api.start()

        async def ask(name: str, **query: str | None) -> dict[str, Any]:
            return await asyncio.to_thread(at_socket(path, "router").get, f"/v1/{name}", query)

        async def act(name: str, **body: object) -> dict[str, Any]:
            return await asyncio.to_thread(at_socket(path, "router").post, f"/v1/{name}", body)

        try:
            yield ask, act
        finally:
            await api.stop()


async def prefixes(ask: Client, **query: str | None) -> list[str]:
    routes = await ask("routes", **{"table": "available", **query})
    return [item["prefix"] for item in routes["items"]]


def test_a_socket_that_another_router_has_bound_is_not_taken_before_it_listens(
    tmp_path: Path,
) -> None:
    path = tmp_path / "api"
    starting = bind(path, "router")
    with pytest.raises(UnixSocketError, match=r"another router listens on .*api; stop it"):
        api_socket(path, pytest.fail, Speaker(), NO_BFD).reserve()
    assert path.exists()
    starting.sock.close()
    starting.unlink()


def test_routes_of_the_kernel_are_listed_where_the_file_has_them(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path / "api") as (ask, act):
            answer = await ask("kernel-routes")
            assert (answer["kind"], answer["items"]) == ("KernelRouteList", [])
            assert answer["notes"] == ["the file has no kernel: the router installs no routes"]
            assert (await act("kernel-routes/approve"))["items"] == []

    asyncio.run(main())


def test_prefixes_are_announced_listed_and_withdrawn(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path / "api") as (ask, act):
            answer = await act("announce", prefixes=["192.0.2.0/24"])
            assert (answer["kind"], answer["items"]) == ("PrefixChangeList", [{"changed": 1}])
            (route,) = (await ask("routes", table="available"))["items"]
            assert (route["node"], route["prefix"]) == ("10.0.0.1", "192.0.2.0/24")
            assert (await act("withdraw", prefixes=["192.0.2.0/24"]))["items"] == [{"changed": 1}]
            assert await prefixes(ask) == []

    asyncio.run(main())
    assert not (tmp_path / "api").exists()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"med": 2**32}, "med: 4294967296 is not within 0 to 4294967295"),
        ({"med": -1}, "med: -1 is not within 0 to 4294967295"),
        ({"localPreference": 2**32}, "localPreference: 4294967296 is not within"),
        ({"nextHop": "0.0.0.0"}, "nextHop: 0.0.0.0 is not the address of a host"),
        ({"nextHop": "224.0.0.1"}, "nextHop: 224.0.0.1 is not the address of a host"),
        ({"nextHop": "fe80::1"}, "nextHop: fe80::1 is a link-local address"),
        ({"prefixes": ["10.8.0.0/16", "224.0.0.0/4"]}, "224.0.0.0/4: a multicast or reserved"),
        ({"prefixes": ["10.8.0.0/16"], "x": 1}, "Object contains unknown field `x`"),
    ],
)
def test_an_impossible_attribute_is_refused_with_its_name_and_changes_nothing(
    tmp_path: Path, change: dict[str, object], sentence: str
) -> None:
    async def main() -> None:
        async with served(tmp_path / "api") as (ask, act):
            with pytest.raises(AgentError) as refused:
                await act("announce", **{"prefixes": ["10.9.0.0/16"], **change})
            assert refused.value.code == "BadRequest"
            assert str(refused.value).startswith(sentence)
            assert await prefixes(ask) == []

    asyncio.run(main())


def test_a_prefix_that_is_not_there_cannot_be_withdrawn(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path / "api") as (ask, act):
            announced = await act("announce", prefixes=["192.0.2.0/24", "2001:db8::/32"])
            assert announced["items"] == [{"changed": 2}]
            withdrawn = await act("withdraw", prefixes=["192.0.2.0/24", "10.0.0.0/8"])
            assert withdrawn["items"] == [{"changed": 1, "absent": ["10.0.0.0/8"]}]
            assert await prefixes(ask) == ["2001:db8::/32"]

    asyncio.run(main())


def test_a_community_has_a_name(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path / "api") as (ask, act):
            names = ["graceful-shutdown", "no-export", "65001:5"]
            await act("announce", prefixes=["10.9.0.0/16"], communities=names)
            (route,) = (await ask("routes", table="available"))["items"]
            assert route["communities"] == ["65535:0", "65535:65281", "65001:5"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            {"communities": ["no-exprt"]},
            "communities: 'no-exprt' is not in the form 65000:1; did you mean no-export?",
        ),
        ({"communities": ["70000:1"]}, "communities: '70000:1': a number is above 65535"),
        (
            {"largeCommunities": ["1:2"]},
            "largeCommunities: '1:2' is not in the form 65000:1:1",
        ),
    ],
)
def test_a_community_that_cannot_be_read_is_named_with_its_key(
    body: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    async def main() -> None:
        async with served(tmp_path / "api") as (_, act):
            with pytest.raises(AgentError) as caught:
                await act("announce", prefixes=["10.9.0.0/16"], **body)
            assert str(caught.value) == sentence

    asyncio.run(main())


@pytest.mark.parametrize("action", ["clear", "shutdown", "enable"])
def test_an_action_on_an_unknown_neighbor_names_it(tmp_path: Path, action: str) -> None:
    async def main() -> None:
        async with served(tmp_path / "api") as (_, act):
            answer = await act(action, peer="absent")
            (error,) = answer["errors"]
            assert error == {
                "code": "NotFound",
                "message": "no peer is called absent",
                "unknown": "peer",
            }

    asyncio.run(main())


PREFIXES = [f"10.{index >> 8}.{index & 255}.0/24" for index in range(20_000)]


@asynccontextmanager
async def with_many_routes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Client, list[int]]]:
    """Serve 20,000 routes; yields a client, and a list with a member for each route that was read."""
    read: list[int] = []
    original = items.route_item

    def counted(node: str, instance: str, view: RouteView) -> RouteItem:
        read.append(1)
        return original(node, instance, view)

    monkeypatch.setattr(routing, "route_item", counted)
    async with served(path) as (ask, act):
        await act("announce", prefixes=PREFIXES)
        yield ask, read


def test_a_long_answer_is_read_no_faster_than_its_client_and_ends_when_the_client_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with with_many_routes(tmp_path / "api", monkeypatch) as (_, read):
            # A client that does not read: a few slices fill the buffers.
            waiting = socket.socket(socket.AF_UNIX)
            waiting.connect(str(tmp_path / "api"))
            waiting.sendall(b"GET /v1/routes?table=available HTTP/1.1\r\nHost: x\r\n\r\n")
            seen = -1
            while len(read) > seen or not read:
                seen = len(read)
                await asyncio.sleep(0.05)
            assert 0 < seen < len(PREFIXES) / 2
            waiting.close()
            # In each turn of the loop an answer that goes on is a slice longer.
            for _ in range(100):
                await asyncio.sleep(0)
            assert len(read) <= seen + 1000

    asyncio.run(main())


def test_the_loop_goes_on_while_routes_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with with_many_routes(tmp_path / "api", monkeypatch) as (ask, read):
            answers = [asyncio.create_task(prefixes(ask)) for _ in range(8)]
            largest = 0
            while not all(answer.done() for answer in answers):
                before = len(read)
                await asyncio.sleep(0)
                largest = max(largest, len(read) - before)
            # In one turn of the loop a slice of one answer, not one of each, nor a whole table.
            assert 0 < largest < 1500
            assert {len(await answer) for answer in answers} == {20_000}

    asyncio.run(main())


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ({"prefix": "10.1.2.0/24"}, ["10.1.2.0/24"]),
        ({"prefix": "10.1.2.9"}, ["10.1.2.0/24"]),
        ({"prefix": "192.0.2.1"}, []),
        ({"limit": "2"}, ["10.0.0.0/24", "10.0.1.0/24"]),
        ({"family": "ipv6-unicast"}, []),
    ],
)
def test_routes_are_selected_by_the_router(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    question: dict[str, Any],
    expected: list[str],
) -> None:
    async def main() -> None:
        async with with_many_routes(tmp_path / "api", monkeypatch) as (ask, read):
            answer = await ask("routes", table="available", **question)
            assert [route["prefix"] for route in answer["items"]] == expected
            assert answer.get("truncated", False) == ("limit" in question)
            assert len(read) < 1500

    asyncio.run(main())


@pytest.mark.parametrize(
    ("question", "code", "sentence"),
    [
        ({"prefix": "ten"}, "BadRequest", "prefix: 'ten' is neither a prefix nor an address"),
        ({"limit": "0"}, "BadRequest", "limit: a number of at least 1, not '0'"),
        (
            {"prefix": "10.0.0.1", "family": "ipv6-unicast"},
            "BadRequest",
            "prefix: 10.0.0.1 is not of the family",
        ),
        ({"peer": "absent"}, "NotFound", "no peer is called absent"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused(
    tmp_path: Path, question: dict[str, Any], code: str, sentence: str
) -> None:
    async def main() -> None:
        async with served(tmp_path / "api") as (ask, _):
            try:
                (error,) = (await ask("routes", **question))["errors"]
            except AgentError as refused:
                error = {"code": refused.code, "message": str(refused)}
            assert error["code"] == code
            assert error["message"].startswith(sentence)

    asyncio.run(main())
