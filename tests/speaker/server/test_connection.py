"""A connection that the other side does not read: measured, shared and never lost."""

from __future__ import annotations

import asyncio
import functools
import socket

from speaker.server.connection import CHUNK, Connection, _pair


def test_a_link_local_address_has_its_zone() -> None:
    name = socket.if_indextoname(1)
    assert _pair(("fe80::1", 179, 0, 1)) == (f"fe80::1%{name}", 179)
    assert _pair(("fd00::1", 179, 0, 0)) == ("fd00::1", 179)
    assert _pair(("127.0.0.1", 179)) == ("127.0.0.1", 179)
    assert _pair(None) == ("", 0)


def _same(connection: Connection) -> Connection:
    return connection


def test_what_is_not_taken_is_measured_and_arrives_whole() -> None:
    async def main() -> None:
        left, right = socket.socketpair()
        left.setblocking(False)
        right.setblocking(False)
        measures: list[int] = []
        connection = Connection(
            1,
            lambda _: None,
            lambda *_: None,
            lambda *_: None,
            lambda _, octets: measures.append(octets),
        )
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: connection, sock=left)
        block = bytes(range(256)) * (CHUNK // 64)
        connection.write((block, block))
        assert connection.queued > CHUNK
        assert measures
        connection.write((b"end",))
        got = bytearray()
        while len(got) < 2 * len(block) + 3:
            got += await loop.sock_recv(right, 1 << 20)
        assert bytes(got) == block + block + b"end"
        await asyncio.sleep(0.05)
        assert connection.queued == 0
        assert measures[-1] == 0
        connection.close()
        await asyncio.wait_for(connection.lost, 1)
        right.close()

    asyncio.run(main())


def test_the_end_of_the_other_side_is_told_once_and_ours_is_not() -> None:
    async def main() -> None:
        ends: list[str] = []
        for ours in (False, True):
            left, right = socket.socketpair()
            left.setblocking(False)
            connection = Connection(
                1,
                lambda _: None,
                lambda *_: None,
                lambda _, reason: ends.append(reason),
                lambda *_: None,
            )
            loop = asyncio.get_running_loop()
            await loop.create_connection(functools.partial(_same, connection), sock=left)
            if ours:
                connection.close()
            else:
                right.close()
            await asyncio.wait_for(connection.lost, 1)
            right.close()
        assert ends == ["closed by the peer"]

    asyncio.run(main())
