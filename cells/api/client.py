"""Requests to a running agent or router over its Unix socket: an answer within a time-out, or a stream.

Plain HTTP of the standard library, so that a question costs as little as the answer. ``program`` is
what listens on the socket, for errors.
"""

from __future__ import annotations

import codecs
import http.client
import json
import os
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from cells.api.model import default_path
from cells.api.streamed_list import StreamedList
from cells.unix_socket import MAX_PATH

TIMEOUT = 10.0
ACTION_TIMEOUT = 120.0
"""Seconds; an action leaves the agent's loop to its sessions for half of the time."""
SOCKET_ENV = "WAGGLE_API_SOCKET"
READ_OCTETS = 65536


class AgentError(Exception):
    """No answer, or a refusal; ``code`` is for programs, ``str()`` for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def default_socket() -> Path:
    """Return the path of the socket where an agent of this user listens by default."""
    return Path(os.environ[SOCKET_ENV]) if os.environ.get(SOCKET_ENV) else default_path()


def get(
    path: Path, target: str, query: dict[str, str | None], program: str = "agent"
) -> dict[str, Any]:
    """Return the agent's answer; raises `AgentError`. Query members of None are omitted."""
    with _request(path, "GET", _with_query(target, query), program) as response:
        return _answer(path, response, program)


def get_list(
    path: Path, target: str, query: dict[str, str | None], program: str = "agent"
) -> StreamedList:
    """Return the agent's answer, whose items are read as they arrive; raises `AgentError`.

    Reading the items raises it, too.
    """
    broken = _bad_answer(path, program)
    answer = StreamedList(_pieces(path, _with_query(target, query), program), "items", broken)
    if "apiVersion" not in answer.head:
        raise broken
    return answer


def _pieces(path: Path, target: str, program: str) -> Iterator[str]:
    text = codecs.getincrementaldecoder("utf-8")("replace")
    with _request(path, "GET", target, program) as response:
        if response.status >= 400:
            yield json.dumps(_answer(path, response, program), separators=(",", ":"))
            return
        while data := response.read1(READ_OCTETS):
            yield text.decode(data)


def get_plain(path: Path, target: str, query: dict[str, str | None]) -> tuple[int, str]:
    """Return status and body of an answer of another form; raises `AgentError` without an agent."""
    with _request(path, "GET", _with_query(target, query)) as response:
        return response.status, response.read().decode()


def post(
    path: Path, target: str, body: Mapping[str, Any] | None = None, program: str = "agent"
) -> dict[str, Any]:
    """Request an action and return its result once it is done; raises `AgentError`."""
    content = None if body is None else json.dumps(body)
    with _request(path, "POST", target, program, content, timeout=ACTION_TIMEOUT) as response:
        return _answer(path, response, program)


def stream(path: Path, target: str, query: dict[str, str | None]) -> Iterator[dict[str, Any]]:
    """Yield the items of an answer that goes on, as they come; raises `AgentError` when it ends."""
    with _request(path, "GET", _with_query(target, query), endless=True) as response:
        if response.status >= 400:
            first = (_answer(path, response)["errors"] or [{}])[0]
            raise AgentError(first.get("code", "Refused"), first.get("message", "refused"))
        while line := response.readline():
            item = json.loads(line)
            if "errors" in item:
                raise AgentError(item["errors"][0]["code"], item["errors"][0]["message"])
            yield item
    raise AgentError("AgentStopped", "the agent has closed the connection")


def _with_query(target: str, query: dict[str, str | None]) -> str:
    given = {key: value for key, value in query.items() if value is not None}
    return f"{target}?{urlencode(given)}" if given else target


@contextmanager
def _request(
    path: Path,
    method: str,
    target: str,
    program: str = "agent",
    content: str | None = None,
    *,
    timeout: float = TIMEOUT,
    endless: bool = False,
) -> Iterator[http.client.HTTPResponse]:
    """Send a request; between two lines of an ``endless`` answer any time may pass."""
    connection = _UnixConnection(path, timeout)
    try:
        connection.request(method, target, content)
        sock = connection.sock
        response = connection.getresponse()
        if endless:
            sock.settimeout(None)
        yield response
    except FileNotFoundError:
        raise AgentError(
            "AgentNotRunning", f"no {program} runs here: there is no socket {path} (see --socket)"
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
    except (OSError, http.client.HTTPException) as error:
        raise AgentError(
            "AgentUnreachable", f"the {program} at {path} cannot be reached: {error}"
        ) from error
    finally:
        connection.close()


def _answer(
    path: Path, response: http.client.HTTPResponse, program: str = "agent"
) -> dict[str, Any]:
    try:
        answer = json.loads(response.read())
    except ValueError as error:
        raise _bad_answer(path, program) from error
    if not isinstance(answer, dict) or "items" not in answer:
        raise _bad_answer(path, program)
    if response.status >= 400:
        first = (answer.get("errors") or [{}])[0]
        if first.get("code") == "NotFound":
            return answer  # an answer to the question: there is none of that name
        raise AgentError(
            first.get("code", "Refused"), first.get("message", f"status {response.status}")
        )
    return answer


def _bad_answer(path: Path, program: str) -> AgentError:
    like = "an agent" if program == "agent" else f"a {program}"
    return AgentError("BadAnswer", f"{path} does not answer like {like}")


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket instead of to a host."""
        if len(os.fsencode(self._path)) > MAX_PATH:
            text = (
                f"no agent runs here: {self._path} is longer than {MAX_PATH} bytes (see --socket)"
            )
            raise AgentError("AgentNotRunning", text)
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))
        credentials = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        _, user, _ = struct.unpack("3i", credentials)
        if os.geteuid() not in (0, user) and user != 0:
            raise AgentError("Forbidden", f"the process at {self._path} is another user's")
