"""Requests to a running agent or router: an answer within a time-out, or a stream.

A `Client` sends requests to one program, over any transport (`cells.api.transport`).
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlencode

from cells.api.streamed_list import StreamedList
from cells.api.transport import AgentError, Transport, UnixTransport

__all__ = ["AgentError", "Client", "at_socket"]

TIMEOUT = 10.0
ACTION_TIMEOUT = 120.0
"""Seconds; an action leaves the agent's loop to its sessions for half of the time."""
READ_OCTETS = 65536

Parameters: TypeAlias = Mapping[str, str | None]
"""The parameters of a query; members of None are omitted."""


def at_socket(path: Path, program: str = "agent") -> Client:
    """Return the client of the agent, or other program, that listens on a Unix socket."""
    return Client(UnixTransport(path, program))


class Client:
    """The local API of one program. Each method raises `AgentError`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self, path: str, query: Parameters) -> dict[str, Any]:
        """Return the answer of a path."""
        with self._transport.request("GET", _target(path, query), timeout=TIMEOUT) as response:
            return self._answer(response)

    def get_list(self, path: str, query: Parameters) -> StreamedList:
        """Return the answer of a path, whose items are read as they arrive.

        Reading the items raises `AgentError`, too.
        """
        broken = self._bad_answer()
        answer = StreamedList(self._pieces(_target(path, query)), "items", broken)
        if "apiVersion" not in answer.head:
            raise broken
        return answer

    def get_plain(self, path: str, query: Parameters) -> tuple[int, str]:
        """Return status and body of an answer of another form."""
        with self._transport.request("GET", _target(path, query), timeout=TIMEOUT) as response:
            return response.status, response.read().decode()

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Request an action and return its result once it is done."""
        content = None if body is None else json.dumps(body)
        request = self._transport.request("POST", path, content, timeout=ACTION_TIMEOUT)
        with request as response:
            return self._answer(response)

    def stream(self, path: str, query: Parameters) -> Iterator[dict[str, Any]]:
        """Yield the items of an answer that goes on, as they come; raises when it ends."""
        request = self._transport.request(
            "GET", _target(path, query), timeout=TIMEOUT, endless=True
        )
        with request as response:
            if response.status >= 400:
                first = (self._answer(response)["errors"] or [{}])[0]
                raise AgentError(first.get("code", "Refused"), first.get("message", "refused"))
            while line := response.readline():
                item = json.loads(line)
                if "errors" in item:
                    raise AgentError(item["errors"][0]["code"], item["errors"][0]["message"])
                yield item
        raise AgentError("AgentStopped", "the agent has closed the connection")

    def _pieces(self, target: str) -> Iterator[str]:
        text = codecs.getincrementaldecoder("utf-8")("replace")
        with self._transport.request("GET", target, timeout=TIMEOUT) as response:
            if response.status >= 400:
                yield json.dumps(self._answer(response), separators=(",", ":"))
                return
            while data := response.read1(READ_OCTETS):
                yield text.decode(data)

    def _answer(self, response: HTTPResponse) -> dict[str, Any]:
        try:
            answer = json.loads(response.read())
        except ValueError as error:
            raise self._bad_answer() from error
        if not isinstance(answer, dict) or "items" not in answer:
            raise self._bad_answer()
        if response.status >= 400:
            first = (answer.get("errors") or [{}])[0]
            if first.get("code") == "NotFound":
                return answer  # an answer to the question: there is none of that name
            raise AgentError(
                first.get("code", "Refused"), first.get("message", f"status {response.status}")
            )
        return answer

    def _bad_answer(self) -> AgentError:
        program = self._transport.program
        like = "an agent" if program == "agent" else f"a {program}"
        return AgentError("BadAnswer", f"{self._transport.place} does not answer like {like}")


def _target(path: str, query: Parameters) -> str:
    given = {key: value for key, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path
