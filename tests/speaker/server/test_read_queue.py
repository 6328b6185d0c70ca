"""Long reads are processed in pieces, and short ones do not wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speaker.engine.inputs import BytesReceived, Input, TransportAccepted, TransportClosed
from speaker.server import transports
from speaker.server.bound_devices import BoundDevices
from speaker.server.connection import READ
from speaker.server.read_queue import LONG_PIECE, PIECE, ReadQueue
from speaker.server.transports import Transports

loops = pytest.mark.usefixtures("both_event_loops")


@given(st.dictionaries(st.integers(1, 5), st.binary(min_size=1, max_size=60), max_size=5))
def test_every_octet_is_returned_once_and_in_order(reads: dict[int, bytes]) -> None:
    bulk = ReadQueue()
    for number, data in reads.items():
        bulk.put(number, data * 200)
    received: dict[int, bytes] = {}
    order: list[int] = []
    while (piece := bulk.next()) is not None:
        number, data = piece
        assert 0 < len(data) <= PIECE
        received[number] = received.get(number, b"") + data
        order.append(number)
    assert received == {number: data * 200 for number, data in reads.items()}
    assert not bulk
    # Each has its turn before any has a second one.
    assert len(set(order[: len(reads)])) == len(reads)


def test_take_returns_the_unprocessed_octets() -> None:
    bulk = ReadQueue()
    bulk.put(1, bytes(PIECE) + b"rest")
    bulk.put(2, b"other")
    assert bulk.next() == (1, bytes(PIECE))
    assert 1 in bulk
    assert bulk.take(1) == b"rest"
    assert bulk.take(1) == b""
    assert bulk.next() == (2, b"other")
    assert bulk.next() is None


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until something is true."""
    for _ in range(100_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not come true")


class Two:
    """Two connections, one with long and one with short reads, and the inputs of the core."""

    def __init__(self) -> None:
        self.inputs: list[Input] = []
        self.sent_at_once = 0
        devices = BoundDevices(self.inputs.append)
        self.transports = Transports(self.inputs.append, self._at_once, devices)
        self.writers: list[asyncio.StreamWriter] = []

    def _at_once(self, item: Input) -> bool:
        self.inputs.append(item)
        self.sent_at_once += 1
        return True

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: self.transports.accept("i", lambda _: False), "127.0.0.1", 0
        )
        port = server.sockets[0].getsockname()[1]
        for _ in range(2):
            self.writers.append((await asyncio.open_connection("127.0.0.1", port))[1])
            await until(lambda: len(self.accepted) == len(self.writers))
        server.close()
        return self

    @property
    def accepted(self) -> list[int]:
        return [i.connection for i in self.inputs if isinstance(i, TransportAccepted)]

    def received(self, number: int) -> bytes:
        return b"".join(
            i.data for i in self.inputs if isinstance(i, BytesReceived) and i.connection == number
        )

    async def until_received(self, number: int, octets: int) -> None:
        await until(lambda: len(self.received(number)) >= octets)

    async def __aexit__(self, *_: object) -> None:
        for writer in self.writers:
            writer.close()
        await self.transports.drain(0.0)


@loops
def test_a_short_read_is_processed_between_the_pieces_of_a_long_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("SLICE_SECONDS", "SHARED_SLICE_SECONDS", "MAX_SLICE_SECONDS"):
        monkeypatch.setattr(transports, name, 0.0)

    async def main() -> None:
        async with Two() as two:
            much = bytes(range(256)) * (8 * READ // 256)
            two.writers[0].write(much)
            await two.until_received(two.accepted[0], 1)
            two.writers[1].write(b"short")
            await two.until_received(two.accepted[1], 5)
            assert two.sent_at_once == 1
            assert len(two.received(two.accepted[0])) < len(much)
            await two.until_received(two.accepted[0], len(much))
            assert two.received(two.accepted[0]) == much
            sizes = [len(i.data) for i in two.inputs if isinstance(i, BytesReceived)]
            assert max(sizes[: sizes.index(5)]) == LONG_PIECE
            assert max(sizes[sizes.index(5) :]) == PIECE

    asyncio.run(main())


@loops
def test_queued_octets_are_processed_before_the_close() -> None:
    async def main() -> None:
        async with Two() as two:
            much = bytes(2 * READ)
            two.writers[0].write(much)
            two.writers[0].close()
            await until(lambda: isinstance(two.inputs[-1], TransportClosed))
            assert two.received(two.accepted[0]) == much

    asyncio.run(main())


def test_a_slice_of_long_reads_ends_with_its_time_and_others_have_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each piece takes a millisecond of the clock: a slice of 5 ms is five of them."""

    async def main() -> None:
        seconds = 0.0
        turns: list[int] = []

        def feed(item: Input) -> None:
            nonlocal seconds
            if isinstance(item, BytesReceived):
                seconds += 0.001
                turns[-1] += 1

        # The first slice is as long as its share of the time before it.
        queue = Transports(feed, lambda _: False, BoundDevices(feed), lambda: seconds)
        queue._worked_at = seconds
        queue._read_queue.put(1, bytes(100 * LONG_PIECE))
        while not turns or queue._working:
            turns.append(0)
            queue._work()
            queue._worked_at = seconds
        assert sum(turns) == 100
        assert set(turns) == {5}

    asyncio.run(main())
