"""How requests reach an agent or a router: the transport of `cells.api.client`.

A transport carries one request, and returns the response as it comes. `UnixTransport` is HTTP of the
standard library over the program's Unix socket, so that a question costs as little as the answer.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, Protocol

from cells.api.agent_socket import MAX_PATH, LongPathError, OtherUserError, connected

LINES: Final = "application/jsonl"
"""The type of an answer without an end: an item a line."""


class AgentError(Exception):
    """No answer, or a refusal; ``code`` is for programs, ``str()`` for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Transport(Protocol):
    """A way to one program."""

    @property
    def program(self) -> str:
        """The program at the other end, for errors: agent or router."""

    @property
    def place(self) -> str:
        """The address of the program, for errors."""

    def request(
        self,
        method: str,
        target: str,
        content: str | None = None,
        *,
        timeout: float,
        endless: bool = False,
    ) -> AbstractContextManager[http.client.HTTPResponse]:
        """Send a request, and yield the response; raises `AgentError`.

        ``timeout``: seconds without an octet. Between two lines of an ``endless`` answer any time may
        pass.
        """


class UnixTransport:
    """A transport over the Unix socket of a program."""

    def __init__(self, path: Path, program: str = "agent") -> None:
        self.path = path
        self.program = program

    @property
    def place(self) -> str:
        """The path of the socket."""
        return str(self.path)

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
        """See `Transport`."""
        path, program = self.path, self.program
        connection = _UnixConnection(path, timeout)
        try:
            connection.request(method, target, content)
            sock = connection.sock
            response = connection.getresponse()
            if endless or response.getheader("Content-Type", "").startswith(LINES):
                sock.settimeout(None)
            yield response
        except FileNotFoundError:
            raise AgentError(
                "AgentNotRunning",
                f"no {program} runs here: there is no socket {path} (see --socket)",
            ) from None
        except ConnectionRefusedError:
            raise AgentError(
                "AgentNotRunning",
                f"no {program} runs here: no process listens on {path} (see --socket)",
            ) from None
        except PermissionError:
            raise AgentError(
                "Forbidden", f"not allowed to open {path}: run as the {program}'s user"
            ) from None
        except http.client.IncompleteRead as error:
            raise AgentError(
                "AgentUnreachable", f"the {program} at {path} has ended within its answer"
            ) from error
        except OSError as error:
            raise AgentError(
                "AgentUnreachable", f"the {program} at {path} cannot be reached: {error}"
            ) from error
        except http.client.HTTPException as error:
            like = "an agent" if program == "agent" else f"a {program}"
            raise AgentError("BadAnswer", f"{path} does not answer like {like}") from error
        finally:
            connection.close()


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path
        self._timeout = timeout

    def connect(self) -> None:
        """Connect to the socket instead of to a host."""
        try:
            self.sock = connected(self._path, self._timeout)
        except LongPathError:
            text = (
                f"no agent runs here: {self._path} is longer than {MAX_PATH} bytes (see --socket)"
            )
            raise AgentError("AgentNotRunning", text) from None
        except OtherUserError:
            text = f"the process at {self._path} is another user's"
            raise AgentError("Forbidden", text) from None
