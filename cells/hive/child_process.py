"""A child process of the program: started, watched, connected, and ended with it or left alone.

What needs a capability of its own, or may not stand still while the event loop does, is a process. It
listens on a Unix socket that it is handed (``--listener FD``). The program connects to it, again after
each loss of the connection, with messages whose version both sides negotiate (an `asyncio.Protocol`, as
`reconcilers.process.client`). So the other side may as well be a container of the same Pod
(`stay_connected`).

`ChildProcess.run` is a job: its supervisor starts it again, with a back-off, after the process ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final, Protocol

import structlog

from cells.hive.health import Health

FIRST_PAUSE: Final = 0.05
LAST_PAUSE: Final = 5.0
"""Seconds between two attempts to connect, which double."""
END_SECONDS: Final = 1.0
"""For a process to end by itself, and then by SIGTERM, before it is killed."""
MAX_LINE: Final = 4096
"""Octets of a line of the child's log."""

log = structlog.get_logger("waggle.hive")


class ChildEndedError(Exception):
    """A child process has ended while the program runs."""

    def __init__(self, name: str, status: int | None) -> None:
        """``status``: of the process; None where it is not known, as it is no child."""
        how = "" if status is None else f" with status {status}"
        if status is not None and status < 0:
            how = f" by {signal.Signals(-status).name}"
        super().__init__(f"the process {name} has ended{how}")


class Client(Protocol):
    """This program's end of a connection; see `asyncio.Protocol`."""

    @property
    def is_connected(self) -> bool:
        """Whether both sides understand each other."""

    @property
    def problem(self) -> str:
        """The fault of the process or of the last connection; empty without a fault."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a connection."""

    def data_received(self, data: bytes) -> None:
        """Take octets."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Take the end of the connection."""


async def stay_connected(
    address: str | bytes,
    protocol: Callable[[], Client],
    health: Health,
    name: str,
    *,
    until_refused: bool = False,
) -> None:
    """Keep a connection to a Unix socket until cancelled; the other side may start later.

    ``protocol`` returns what receives the octets of a connection. With ``until_refused`` it returns
    where no process listens, at first or later.
    """
    loop = asyncio.get_running_loop()
    pause = FIRST_PAUSE
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.setblocking(False)
        lost: asyncio.Future[None] = loop.create_future()
        transport: asyncio.Transport | None = None
        try:
            await loop.sock_connect(connection, address)
            client = protocol()
            watched = _Watched(client, lost, lambda: health.ok(f"connected to {name}"))
            transport, _ = await loop.create_unix_connection(lambda w=watched: w, sock=connection)  # type: ignore[misc]
        except OSError as error:
            connection.close()
            if until_refused and isinstance(error, ConnectionRefusedError | FileNotFoundError):
                return
            health.degraded(f"no connection to {name}: {error.strerror or error}")
        else:
            began = loop.time()
            try:
                await lost
            finally:
                # What was sent last is delivered before the end.
                transport.close()
            health.degraded(client.problem or f"the connection to {name} was lost")
            if loop.time() - began >= LAST_PAUSE:
                pause = FIRST_PAUSE
        await asyncio.sleep(pause)
        pause = min(2 * pause, LAST_PAUSE)


class _Watched(asyncio.Protocol):
    """Passes a connection on, and notes its beginning and its end."""

    def __init__(
        self, client: Client, lost: asyncio.Future[None], connected: Callable[[], None]
    ) -> None:
        """``connected`` is called once both sides understand each other."""
        self._client = client
        self._lost = lost
        self._connected = connected
        self._noted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._client.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self._client.data_received(data)
        if self._client.is_connected and not self._noted:
            self._noted = True
            self._connected()

    def connection_lost(self, exc: Exception | None) -> None:
        try:
            self._client.connection_lost(exc)
        finally:
            if not self._lost.done():
                self._lost.set_result(None)


class ChildProcess:
    """A process that serves this program."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        protocol: Callable[[], Client],
        health: Health,
        *,
        survives: Path | None = None,
        started: Callable[[], None] = lambda: None,
    ) -> None:
        """``command``: the program, to which ``--listener FD`` is appended.

        ``protocol`` returns what receives the octets of a connection. ``started`` is called once the
        process runs, which has the capabilities of this one by then. With ``survives``, the path of a
        socket, the process is left alone at the end of the program, and the next program connects to
        it; otherwise its standard input ends with this program, and it has to end then.
        """
        self._name = name
        self._command = tuple(command)
        self._protocol = protocol
        self._health = health
        self._survives = survives
        self._started = started
        self._tied: tuple[asyncio.subprocess.Process, bytes] | None = None
        """A process that was started and is not run yet, and its address."""
        self.pid: int | None = None
        """Of the process that runs, if it was started here."""

    async def run(self) -> None:
        """Start the process and stay connected to it. Raises `ChildEndedError` when it has ended."""
        if self._survives is None:
            await self._run_tied()
        else:
            await self._run_free(self._survives)

    async def start(self) -> None:
        """Start the process before `run`, as a hook: for ``started``, which wants to come early.

        What is started and not run is ended by `stop`.
        """
        if self._survives is None and self._tied is None:
            self._tied = await self._spawn()

    async def _spawn(self) -> tuple[asyncio.subprocess.Process, bytes]:
        with _listener(None) as listener:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                "--listener",
                str(listener.fileno()),
                stdin=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=(listener.fileno(),),
                start_new_session=True,
            )
            address: bytes = listener.getsockname()
        self.pid = process.pid
        try:
            self._started()
        except BaseException:
            await self._end(process)
            raise
        return process, address

    async def stop(self) -> None:
        """End a process that was started and has not been run."""
        if self._tied is not None:
            (process, _), self._tied = self._tied, None
            await self._end(process)

    async def _run_tied(self) -> None:
        process, address = self._tied or await self._spawn()
        self._tied = None
        self._log_start(process.pid)
        try:
            async with asyncio.TaskGroup() as group:
                connection = group.create_task(
                    stay_connected(address, self._protocol, self._health, self._name)
                )
                lines = group.create_task(self._copy_log(process.stderr))
                status = await process.wait()
                connection.cancel()
                # A process that it started itself has the log, too, and ends with the input.
                self._end_input(process)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(END_SECONDS):
                        await lines
        finally:
            await self._end(process)
        self._health.degraded(f"{self._name} has ended")
        raise ChildEndedError(self._name, status)

    async def _run_free(self, path: Path) -> None:
        connect = functools.partial(
            stay_connected, str(path), self._protocol, self._health, self._name, until_refused=True
        )
        await connect()  # to the process that a former program left alone
        with _listener(path) as listener, _pipe() as (reading, writing):
            # A parent that ends at once: a child of ours would end with the event loop.
            shell = await asyncio.create_subprocess_exec(
                *("/bin/sh", "-c", 'exec </dev/null; "$@" >&2 & echo $!', self._name),
                *self._command,
                "--listener",
                str(listener.fileno()),
                stdout=writing,
                pass_fds=(listener.fileno(),),
                start_new_session=True,
            )
            await shell.wait()
            # Not until the end of the output: with uvloop the process holds it open.
            pid = reading.readline()
        if not pid:
            raise ChildEndedError(self._name, shell.returncode)
        self.pid = int(pid)
        self._log_start(self.pid)
        self._started()
        try:
            await connect()
        finally:
            self.pid = None
        self._health.degraded(f"{self._name} has ended")
        raise ChildEndedError(self._name, None)

    def _log_start(self, pid: int) -> None:
        log.info("child process started", event_name="child.started", process=self._name, pid=pid)

    async def _copy_log(self, stream: asyncio.StreamReader | None) -> None:
        """Write the lines of the child's log to ours: a level, a colon and a text."""
        rest = b""
        while stream is not None and (octets := await stream.read(MAX_LINE)):
            *whole, rest = (rest + octets).split(b"\n")
            if len(rest) > MAX_LINE:
                whole, rest = [*whole, rest], b""
            for line in whole:
                level, colon, text = line.decode(errors="replace").partition(": ")
                if not colon or level not in ("info", "error"):
                    level, text = "error", f"{level}{colon}{text}"
                if level == "error":
                    log.error(
                        "child process", event_name="child.error", process=self._name, text=text
                    )
                else:
                    log.info(
                        "child process", event_name="child.info", process=self._name, text=text
                    )

    @staticmethod
    def _end_input(process: asyncio.subprocess.Process) -> None:
        if process.stdin is not None:
            process.stdin.close()

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """End the process: by the end of its standard input, by SIGTERM, by SIGKILL."""
        self.pid = None
        self._end_input(process)
        for end in (None, process.terminate, process.kill):
            if process.returncode is not None:
                return
            if end is not None:
                with contextlib.suppress(ProcessLookupError):
                    end()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(END_SECONDS):
                    await process.wait()


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[BinaryIO, int]]:
    """Open a pipe whose reading end does not block, and close both ends.

    With a pipe of asyncio a process may have ended, and its output be open, when the loop is closed.
    """
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        with os.fdopen(reading, "rb", buffering=0) as file:
            yield file, writing
    finally:
        os.close(writing)


def _listener(path: Path | None) -> socket.socket:
    """Listen on a path, or on a name in no folder that Linux finds."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    if path is None:
        listener.bind("")
    else:
        path.unlink(missing_ok=True)
        listener.bind(str(path))
        path.chmod(0o600)
    listener.listen(8)
    return listener
