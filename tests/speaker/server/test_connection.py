"""A connection that the peer does not read: octets are counted, shared and never lost."""

from __future__ import annotations

import asyncio
import functools
import os
import socket

import pytest

from speaker.server.connection import CHUNK, DISCARD, READ, Connection, _pair
from tests.support.wait import until

TCPI_RETRANSMITS = 2
"""The octet of `struct tcp_info` with the retransmissions that are not acknowledged."""
loops = pytest.mark.usefixtures("both_event_loops")


def test_a_link_local_address_has_its_zone() -> None:
    name = socket.if_indextoname(1)
    assert _pair(("fe80::1", 179, 0, 1)) == (f"fe80::1%{name}", 179)
    assert _pair(("fd00::1", 179, 0, 0)) == ("fd00::1", 179)
    assert _pair(("127.0.0.1", 179)) == ("127.0.0.1", 179)
    assert _pair(None) == ("", 0)


def _same(connection: Connection) -> Connection:
    return connection


@loops
def test_queued_octets_are_counted_and_arrive_complete() -> None:
    async def main() -> None:
        left, right = socket.socketpair()
        left.setblocking(False)
        right.setblocking(False)
        measures: list[int] = []
        connection = Connection(
            1,
            memoryview(bytearray(READ)),
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
        await until(lambda: (connection.queued, measures[-1]) == (0, 0))
        connection.close()
        right.close()
        await asyncio.wait_for(connection.lost, 60)

    asyncio.run(main())


@loops
def test_written_octets_stay_in_order_on_both_write_paths() -> None:
    async def main() -> None:
        connection, right, _, _ = await _pair_of_tcp()
        loop = asyncio.get_running_loop()
        messages = [number.to_bytes(4, "big") * (1 + number % 700) for number in range(12_000)]
        sent = b"".join(messages)
        got = bytearray()
        for start in range(0, len(messages), 100):
            connection.write(messages[start : start + 100])
            # More slowly than it is written: the kernel takes parts of messages, or nothing.
            got += await loop.sock_recv(right, 60_000)
        while len(got) < len(sent):
            got += await loop.sock_recv(right, 1 << 20)
        assert bytes(got) == sent
        connection.close(abort=True)
        right.close()
        await asyncio.wait_for(connection.lost, 60)

    asyncio.run(main())


@loops
def test_nothing_is_written_to_the_descriptor_of_a_closing_transport(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        connection, right, _, _ = await _pair_of_tcp()
        transport = connection._transport
        assert transport is not None
        written: list[bytes] = []

        def write(_: int, octets: bytes) -> int:
            written.append(octets)
            return len(octets)

        monkeypatch.setattr(os, "write", write)
        connection.write((b"before",))
        # As after an error, until the loop reports it.
        transport.abort()
        connection.write((b"after",))
        monkeypatch.undo()
        assert written == [b"before"]
        right.close()
        await asyncio.wait_for(connection.lost, 60)

    asyncio.run(main())


@loops
def test_only_a_close_of_the_peer_is_reported_and_once() -> None:
    async def main() -> None:
        ends: list[str] = []
        for local in (False, True):
            left, right = socket.socketpair()
            left.setblocking(False)
            connection = Connection(
                1,
                memoryview(bytearray(READ)),
                lambda _: None,
                lambda *_: None,
                lambda _, reason: ends.append(reason),
                lambda *_: None,
            )
            loop = asyncio.get_running_loop()
            await loop.create_connection(functools.partial(_same, connection), sock=left)
            if local:
                connection.close()
            right.close()
            await asyncio.wait_for(connection.lost, 60)
        assert ends == ["closed by the peer"]

    asyncio.run(main())


async def _pair_of_tcp() -> tuple[Connection, socket.socket, list[bytes], list[str]]:
    """Make a connection and the other end, which is not read from; what came, and how it ended."""
    loop = asyncio.get_running_loop()
    came: list[bytes] = []
    ends: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        far = socket.create_connection(server.getsockname())
        near, _ = server.accept()
    for each in (near, far):
        each.setblocking(False)
    connection = Connection(
        1,
        memoryview(bytearray(READ)),
        lambda _: None,
        lambda _, octets: came.append(octets),
        lambda _, reason: ends.append(reason),
        lambda *_: None,
    )
    await loop.create_connection(functools.partial(_same, connection), sock=near)
    return connection, far, came, ends


@loops
def test_the_last_notification_reaches_a_peer_that_is_sending() -> None:
    """RFC 4271 section 6: a NOTIFICATION is sent, then the connection is closed.

    A connection that is closed with octets unread is reset, and takes the last word with it.
    """

    async def main() -> None:
        loop = asyncio.get_running_loop()
        connection, far, came, ends = await _pair_of_tcp()
        connection.pause_reading()
        await loop.sock_sendall(far, bytes(100_000))
        connection.write((b"the last word",))
        connection.close()
        # It has not looked yet, and goes on.
        await loop.sock_sendall(far, bytes(1_000_000))
        assert await loop.sock_recv(far, 100) == b"the last word"
        assert await loop.sock_recv(far, 100) == b""
        assert not connection.lost.done()
        far.close()
        await asyncio.wait_for(connection.lost, 60)
        assert (came, ends) == ([], [])

    asyncio.run(main())


@loops
def test_octets_after_the_end_are_discarded_up_to_a_limit() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        connection, far, came, _ = await _pair_of_tcp()
        connection.close()
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(loop.sock_sendall(far, bytes(4 * DISCARD)), 60)
        await asyncio.wait_for(connection.lost, 60)
        assert not came
        far.close()

    asyncio.run(main())


@loops
def test_a_connection_whose_peer_is_too_far_away_is_reset() -> None:
    """TTL security drops the acknowledgements: the peer receives no FIN."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        connection, far, _, _ = await _pair_of_tcp()
        connection.set_ttl(255, 255)
        # Packets on the loopback interface have another TTL, and the kernel repeats the first octets.
        connection.write((b"OPEN",))
        assert await loop.sock_recv(far, 100) == b"OPEN"
        assert connection._transport is not None
        sock = connection._transport.get_extra_info("socket")
        while not sock.getsockopt(  # noqa: ASYNC110
            socket.IPPROTO_TCP, socket.TCP_INFO, 8
        )[TCPI_RETRANSMITS]:
            await asyncio.sleep(0.05)  # the kernel's own timer
        connection.write((b"NOTIFICATION",))
        connection.close()
        connection.close(abort=True)
        ended = functools.partial(loop.sock_recv, far, 100)
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(ended(), 60)
        far.close()

    asyncio.run(main())


@loops
def test_a_connection_whose_octets_arrived_ends_in_order() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        connection, far, _, _ = await _pair_of_tcp()
        # With a hop limit that the packets have.
        connection.set_ttl(64, 1)
        connection.write((b"NOTIFICATION",))
        connection.close()
        connection.close(abort=True)
        assert await loop.sock_recv(far, 100) == b"NOTIFICATION"
        assert await loop.sock_recv(far, 100) == b""
        far.close()

    asyncio.run(main())


@loops
def test_a_connection_that_both_sides_have_closed_is_not_touched_again() -> None:
    """Its time for the last octets ends later, as that of any connection closed from this side."""

    async def main() -> None:
        connection, far, _, _ = await _pair_of_tcp()
        connection.set_ttl(64, 1)
        connection.close()
        far.close()
        await asyncio.wait_for(connection.lost, 60)
        await asyncio.sleep(0)
        connection.close(abort=True)
        connection.set_ttl(255, 255)

    asyncio.run(main())
