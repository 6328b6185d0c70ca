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

from cells.api.resource import ApiAction, BadRequestError
from cells.serve.answers import REFUSED, encode, listed, refusal, refused
from cells.serve.own_sites import is_own
from resources.errors import INVALID_JSON

Run = Callable[[Any], Sequence[Any]]
Decode = Callable[[bytes], Any]

MAX_HEAD: Final = 1024
"""Octets of the request line and the fields."""
REMEMBERED: Final = 64
"""Heads; a controller has a few, which differ in the path and the length of the body."""
KINDS: Final = 8
"""Kinds of answers, of one second, whose same octets are remembered."""
END: Final = b"\r\n\r\n"
_HEAD: Final = re.compile(r"POST (/[a-z0-9/-]+) HTTP/1\.1((?:\r\n[A-Za-z-]+: [!-~ ]*[!-~])+)")
_FIELD: Final = re.compile(r"\r\n([A-Za-z-]+): ([!-~ ]+)")
_LENGTH: Final = re.compile("[0-9]{1,6}")
_FIELDS: Final = frozenset(
    ("host", "content-length", "content-type", "user-agent", "accept", "accept-encoding")
)


class _Head(NamedTuple):
    """How requests with one request line and the same fields are answered."""

    length: int
    """Octets of the body."""
    kind: str
    """Of the answer."""
    run: Run
    decode: Decode


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
        self._head = functools.lru_cache(REMEMBERED)(self._parsed)

    def answer(self, octets: bytes) -> bytes | None:
        """Return the answer to a request; None for all that is for the HTTP library."""
        fields, _, content = octets.partition(END)
        head = self._head(fields) if len(fields) <= MAX_HEAD else None
        if head is None or head.length != len(content):
            return None
        # As few functions as possible: after a pause each one is in no cache.
        _, kind, run, decode = head
        second = int(time.time())
        try:
            body = decode(content or b"{}")
        except INVALID_JSON as error:
            return _failed(BadRequestError(str(error)), kind, second)
        try:
            items = encode(list(run(body)))
        except Exception as error:  # noqa: BLE001  the answer has it, or the log
            return _failed(error, kind, second)
        start, before, after = _around(kind, second)
        length = len(before) + len(items) + len(after)
        return b"%s%d\r\n\r\n%s%s%s" % (start, length, before, items, after)

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


@functools.lru_cache(KINDS)
def _around(kind: str, second: int) -> tuple[bytes, bytes, bytes]:
    """Return the octets that answers of a second have before their length, and around their items."""
    before, _, after = listed(kind, ()).partition(b'"items":[]')
    return _fields(200, second), before + b'"items":', after


def _fields(status: int, second: int) -> bytes:
    """Return the status line and the fields (RFC 9110, 6.6.1), but for the value of the last one."""
    http = HTTPStatus(status)
    date = email.utils.formatdate(second, usegmt=True)
    return (
        f"HTTP/1.1 {http.value} {http.phrase}\r\nContent-Type: application/json\r\nDate: {date}\r\n"
        "Content-Length: "
    ).encode()


def _failed(error: Exception, kind: str, second: int) -> bytes:
    if isinstance(error, REFUSED):
        status, body = refused(error, kind)
    else:
        server_logger.error("Error handling request", exc_info=error)
        status, body = 500, refusal("InternalError", "the log has the reason", kind)
    return b"%s%d\r\n\r\n%s" % (_fields(status, second), len(body), body)
