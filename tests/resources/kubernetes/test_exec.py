"""Commands in containers, with a made-up WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import aiohttp
import pytest

from resources.kubernetes.errors import StatusError
from resources.kubernetes.exec import PROTOCOLS, CommandFailed, Container, run_command


class Server:
    """A connection whose WebSocket has one protocol, and some messages."""

    def __init__(self, protocol: str | None, *messages: bytes) -> None:
        self._protocol = protocol
        self._messages = messages
        self.offered: Sequence[str] = ()

    @asynccontextmanager
    async def websocket(
        self, _path: str, _parameters: object, protocols: Sequence[str]
    ) -> AsyncIterator[Any]:
        self.offered = protocols
        yield Socket(self._protocol, self._messages)


class Socket:
    def __init__(self, protocol: str | None, messages: Sequence[bytes]) -> None:
        self.protocol = protocol
        self._messages = messages

    async def __aiter__(self) -> AsyncIterator[aiohttp.WSMessage]:
        for data in self._messages:
            yield aiohttp.WSMessage(aiohttp.WSMsgType.BINARY, data, None)


async def output(server: Server) -> list[bytes]:
    container = Container("w", "a", "agent")
    return [piece async for piece in run_command(cast("Any", server), container, ("true",))]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_output_is_read_of_old_and_new_api_servers(protocol: str) -> None:
    server = Server(protocol, b"\1one", b"\2warning", b"\1two", b'\3{"status":"Success"}')
    assert asyncio.run(output(server)) == [b"one", b"two"]
    assert server.offered == ("v5.channel.k8s.io", "v4.channel.k8s.io")


def test_a_server_with_none_of_the_protocols_is_named() -> None:
    with pytest.raises(StatusError, match="has none of v5"):
        asyncio.run(output(Server(None)))


def test_the_exit_status_comes_with_the_end_of_standard_error() -> None:
    causes = b'{"details":{"causes":[{"reason":"ExitCode","message":"2"}]}}'
    with pytest.raises(CommandFailed, match="usage: waggle") as failed:
        asyncio.run(output(Server(PROTOCOLS[0], b"\2usage:\n waggle", b"\3" + causes)))
    assert failed.value.status == 2


def test_an_exit_status_that_is_no_number_is_unknown() -> None:
    status = f'{{"details":{{"causes":[{{"reason":"ExitCode","message":"{"9" * 5000}"}}]}}}}'
    with pytest.raises(CommandFailed) as failed:
        asyncio.run(output(Server(PROTOCOLS[0], b"\3" + status.encode())))
    assert failed.value.status is None
