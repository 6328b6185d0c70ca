"""Actions of a controller, answered without the HTTP library.

A controller keeps a connection to the Unix socket, and sends each change as one small POST with the
same few fields. In the library such a request is a stream, a URL, a route, a request and a response
object, and after a pause their code is in no cache: that time is added to each change.

What is answered here is one whole request, with fields that change nothing about it, for an action
that waits for nothing. With anything else the library has the connection from then on: what is
malformed, and the order of the answers to requests that wait, is its decision alone.
"""

from __future__ import annotations

import email.utils
import functools
import inspect
import re
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple, cast

import msgspec
from aiohttp.log import server_logger

from cells.api.resource import ApiAction
from cells.serve.answers import REFUSED, decoded, listed, refusal, refused
from cells.serve.own_sites import is_own

Run = Callable[[Any], Sequence[Any]]

MAX_HEAD: Final = 1024
"""Octets of the request line and the fields."""
REMEMBERED: Final = 64
"""Heads; a controller has a few, which differ in the path and the length of the body."""
END: Final = b"\r\n\r\n"
_HEAD: Final = re.compile(r"POST (/[a-z0-9/-]+) HTTP/1\.1((?:\r\n[A-Za-z-]+: [!-~ ]*[!-~])+)")
_FIELD: Final = re.compile(r"\r\n([A-Za-z-]+): ([!-~ ]+)")
_LENGTH: Final = re.compile("[0-9]{1,6}")
_FIELDS: Final = frozenset(
    ("host", "content-length", "content-type", "user-agent", "accept", "accept-encoding")
)

_PHRASES: Final = {status.value: status.phrase.encode() for status in HTTPStatus}


class _Head(NamedTuple):
    """How requests with one request line and the same fields are answered."""

    length: int
    """Octets of the body."""
    kind: str
    """Of the answer."""
    run: Run
    body: msgspec.json.Decoder[Any]


class DirectActions:
    """The actions that wait for nothing, by path."""

    def __init__(self, actions: Sequence[ApiAction]) -> None:
        self._actions: dict[str, tuple[str, Run, msgspec.json.Decoder[Any]]] = {
            action.path: (action.kind, cast("Run", action.run), msgspec.json.Decoder(action.body))
            for action in actions
            if not inspect.iscoroutinefunction(action.run)
        }
        self._head = functools.lru_cache(REMEMBERED)(self._parsed)

    def answer(self, octets: bytes) -> bytes | None:
        """Return the answer to a request; None for all that is for the HTTP library."""
        fields, _, content = octets.partition(END)
        head = self._head(fields) if len(fields) <= MAX_HEAD else None
        if head is None or head.length != len(content):
            return None
        _, kind, run, decoder = head
        status = 200
        try:
            body = listed(kind, run(decoded(decoder, content)))
        except Exception as error:  # noqa: BLE001  the answer has it, or the log
            status, body = _failed(error, kind)
        return b"HTTP/1.1 %d %s\r\n%s\r\nContent-Length: %d\r\n\r\n%s" % (
            status,
            _PHRASES[status],
            _same_fields(int(time.time())),
            len(body),
            body,
        )

    def _parsed(self, octets: bytes) -> _Head | None:
        match = _HEAD.fullmatch(octets.decode("latin-1"))
        if match is None or match[1] not in self._actions:
            return None
        pairs = [(name.lower(), value) for name, value in _FIELD.findall(match[2])]
        fields = dict(pairs)
        if len(fields) < len(pairs) or not _FIELDS.issuperset(fields):
            return None
        if "host" not in fields or not is_own(fields["host"], dotless=True):
            return None
        length = fields.get("content-length", "")
        return _Head(int(length), *self._actions[match[1]]) if _LENGTH.fullmatch(length) else None


def _failed(error: Exception, kind: str) -> tuple[int, bytes]:
    if isinstance(error, REFUSED):
        return refused(error, kind)
    server_logger.error("Error handling request", exc_info=error)
    return 500, refusal("InternalError", "the log has the reason", kind)


@functools.lru_cache(1)
def _same_fields(second: int) -> bytes:
    """Return the fields of all answers of a second (RFC 9110, 6.6.1)."""
    date = email.utils.formatdate(second, usegmt=True)
    return f"Content-Type: application/json\r\nDate: {date}".encode()
