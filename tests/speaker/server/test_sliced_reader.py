"""Readers of long answers: a slice in a turn of the loop for all of them, and none in advance."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import aclosing

import pytest

from speaker.server.sliced_reader import SLICE_SECONDS, SlicedReader


class Work:
    """Slices, each of which takes a time of a clock."""

    def __init__(self, seconds: float) -> None:
        self.now = 0.0
        self.done = 0
        self._seconds = seconds

    def clock(self) -> float:
        """Return the time in seconds."""
        return self.now

    def slices(self, count: int) -> Iterator[Sequence[int]]:
        """Yield slices of one number; every second one is empty."""
        for number in range(count):
            self.now += self._seconds
            self.done += 1
            yield [number] if number % 2 == 0 else []


def test_a_reader_leaves_the_loop_after_its_time_and_never_yields_nothing() -> None:
    async def main() -> None:
        work = Work(SLICE_SECONDS / 4)
        found = [some async for some in SlicedReader(work.clock).read(work.slices(12))]
        assert found == [[0, 2], [4, 6], [8, 10]]

    asyncio.run(main())


def test_many_readers_do_the_work_of_one_in_a_turn_and_each_gets_its_turn() -> None:
    async def main() -> None:
        work = Work(SLICE_SECONDS)
        reader = SlicedReader(work.clock)
        ended: list[int] = []

        async def read(number: int) -> None:
            assert [one async for some in reader.read(work.slices(20)) for one in some] == list(
                range(0, 20, 2)
            )
            ended.append(work.done)

        readers = [asyncio.create_task(read(number)) for number in range(5)]
        while not all(task.done() for task in readers):
            before = work.done
            await asyncio.sleep(0)
            assert work.done - before <= 1
        assert min(ended) > 90  # of 100: the first to end was not served first

    asyncio.run(main())


def test_after_a_long_slice_the_loop_is_left_for_as_long() -> None:
    async def main() -> None:
        work = Work(10 * SLICE_SECONDS)
        pauses: list[float] = []

        async def pause(seconds: float) -> None:
            pauses.append(seconds)
            await asyncio.sleep(0)

        reader = SlicedReader(work.clock, pause)
        assert [some async for some in reader.read(work.slices(1))] == [[0]]
        assert pauses[:2] == [0, pytest.approx(8 * SLICE_SECONDS)]

    asyncio.run(main())


def test_nothing_is_read_in_advance_nor_after_the_end_of_the_reader() -> None:
    async def main() -> None:
        work = Work(SLICE_SECONDS)
        async with aclosing(SlicedReader(work.clock).read(work.slices(100))) as slices:
            async for _ in slices:
                for _ in range(10):
                    await asyncio.sleep(0)
                assert work.done == 1
                break
        assert work.done == 1

    asyncio.run(main())


def test_an_error_of_a_slice_reaches_its_reader_and_no_other() -> None:
    def failing() -> Iterator[Sequence[int]]:
        yield [1]
        raise LookupError("gone")

    async def main() -> None:
        reader = SlicedReader()
        with pytest.raises(LookupError, match="gone"):
            assert [some async for some in reader.read(failing())] == [[1]]
        assert [some async for some in reader.read(iter([[2]]))] == [[2]]

    asyncio.run(main())
