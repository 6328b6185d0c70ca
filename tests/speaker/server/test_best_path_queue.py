"""The reader's end of a stream of best paths."""

from __future__ import annotations

import asyncio
from unittest.mock import Mock

import pytest

from speaker.api import FEW_PREFIXES, NO_PATHS, BestPathChange, StreamClosed, TableBegin, TableEnd
from speaker.iana import IPV4_UNICAST
from speaker.server.best_path_queue import BestPathQueue

CHANGE = BestPathChange(IPV4_UNICAST, NO_PATHS, NO_PATHS, (b"\x08\x0a",))


def test_batches_are_taken_together_in_their_order_and_counted() -> None:
    taken: list[int] = []
    queue = BestPathQueue(taken.append, lambda: None)
    queue.put((TableBegin(), CHANGE))
    queue.put((TableEnd(),))
    assert queue.take() == [TableBegin(), CHANGE, TableEnd()]
    assert taken == [2]
    assert not queue.take()
    assert taken == [2], "there is nothing to answer"


def test_a_waiting_reader_is_woken_by_a_batch_and_waits_again_after_it() -> None:
    async def main() -> None:
        queue = BestPathQueue(lambda _: None, lambda: None)
        waiting = asyncio.ensure_future(queue.wait())
        await asyncio.sleep(0)
        assert not waiting.done()
        queue.put((TableBegin(),))
        await waiting
        await queue.wait()
        queue.take()
        waiting = asyncio.ensure_future(queue.wait())
        await asyncio.sleep(0)
        assert not waiting.done()
        queue.end()
        with pytest.raises(StreamClosed):
            await waiting

    asyncio.run(main())


def test_a_batch_of_few_prefixes_is_passed_on_at_once_and_wakes_no_task_that_finds_nothing() -> (
    None
):
    async def main() -> None:
        queue = BestPathQueue(lambda _: None, lambda: None)
        passed: list[object] = []
        taken: list[object] = []

        def take(batch: object) -> None:
            passed.append(batch)
            taken.extend(queue.take())

        queue.on_few = take
        waiting = asyncio.ensure_future(queue.wait())
        await asyncio.sleep(0)
        table = BestPathChange(
            IPV4_UNICAST, NO_PATHS, NO_PATHS, (b"\x08\x0a",) * (FEW_PREFIXES + 1)
        )
        queue.put((table,))
        assert not passed
        queue.put((CHANGE,))
        assert passed == [(CHANGE,)]
        assert taken == [table, CHANGE]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiting.done()
        queue.end()
        with pytest.raises(StreamClosed):
            await waiting

    asyncio.run(main())


def test_a_batch_of_few_prefixes_that_is_taken_at_once_wakes_no_task() -> None:
    queue = BestPathQueue(lambda _: None, lambda: None)

    def take(_: object) -> None:
        queue.take()

    queue.on_few = take
    woken = queue._arrived = Mock(wraps=queue._arrived)
    queue.put((CHANGE,))
    assert not woken.set.called
    queue.on_few = lambda _: None
    queue.put((CHANGE,))
    assert woken.set.called


def test_a_closed_stream_has_nothing_and_is_closed_once() -> None:
    closed: list[None] = []
    queue = BestPathQueue(lambda _: None, lambda: closed.append(None))
    queue.put((TableBegin(),))
    queue.close()
    queue.close()
    assert len(closed) == 1
    queue.put((TableEnd(),))
    assert not queue.take()
    with pytest.raises(StreamClosed):
        asyncio.run(queue.wait())
