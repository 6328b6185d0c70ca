"""A child process: started, connected, its log and its health; its end, and the program's."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import structlog

from cells.hive import Health, Level
from cells.hive.child_process import ChildEndedError, ChildProcess, stay_connected

pytestmark = pytest.mark.program

ECHO = """
import os, select, signal, socket, sys
{before}
print("info: ready", file=sys.stderr, flush=True)
print("strange", file=sys.stderr, flush=True)
assert sys.argv[-2] == "--listener"
listener = socket.socket(fileno=int(sys.argv[-1]))
connection, inputs = None, [listener] + ([sys.stdin] if sys.argv[1] == "tied" else [])
while True:
    for ready in select.select(inputs, [], [])[0]:
        if ready is listener:
            connection, _ = listener.accept()
            inputs.append(connection)
        elif ready is sys.stdin:
            if not os.read(0, 100) and not {stubborn}:
                sys.exit(0)
            inputs.remove(sys.stdin)
        else:
            octets = ready.recv(100)
            if octets == b"die":
                os._exit(3)
            if octets == b"hang up" or not octets:
                ready.close()
                inputs.remove(ready)
            else:
                ready.send(octets.upper())
"""


class Client(asyncio.Protocol):
    """What receives the octets of all connections."""

    problem = ""

    def __init__(self) -> None:
        self.received: asyncio.Queue[bytes] = asyncio.Queue()
        self.transport: asyncio.Transport | None = None
        self.connections = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.connections += 1
        self.received.put_nowait(b"connected")

    def data_received(self, data: bytes) -> None:
        self.received.put_nowait(data)

    def connection_lost(self, exc: Exception | None) -> None:
        assert exc is None
        self.transport = None

    @property
    def is_connected(self) -> bool:
        return self.transport is not None

    async def ask(self, octets: bytes) -> bytes:
        assert self.transport is not None
        self.transport.write(octets)
        return await self.received.get()


class Lab:
    """A child process and its client."""

    def __init__(
        self, *, before: str = "", stubborn: bool = False, survives: Path | None = None
    ) -> None:
        self.client = Client()
        self.health = Health()
        self.started = 0
        kind = "tied" if survives is None else "free"
        script = ECHO.format(before=before, stubborn=stubborn)
        self.child = ChildProcess(
            "echo",
            [sys.executable, "-c", script, kind],
            lambda: self.client,
            self.health,
            survives=survives,
            started=self._count,
        )

    def _count(self) -> None:
        self.started += 1

    def run(self, scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async def both() -> None:
            job = asyncio.create_task(self.child.run())
            try:
                assert await self.client.received.get() == b"connected"
                await scenario()
            finally:
                job.cancel()
                with contextlib.suppress(asyncio.CancelledError, ChildEndedError):
                    await job

        asyncio.run(asyncio.wait_for(both(), 60))


def alive(pid: int | None) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def until(right: Callable[[], bool]) -> None:
    while not right():  # noqa: ASYNC110  another process makes it so
        await asyncio.sleep(0.01)


def test_a_child_is_started_connected_and_ends_with_the_program() -> None:
    lab = Lab()
    pids: list[int | None] = []

    async def scenario() -> None:
        assert await lab.client.ask(b"hello") == b"HELLO"
        assert lab.health.level() is Level.OK
        assert lab.started == 1
        assert lab.child.pid is not None
        pids.append(lab.child.pid)

    lab.run(scenario)
    assert not alive(pids[0])
    assert lab.child.pid is None


def test_a_prestarted_child_is_used() -> None:
    lab = Lab()
    pids: list[int | None] = []

    async def scenario() -> None:
        assert lab.child.pid == pids[0]
        assert lab.started == 1

    async def both() -> None:
        await lab.child.start()
        pids.append(lab.child.pid)
        job = asyncio.create_task(lab.child.run())
        assert await lab.client.received.get() == b"connected"
        await scenario()
        job.cancel()
        await asyncio.wait({job})
        await lab.child.stop()
        assert not alive(pids[0])
        await lab.child.start()
        pids.append(lab.child.pid)
        await lab.child.stop()
        assert not alive(pids[1])

    asyncio.run(asyncio.wait_for(both(), 60))


def test_the_log_of_a_child_is_in_ours() -> None:
    lab = Lab()
    with structlog.testing.capture_logs() as logs:

        async def scenario() -> None:
            await until(lambda: sum(e["event_name"].startswith("child.") for e in logs) >= 3)

        lab.run(scenario)
    lines = [(e["log_level"], e["event_name"], e.get("text")) for e in logs]
    assert lines == [
        ("info", "child.started", None),
        ("info", "child.info", "ready"),
        ("error", "child.error", "strange"),
    ]


@pytest.mark.parametrize(
    ("end", "how"), [(b"die", "with status 3"), (signal.SIGKILL, "by SIGKILL")]
)
def test_the_end_of_a_child_ends_its_job(end: bytes | signal.Signals, how: str) -> None:
    lab = Lab()

    async def both() -> None:
        job = asyncio.create_task(lab.child.run())
        await lab.client.received.get()
        if isinstance(end, bytes):
            assert lab.client.transport is not None
            lab.client.transport.write(end)
        else:
            assert lab.child.pid is not None
            os.kill(lab.child.pid, end)
        with pytest.raises(ChildEndedError, match=f"the process echo has ended {how}"):
            await job
        assert lab.health.level() is Level.DEGRADED

    asyncio.run(asyncio.wait_for(both(), 60))


def test_a_lost_connection_is_made_again() -> None:
    lab = Lab()

    async def scenario() -> None:
        assert await lab.client.ask(b"hang up") == b"connected"
        assert await lab.client.ask(b"again") == b"AGAIN"
        assert lab.client.connections == 2

    lab.run(scenario)


def test_a_child_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cells.hive.child_process.END_SECONDS", 0.1)
    lab = Lab(before="signal.signal(signal.SIGTERM, signal.SIG_IGN)", stubborn=True)
    pids: list[int | None] = []

    async def scenario() -> None:
        pids.append(lab.child.pid)

    lab.run(scenario)
    assert not alive(pids[0])


def test_a_child_that_survives_serves_the_next_program(tmp_path: Path) -> None:
    path = tmp_path / "echo.sock"
    first, second = Lab(survives=path), Lab(survives=path)
    pids: list[int | None] = []

    async def scenario() -> None:
        pids.append(first.child.pid)

    async def next_scenario() -> None:
        assert await second.client.ask(b"hello") == b"HELLO"
        assert second.started == 0

    first.run(scenario)
    try:
        assert alive(pids[0])
        second.run(next_scenario)
    finally:
        if pids[0] is not None:
            os.kill(pids[0], signal.SIGKILL)


def test_a_process_that_cannot_be_connected_to_is_not_taken_for_dead(tmp_path: Path) -> None:
    """Its queue of connections is full, for example: a second process would have the same files."""
    path = tmp_path / "other.sock"
    health = Health()

    async def scenario() -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.bind(str(path))
            job = asyncio.create_task(
                stay_connected(str(path), Client, health, "other", until_refused=True)
            )
            await until(lambda: health.level() is Level.DEGRADED)
            assert not job.done()
            job.cancel()
        path.unlink()
        await stay_connected(str(path), Client, health, "other", until_refused=True)

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_the_other_side_of_a_connection_may_start_later(tmp_path: Path) -> None:
    path = tmp_path / "late.sock"
    client, health = Client(), Health()

    async def scenario() -> None:
        job = asyncio.create_task(stay_connected(str(path), lambda: client, health, "late"))
        await until(lambda: health.level() is Level.DEGRADED)
        assert health.status is not None
        assert "no connection to late" in health.status.message
        server = await asyncio.start_unix_server(_nothing, str(path))
        async with server:
            assert await client.received.get() == b"connected"
            job.cancel()
            await asyncio.wait({job})

    asyncio.run(asyncio.wait_for(scenario(), 60))


class Stranger(Client):
    """A client that does not understand the other side."""

    problem = "other speaks versions 2-2 of the messages, this program 1-1"

    @property
    def is_connected(self) -> bool:
        return False

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        assert self.transport is not None
        self.transport.close()


def test_another_side_that_is_not_understood_is_never_well(tmp_path: Path) -> None:
    path = tmp_path / "other.sock"
    client, health = Stranger(), Health()
    levels: list[Level] = []

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        levels.append(health.level())
        await writer.drain()
        writer.close()

    async def scenario() -> None:
        async with await asyncio.start_unix_server(greet, str(path)):
            job = asyncio.create_task(stay_connected(str(path), lambda: client, health, "other"))
            await until(lambda: client.connections == 3)
            job.cancel()
            await asyncio.wait({job})

    asyncio.run(asyncio.wait_for(scenario(), 60))
    assert health.status is not None
    assert (health.level(), health.status.message) == (Level.DEGRADED, Stranger.problem)
    assert levels[1:] == [Level.DEGRADED] * len(levels[1:])


async def _nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()
