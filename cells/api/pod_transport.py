"""Requests to agents in a cluster: ``waggle api`` in their containers, by the API server's pods/exec.

A kubeconfig gives the rights, and no port is opened. The command prints the answer as the agent
has sent it, status line included, so that the client here may be of another version than the agent.
A thread has the event loop of all requests; threads that ask wait for theirs.
"""

from __future__ import annotations

import asyncio
import http.client
import io
import queue
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import aclosing, contextmanager, suppress
from typing import Any, Final, Self, TypeVar, cast

from cells.api.transport import AgentError
from resources.kubernetes import Access, Connection, KubernetesError, StatusError
from resources.kubernetes.errors import Unreachable
from resources.kubernetes.exec import CommandFailed, Container, run_command

MAX_ANSWER_OCTETS: Final = 256 * 1024 * 1024
QUEUED_PIECES: Final = 64
"""Messages that wait for the thread that reads them; the API server waits meanwhile."""
FLOWING_FACTOR: Final = 6
"""The times of the limit after which an answer that still comes is given up: it may have no end."""
NOT_FOUND_STATUSES: Final = (126, 127)
"""Exit statuses of a shell and a container runtime without the command."""
USAGE_STATUS: Final = 2
CLOSE_SECONDS: Final = 5.0
"""For the end of all requests: a busy machine needs a while."""

T = TypeVar("T")


class ClusterLoop:
    """An event loop in a thread, with a connection to an API server. A context manager."""

    def __init__(self, access: Access, connect_seconds: float) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="api", daemon=True)
        self.connection = Connection(access, connect_seconds)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection and end the thread."""
        with suppress(TimeoutError):
            self.run(self._close(), CLOSE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_SECONDS)
        if not self._thread.is_alive():
            # A connection that was aborted in the last turn is closed in the next one.
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.close()

    def run(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        """Return the result of a coroutine. Raises `TimeoutError`, and what the coroutine raises."""

        async def limited() -> T:
            async with asyncio.timeout(seconds):
                return await work

        return asyncio.run_coroutine_threadsafe(limited(), self._loop).result()

    async def _close(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self.connection.close()

    def wake(self, function: Callable[[], object]) -> None:
        """Call a function in the loop."""
        self._loop.call_soon_threadsafe(function)

    def start(self, work: Coroutine[Any, Any, None]) -> Future[None]:
        """Start a coroutine; the future cancels it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)


class PodTransport:
    """A transport to the agent in one container; ``seconds`` limits each whole request."""

    program = "agent"

    def __init__(self, loop: ClusterLoop, container: Container, seconds: float) -> None:
        self._loop = loop
        self._container = container
        self._seconds = seconds

    @property
    def place(self) -> str:
        """The Pod."""
        return f"{self._container.namespace}/{self._container.pod}"

    @contextmanager
    def request(
        self,
        method: str,
        target: str,
        content: str | None = None,
        *,
        timeout: float,
        endless: bool = False,
    ) -> Iterator[http.client.HTTPResponse]:
        """See `cells.api.transport.Transport`; only a GET that ends, in the time of the transport."""
        del timeout
        if method != "GET" or content is not None or endless:
            raise AgentError("NotSupported", "only reads of one answer are possible over pods/exec")
        output = Output(self._loop.wake, self._seconds)
        command = ("waggle", "api", "--include", target)
        work = self._loop.start(self._run(command, output))
        response = http.client.HTTPResponse(cast("Any", output), method="GET")
        try:
            response.begin()
            yield response
        except http.client.HTTPException as error:
            raise AgentError("BadAnswer", f"{self.place} does not answer like an agent") from error
        finally:
            work.cancel()
            response.close()

    async def _run(self, command: tuple[str, ...], output: Output) -> None:
        pieces = run_command(self._loop.connection, self._container, command)
        has_output = False
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    has_output = True
                    await output.put(piece)
        except CommandFailed as error:
            # With an answer: its status is 400 or more, or the connection broke off.
            output.end(None if has_output else self._of_command(error))
        except KubernetesError as error:
            output.end(self._of_request(error))
        except Exception as error:
            output.end(AgentError("AgentUnreachable", f"{type(error).__name__}: {error}"))
            raise
        else:
            output.end(None)

    def _of_command(self, error: CommandFailed) -> AgentError:
        if error.status is None and "executable file not found" not in str(error):
            return AgentError("AgentUnreachable", f"no command runs in {self.place}: {error}")
        if error.status in (None, USAGE_STATUS, *NOT_FOUND_STATUSES):
            text = f"its version has no command 'waggle api': {error}"
            return AgentError("AgentTooOld", text)
        return AgentError("AgentNotRunning", str(error).removeprefix("waggle api: "))

    def _of_request(self, error: KubernetesError) -> AgentError:
        namespace, pod = self._container.namespace, self._container.pod
        if isinstance(error, StatusError):
            if error.status == 401:
                return AgentError("Forbidden", "the API server rejects the credentials")
            if error.status == 403:
                text = f"not allowed to get and create pods/exec in namespace {namespace}"
                return AgentError("Forbidden", text)
            if error.status == 404:
                return AgentError("AgentNotRunning", f"the Pod {namespace}/{pod} does not exist")
            text = f"the API server answers {error}: it may not reach the node's kubelet"
            return AgentError("AgentUnreachable", text)
        code = "ClusterUnreachable" if isinstance(error, Unreachable) else "AgentUnreachable"
        return AgentError(code, str(error))


class Output(io.RawIOBase):
    """The output of a command as a file; `http.client.HTTPResponse` takes it for a socket."""

    def __init__(self, wake: Callable[[Callable[[], object]], None], seconds: float) -> None:
        """``wake`` calls a function in the event loop, which adds the pieces."""
        self._pieces: queue.Queue[bytes | AgentError | None] = queue.Queue()
        self._room = asyncio.Semaphore(QUEUED_PIECES)
        self._wake = wake
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._left = b""
        self._octets = 0
        self._ended = False

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return the file of the response."""
        del mode
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any, /) -> int:  # noqa: ANN401  a buffer
        """Read what has come. Raises `AgentError`, also once the time is over."""
        if not self._left and not self._ended:
            self._left = self._next()
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size

    def _next(self) -> bytes:
        left = self._deadline - time.monotonic()
        try:
            piece = self._pieces.get(timeout=max(0.0, left))
        except queue.Empty:
            raise self._late() from None
        if piece is not None and left < self._seconds * (1 - FLOWING_FACTOR):
            raise self._late()
        if isinstance(piece, AgentError):
            raise piece
        if piece is None:
            self._ended = True
            return b""
        self._wake(self._room.release)
        self._octets += len(piece)
        if self._octets > MAX_ANSWER_OCTETS:
            text = f"the answer has more than {MAX_ANSWER_OCTETS >> 20} MiB"
            raise AgentError("TooLong", text)
        return piece

    def _late(self) -> AgentError:
        return AgentError("TimedOut", f"no complete answer within {self._seconds:g} s")

    async def put(self, piece: bytes) -> None:
        """Add what has come, once there is room for it."""
        await self._room.acquire()
        self._pieces.put(piece)

    def end(self, error: AgentError | None) -> None:
        """Add the end of the output."""
        self._pieces.put(error)
