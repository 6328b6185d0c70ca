"""Actions of a controller, answered without the HTTP library.

A controller keeps a connection to the Unix socket, and sends each change as one small POST with the
same few fields. In the library such a request is a stream, a URL, a route, a request and a response
object, and after a pause their code is in no cache: that time is added to each change.

What is answered here is one whole request, with fields that change nothing about it, for an action
that waits for nothing; its body may come alone, as the HTTP client of Python sends it. With anything
else the library has the connection from then on: what is malformed, and the order of the answers to
requests that wait, is its decision alone.
"""

from __future__ import annotations

import email.utils
import inspect
import re
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, Final, cast, final

import msgspec

from cells.api.resource import ApiAction, BadRequestError, UnavailableError
from cells.observability.http_connections import server_log
from cells.serve.answers import REFUSED, encode, listed, refusal, refused
from cells.serve.own_hosts import is_own
from resources.errors import INVALID_JSON

Run = Callable[[Any], Sequence[Any]]
Decode = Callable[[bytes], Any]

MAX_HEAD: Final = 1024
"""Octets of the request line and the fields."""
REMEMBERED: Final = 64
"""Heads of requests; a controller has a few, which differ in the path and the length of the body."""
SIZES: Final = 16
"""Of items, of answers within a second."""
END: Final = b"\r\n\r\n"
_HEAD: Final = re.compile(r"POST (/[a-z0-9/-]+) HTTP/1\.1((?:\r\n[A-Za-z-]+: [!-~ ]*[!-~])+)")
_FIELD: Final = re.compile(r"\r\n([A-Za-z-]+): ([!-~ ]+)")
_LENGTH: Final = re.compile("[0-9]{1,6}")
_FIELDS: Final = frozenset(
    ("host", "content-length", "content-type", "user-agent", "accept", "accept-encoding")
)


@final
class _Head:
    """How requests with one request line and the same fields are answered."""

    __slots__ = ("around", "decode", "kind", "length", "run", "second")

    def __init__(self, length: int, kind: str, run: Run, decode: Decode) -> None:
        self.length = length
        """Octets of the body."""
        self.kind = kind
        """Of the answer."""
        self.run = run
        self.decode = decode
        self.second = 0
        self.around: dict[int, tuple[bytes, bytes]] = {}
        """The octets around the items, in answers of this second, by the length of the items."""

    def add(self, size: int) -> tuple[bytes, bytes]:
        """Return the octets around items of a length, which are new in this second."""
        before, _, after = listed(self.kind, ()).partition(b'"items":[]')
        before += b'"items":'
        length = len(before) + size + len(after)
        around = _fields(200, self.second, length) + before, after
        if len(self.around) >= SIZES:
            self.around.clear()
        self.around[size] = around
        return around


class DirectActions:
    """The actions that wait for nothing, by path."""

    def __init__(self, actions: Sequence[ApiAction]) -> None:
        self._actions: dict[str, tuple[str, Run, Decode]] = {
            action.path: (
                action.kind,
                cast("Run", action.run),
                msgspec.json.Decoder(action.body).decode,
            )
            for action in actions
            if not inspect.iscoroutinefunction(action.run)
        }
        self._heads: dict[bytes, _Head] = {}

    def answer(self, octets: bytes) -> bytes | None:
        """Return the answer to a request; None for all that is for the HTTP library.

        A head without its body is not answered yet: the answer is empty.
        """
        # As few functions as possible: after a pause none of them is in a cache.
        fields, end, content = octets.partition(END)
        head = self._heads.get(fields) or self._parsed(fields)
        if head is None or not end:
            return None
        if head.length != len(content):
            return None if content else b""
        second = int(time.time())
        try:
            body = head.decode(content or b"{}")
        except INVALID_JSON as error:
            return _failed(BadRequestError(str(error)), head.kind, second)
        try:
            result = head.run(body)
            items = encode(result if type(result) is list else list(result))
        except Exception as error:  # noqa: BLE001  the answer has it, or the log
            return _failed(error, head.kind, second)
        if second != head.second:
            head.second, head.around = second, {}
        size = len(items)
        before, after = head.around.get(size) or head.add(size)
        return before + items + after

    def _parsed(self, octets: bytes) -> _Head | None:
        if len(octets) > MAX_HEAD:
            return None
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
        if not _LENGTH.fullmatch(length):
            return None
        if len(self._heads) >= REMEMBERED:
            self._heads.clear()
        head = self._heads[octets] = _Head(int(length), *self._actions[match[1]])
        return head


def unavailable(reason: str) -> bytes:
    """Return the answer to requests that nothing can answer now."""
    return _failed(UnavailableError(reason), "Error", int(time.time()))


def _fields(status: int, second: int, length: int) -> bytes:
    """Return the status line and the fields of an answer (RFC 9110, 6.6.1)."""
    http = HTTPStatus(status)
    date = email.utils.formatdate(second, usegmt=True)
    return (
        f"HTTP/1.1 {http.value} {http.phrase}\r\nContent-Type: application/json\r\nDate: {date}\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


def _failed(error: Exception, kind: str, second: int) -> bytes:
    if isinstance(error, REFUSED):
        status, body = refused(error, kind)
    else:
        server_log.error("Error handling request", exc_info=error)
        status, body = 500, refusal("InternalError", "the log has the reason", kind)
    return _fields(status, second, len(body)) + body
