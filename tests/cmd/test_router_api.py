"""The router's API as its clients meet it: lines in whatever pieces, answers in order, limits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from speaker.api import InstanceConfig
from speaker.server import Speaker
from waggle.router import api
from waggle.router.api import Api
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
        ({"med": 2**32}, "route: med: 4294967296 is not within 0 to 4294967295"),
        ({"med": -1}, "route: med: -1 is not within 0 to 4294967295"),
        ({"localPreference": 2**32}, "route: local_preference: 4294967296 is not within"),
        ({"nextHop": "0.0.0.0"}, "route: next_hop: 0.0.0.0 is not the address of a host"),
        ({"nextHop": "224.0.0.1"}, "route: next_hop: 224.0.0.1 is not the address of a host"),
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
    monkeypatch.setattr(api, "MAX_LINE", 1000)

    async def main() -> None:
        async with served(tmp_path / "api") as client:
            reader, writer = await client()
            writer.write(b"x" * 1001)
            assert await closed(reader)
            writer.close()

    asyncio.run(main())


def test_the_number_of_clients_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "MAX_CLIENTS", 2)

    async def main() -> None:
        async with served(tmp_path / "api") as client:
            clients = [await client() for _ in range(2)]
            for reader, writer in clients:
                writer.write(ASK)
                assert json.loads(await reader.readline())["ok"]
            reader, writer = await client()
            assert await closed(reader)
            writer.close()
            clients[0][1].close()
            await clients[0][1].wait_closed()
            await asyncio.sleep(0.01)
            reader, writer = await client()
            writer.write(ASK)
            assert json.loads(await reader.readline())["ok"]
            writer.close()
            clients[1][1].close()

    asyncio.run(main())
