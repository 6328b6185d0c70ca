"""The agent's end: greetings, versions, and what ends a connection."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import pytest
import uvloop

from cells.hive import Health as ScopeHealth
from cells.hive.child_process import ChildProcess
from reconcilers.kernel.writer.client import WriterClient
from reconcilers.kernel.writer.protocol import CODEC
from reconcilers.kernel.writer.protocol_messages import (
    Batch,
    Freed,
    FromWriter,
    Health,
    Hello,
    Listing,
    Routes,
    RouteTable,
    Settings,
)
from tests.support.netns import Link
from tests.support.wait import until


class Wire(asyncio.Transport):
    """What the client writes to."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def get_write_buffer_size(self) -> int:
        return 1  # so that everything is written here

    def close(self) -> None:
        self.closed = True


class Lab:
    """A client with a connection."""

    def __init__(self) -> None:
        self.client = WriterClient("test")
        self.events: list[object] = []
        self.client.follow(lambda: self.events.append("connected"), self.events.append)
        self.wire = Wire()
        self.client.connection_made(self.wire)

    def sent(self) -> list[object]:
        return list(CODEC.decoder().feed(self.wire.written))


def test_both_greet_and_then_messages_pass() -> None:
    lab = Lab()
    assert lab.sent() == [Hello("test")]
    lab.client.send(Settings())  # too early
    lab.client.data_received(CODEC.encode(Hello("writer")) + CODEC.encode(Health("")))
    lab.client.send(Settings(protocol=7))
    assert lab.events == ["connected", Health("")]
    assert lab.sent() == [Hello("test"), Settings(protocol=7)]
    assert lab.client.version == 1


def test_a_writer_of_another_version_is_a_problem() -> None:
    lab = Lab()
    lab.client.data_received(CODEC.encode(Hello("writer 9", (8, 9))))
    assert lab.wire.closed
    assert lab.client.problem == ("writer 9 speaks versions 8-9 of the messages, this program 1-1")
    assert lab.events == []


def test_what_is_no_message_ends_the_connection() -> None:
    lab = Lab()
    lab.client.data_received(b"\xff" * 8)
    assert lab.wire.closed
    assert lab.client.problem


def test_a_connection_that_is_closed_before_a_greeting_is_a_refusal() -> None:
    lab = Lab()
    lab.client.connection_lost(None)
    assert "another agent" in lab.client.problem
    lab.client.connection_made(lab.wire)
    lab.client.data_received(CODEC.encode(Hello("writer")))
    assert lab.client.problem == ""


def test_after_a_connection_is_lost_what_is_sent_is_dropped() -> None:
    lab = Lab()
    lab.client.data_received(CODEC.encode(Hello("writer")))
    lab.client.connection_lost(None)
    lab.client.send(Settings())
    assert lab.sent() == [Hello("test")]
    again = Wire()
    lab.client.connection_made(again)
    lab.client.data_received(CODEC.encode(Hello("writer")) + CODEC.encode(Freed(())))
    assert lab.events == ["connected", "connected", Freed(())]


def test_a_message_is_sent_within_the_turn_of_the_loop_unless_others_wait() -> None:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    client = WriterClient("test")

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_unix_connection(lambda: client, sock=ours)
        theirs.send(CODEC.encode(Hello("writer")))
        await until(lambda: client.is_connected)
        theirs.recv(1 << 16)
        client.send(Settings())
        assert list(CODEC.decoder().feed(theirs.recv(1 << 16))) == [Settings()]
        long = Batch(1, removed=(Routes(RouteTable(254, 2, 20), bytes(1 << 22)),))
        client.send(long)
        client.send(Settings())
        decoder, messages = CODEC.decoder(), list[object]()
        while len(messages) < 2:
            messages += decoder.feed(await loop.sock_recv(theirs, 1 << 20))
        assert messages == [long, Settings()]
        transport.close()
        await client.disconnected()

    with theirs, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())


@pytest.mark.netns
@pytest.mark.program
def test_a_writer_that_is_killed_is_started_again_by_its_keeper(link: Link) -> None:
    """The agent gives the capability up, so that it could not start another writer."""
    client = WriterClient("test")
    listed: asyncio.Queue[FromWriter] = asyncio.Queue()
    client.follow(lambda: client.send(Settings()), listed.put_nowait)
    top = Path(__file__).parents[4]

    async def scenario() -> None:
        command = [*link.left.command(), sys.executable, "-m", "waggle_kernel"]
        child = ChildProcess("kernel", command, lambda: client, ScopeHealth())
        job = asyncio.create_task(child.run())
        try:
            for _ in range(3):
                while not isinstance(await listed.get(), Listing):
                    pass
                assert child.pid is not None
                writer = _child(child.pid)
                assert _resident(writer) < 40
                os.kill(writer, signal.SIGKILL)
        finally:
            keeper = child.pid
            job.cancel()
            await asyncio.wait({job})
        with pytest.raises(ProcessLookupError):
            os.kill(keeper or 0, 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{top}:{top / 'cmd'}")
        asyncio.run(asyncio.wait_for(scenario(), 200))


def _child(pid: int) -> int:
    """Return the only child of a process."""
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


def _resident(pid: int) -> float:
    """Return the resident memory of a process in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024
