"""The router's API as its clients meet it: lines in whatever pieces, answers in order, limits."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from cells.unix_socket import bind
from speaker.api import InstanceConfig, RouteView
from speaker.server import Speaker
from waggle.router.api import Api, ApiError, connection, items, server
from waggle.router.config import INSTANCE

Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]
ASK = b'{"op": "routes"}\n'


@asynccontextmanager
async def served(path: Path) -> AsyncIterator[Callable[[], Awaitable[Client]]]:
    """Serve a speaker; what is yielded makes a client."""
    async with Speaker() as speaker:
        speaker.set_instance(InstanceConfig(name=INSTANCE, local_asn=65001, router_id="10.0.0.1"))
        served = Api(speaker)
        await served.start(path)
        try:
            yield lambda: asyncio.open_unix_connection(path)
        finally:
            await served.stop()


async def closed(reader: asyncio.StreamReader) -> bool:
    try:
        return await asyncio.wait_for(reader.read(), 5) == b""
    except ConnectionResetError:
        return True


def test_a_socket_that_another_router_has_bound_is_not_taken_before_it_listens(
    tmp_path: Path,
) -> None:
    path = tmp_path / "api"
    starting = bind(path, "router")

    async def main() -> None:
        with pytest.raises(ApiError, match=r"apiSocket: another router listens on .*api; stop it"):
            await Api(Speaker()).start(path)

    asyncio.run(main())
    assert path.exists()
    starting.sock.close()
    starting.unlink()


def test_lines_come_in_pieces_and_are_answered_in_order(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path / "api") as client:
            reader, writer = await client()
            requests = b"".join(
                (
                    b'{"op": "announce", "prefixes": ["192.0.2.0/24"]}\n',
                    b"no JSON\n",
                    ASK,
                    b'{"op": "withdraw", "prefixes": ["192.0.2.0/24"]}\n',
                    ASK,
                )
            )
            for start in range(0, len(requests), 7):
                writer.write(requests[start : start + 7])
                await asyncio.sleep(0)
            answers = [json.loads(await reader.readline()) for _ in range(5)]
            assert [answer["ok"] for answer in answers] == [True, False, True, True, True]
            assert [route["prefix"] for route in answers[2]["routes"]] == ["192.0.2.0/24"]
            assert answers[4]["routes"] == []
            writer.close()

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
    ],
)
def test_an_impossible_attribute_is_refused_with_its_name_and_changes_nothing(
    tmp_path: Path, change: dict[str, object], sentence: str
) -> None:
    async def main() -> None:
        async with served(tmp_path / "api") as client:
            reader, writer = await client()
            request = {"op": "announce", "prefixes": ["10.9.0.0/16"], **change}
            writer.write(json.dumps(request).encode() + b"\n" + ASK)
            refused, routes = [json.loads(await reader.readline()) for _ in range(2)]
            assert not refused["ok"]
            assert refused["error"].startswith(sentence)
            assert routes == {"ok": True, "routes": []}
            writer.close()

    asyncio.run(main())


def test_a_slow_client_receives_all_answers(tmp_path: Path) -> None:
    prefixes = [f"10.{index >> 8}.{index & 255}.0/24" for index in range(2000)]
    announce = json.dumps({"op": "announce", "prefixes": prefixes}).encode() + b"\n"

    async def main() -> None:
        async with served(tmp_path / "api") as client:
            reader, writer = await client()
            writer.write(announce + ASK * 10)
            await asyncio.sleep(0.05)
            answers = [json.loads(line) for line in [await line_of(reader) for _ in range(11)]]
            assert answers[0] == {"ok": True, "changed": 2000}
            assert all(len(answer["routes"]) == 2000 for answer in answers[1:])
            writer.close()

    asyncio.run(main())


def test_a_prefix_that_is_not_there_cannot_be_withdrawn(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path / "api") as client:
            reader, writer = await client()
            for prefixes in (["192.0.2.0/24", "2001:db8::/32"], ["192.0.2.0/24", "10.0.0.0/8"]):
                op = "announce" if len(prefixes[1]) > 10 else "withdraw"
                writer.write(json.dumps({"op": op, "prefixes": prefixes}).encode() + b"\n")
            writer.write(ASK)
            announced, withdrawn, left = [json.loads(await line_of(reader)) for _ in range(3)]
            assert announced == {"ok": True, "changed": 2}
            assert withdrawn == {"ok": True, "changed": 1, "absent": ["10.0.0.0/8"]}
            assert [route["prefix"] for route in left["routes"]] == ["2001:db8::/32"]
            writer.close()

    asyncio.run(main())


async def line_of(reader: asyncio.StreamReader) -> bytes:
    """Read a line of whatever length."""
    parts: list[bytes] = []
    while not parts or not parts[-1].endswith(b"\n"):
        try:
            parts.append(await asyncio.wait_for(reader.readuntil(b"\n"), 5))
        except asyncio.LimitOverrunError as error:
            parts.append(await reader.readexactly(error.consumed))
    return b"".join(parts)


def test_a_line_without_end_ends_the_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_LINE", 1000)

    async def main() -> None:
        async with served(tmp_path / "api") as client:
            reader, writer = await client()
            writer.write(b"x" * 1001)
            assert await closed(reader)
            writer.close()

    asyncio.run(main())


def test_idle_clients_make_room_for_another_the_longest_idle_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MAX_CLIENTS", 2)

    async def main() -> None:
        async with served(tmp_path / "api") as client:
            silent, busy = [await client() for _ in range(2)]
            busy[1].write(ASK)
            assert json.loads(await busy[0].readline())["ok"]
            newcomer = await client()
            newcomer[1].write(ASK)
            assert json.loads(await newcomer[0].readline())["ok"]
            assert await closed(silent[0])
            for reader, writer in (busy, newcomer):
                writer.write(ASK)
                assert json.loads(await reader.readline())["ok"]
            for _, writer in (silent, busy, newcomer):
                writer.close()

    asyncio.run(main())


def test_a_community_has_a_name(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path / "api") as client:
            reader, writer = await client()
            names = ["graceful-shutdown", "no-export", "65001:5"]
            request = {"op": "announce", "prefixes": ["10.9.0.0/16"], "communities": names}
            writer.write(json.dumps(request).encode() + b"\n" + ASK)
            done, answer = [json.loads(await reader.readline()) for _ in range(2)]
            assert done["ok"], done
            (route,) = answer["routes"]
            assert route["communities"] == ["65535:0", "65535:65281", "65001:5"]
            writer.close()

    asyncio.run(main())


PREFIXES = [f"10.{index >> 8}.{index & 255}.0/24" for index in range(20_000)]


@asynccontextmanager
async def with_many_routes(path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[int]]:
    """Serve 20,000 routes; what is yielded has a member for each route that was read."""
    read: list[int] = []
    original = items.route_object

    def counted(view: RouteView) -> dict[str, Any]:
        read.append(1)
        return original(view)

    monkeypatch.setattr(server, "route_object", counted)
    async with served(path) as client:
        reader, writer = await client()
        announce = {"op": "announce", "prefixes": PREFIXES}
        writer.write(json.dumps(announce).encode() + b"\n")
        assert json.loads(await reader.readline())["ok"]
        yield read
        writer.close()


def test_a_long_answer_is_read_no_faster_than_its_client_and_ends_when_the_client_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with with_many_routes(tmp_path / "api", monkeypatch) as read:
            # A client that does not read: a few slices fill the buffers.
            waiting = socket.socket(socket.AF_UNIX)
            waiting.connect(str(tmp_path / "api"))
            waiting.sendall(ASK)
            seen = -1
            while len(read) > seen:
                seen = len(read)
                await asyncio.sleep(0.05)
            assert 0 < seen < len(PREFIXES) / 2
            waiting.close()
            await asyncio.sleep(0.05)
            assert len(read) <= seen + 1000

    asyncio.run(main())


def test_the_loop_goes_on_while_routes_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with with_many_routes(tmp_path / "api", monkeypatch) as read:
            clients = [await asyncio.open_unix_connection(tmp_path / "api") for _ in range(8)]
            for _, writer in clients:
                writer.write(ASK)
            answers = [asyncio.create_task(line_of(reader)) for reader, _ in clients]
            largest = 0
            while not all(answer.done() for answer in answers):
                before = len(read)
                await asyncio.sleep(0)
                largest = max(largest, len(read) - before)
            # In one turn of the loop a slice of one answer, not one of each, nor a whole table.
            assert 0 < largest < 1500
            lines = [await answer for answer in answers]
            assert {len(json.loads(line)["routes"]) for line in lines} == {20_000}
            for _, writer in clients:
                writer.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ({"prefix": "10.1.2.0/24"}, ["10.1.2.0/24"]),
        ({"prefix": "10.1.2.9"}, ["10.1.2.0/24"]),
        ({"prefix": "192.0.2.1"}, []),
        ({"limit": 2}, ["10.0.0.0/24", "10.0.1.0/24"]),
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
        async with with_many_routes(tmp_path / "api", monkeypatch) as read:
            reader, writer = await asyncio.open_unix_connection(tmp_path / "api")
            writer.write(json.dumps({"op": "routes", **question}).encode() + b"\n")
            answer = json.loads(await line_of(reader))
            assert [route["prefix"] for route in answer["routes"]] == expected
            assert answer.get("truncated", False) == ("limit" in question)
            assert len(read) < 1500
            writer.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ({"prefix": "ten"}, "'ten' is neither a prefix nor an address"),
        ({"limit": 0}, "limit: a number of at least 1, not 0"),
        ({"prefix": "10.0.0.1", "family": "ipv6-unicast"}, "prefix: 10.0.0.1 is not of the family"),
        ({"peer": "absent"}, "there is no peer 'absent'"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused(
    tmp_path: Path, question: dict[str, Any], sentence: str
) -> None:
    async def main() -> None:
        async with served(tmp_path / "api") as client:
            reader, writer = await client()
            writer.write(json.dumps({"op": "routes", **question}).encode() + b"\n")
            answer = json.loads(await reader.readline())
            assert not answer["ok"]
            assert answer["error"].startswith(sentence)
            writer.close()

    asyncio.run(main())
