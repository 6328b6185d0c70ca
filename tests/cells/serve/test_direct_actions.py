"""What is answered without the HTTP library, and that the library answers the same."""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
import json
import logging
import socket
import sys
import time
from collections.abc import AsyncIterator, Sequence
from http.client import HTTPResponse
from pathlib import Path
from types import FrameType
from typing import Any, cast

import msgspec
import pytest

from cells.api.resource import (
    ApiAction,
    BadRequestError,
    NotFoundError,
    UnavailableError,
)
from cells.serve.api_socket import ApiSocket
from cells.serve.direct_actions import MAX_HEAD, DirectActions

ERRORS = {
    "bad": BadRequestError("that is no number"),
    "none": NotFoundError("there is no peer"),
    "later": UnavailableError("not yet"),
    "fault": RuntimeError("a secret"),
}
HOST = "Host: localhost"


class Change(msgspec.Struct, forbid_unknown_fields=True):
    name: str


def run(body: Change) -> Sequence[dict[str, str]]:
    if body.name in ERRORS:
        raise ERRORS[body.name]
    return [{"changed": body.name}]


async def wait(body: Change) -> Sequence[dict[str, str]]:
    await asyncio.sleep(0)
    return run(body)


ACTIONS = [
    ApiAction(path="/v1/change", kind="ChangeList", run=run, body=Change),
    ApiAction(path="/v1/wait", kind="ChangeList", run=wait, body=Change),
]


def request(
    content: str = '{"name":"a"}',
    *fields: str,
    line: str = "POST /v1/change HTTP/1.1",
    length: str | None = "{}",
    host: str | None = HOST,
) -> bytes:
    lines = [line, *([] if host is None else [host]), *fields]
    if length is not None:
        lines.append(f"Content-Length: {length}".format(len(content)))
    return "\r\n".join([*lines, "", content]).encode("latin-1")


class Received:
    """What `HTTPResponse` reads: octets in place of a socket."""

    def __init__(self, octets: bytes) -> None:
        self.octets = octets

    def makefile(self, *_: object) -> io.BytesIO:
        return io.BytesIO(self.octets)


def answered(octets: bytes) -> tuple[int, dict[str, str], dict[str, Any]]:
    """Return status, fields and body of an answer."""
    response = HTTPResponse(cast("socket.socket", Received(octets)))
    response.begin()
    return response.status, dict(response.headers), json.loads(response.read())


OF_CONTROLLERS = [
    request(),
    request('{"name":"b"}', "User-Agent: Go-http-client/1.1", "Accept-Encoding: gzip"),
    request('{"name":"b"}', "content-type: application/json", "Accept: */*", host="host: 10.0.0.1"),
    request('{"name":"bad"}'),
    request('{"name":"none"}'),
    request('{"name":"later"}'),
    request('{"name":1}'),
    request('{"name":"\xff"}'),
    request('{"name":"a","more":' + "[" * 5000 + "]" * 5000 + "}"),
    request("{"),
    request(""),
    request('{"name":"a","more":1}'),
]
"""One whole request each, of fields that change nothing about it."""
OF_THE_LIBRARY = {
    "a part of its body": request()[:-1],
    "two": request() * 2,
    "more than its body": request() + b" ",
    "no body": request("", length=None),
    "a read": request("", line="GET /v1/change HTTP/1.1", length=None),
    "an unknown path": request(line="POST /v1/other HTTP/1.1"),
    "an action that waits": request(line="POST /v1/wait HTTP/1.1"),
    "a parameter": request(line="POST /v1/change?a=1 HTTP/1.1"),
    "an escaped path": request(line="POST /v1/%63hange HTTP/1.1"),
    "another version": request(line="POST /v1/change HTTP/1.0"),
    "a lower-case method": request(line="post /v1/change HTTP/1.1"),
    "no host": request(host=None),
    "two hosts": request('{"name":"a"}', HOST),
    "another site's host": request(host="Host: example.com"),
    "a page's request": request('{"name":"a"}', "Origin: http://localhost"),
    "a browser's request": request('{"name":"a"}', "Sec-Fetch-Site: none"),
    "the last request": request('{"name":"a"}', "Connection: close"),
    "a body in chunks": request('{"name":"a"}', "Transfer-Encoding: chunked"),
    "a client that waits": request('{"name":"a"}', "Expect: 100-continue"),
    "a compressed body": request('{"name":"a"}', "Content-Encoding: gzip"),
    "two lengths": request('{"name":"a"}', "Content-Length: 12"),
    "a signed length": request(length="+{}"),
    "an invalid length": request(length="x{}"),
    "a length of many digits": request(length="0" * 5000 + "{}"),
    "space before a colon": request('{"name":"a"}', "Accept : */*"),
    "a folded field": request('{"name":"a"}', "Accept: */*\r\n Origin: b"),
    "a bare line feed": request('{"name":"a"}', "Accept: */*\nOrigin: b"),
    "a control character": request('{"name":"a"}', "Accept: \x00"),
    "an octet beyond ASCII": request('{"name":"a"}', "Accept: \xe9"),
    "a long head": request('{"name":"a"}', f"Accept: {'a' * MAX_HEAD}"),
    "a first empty line": b"\r\n" + request(),
    "no HTTP": b"\x00\xff\x16",
} | {f"the first {size} octets": request("")[:size] for size in range(1, len(request("")))}


@pytest.mark.parametrize("octets", OF_THE_LIBRARY.values(), ids=OF_THE_LIBRARY.keys())
def test_what_is_no_plain_request_is_for_the_library(octets: bytes) -> None:
    assert DirectActions(ACTIONS).answer(octets) is None


def test_a_head_is_answered_with_its_body() -> None:
    direct, octets = DirectActions(ACTIONS), request()
    head, end, _ = octets.partition(b"\r\n\r\n")
    assert direct.answer(head + end) == b""
    assert direct.answer(octets)
    # Half a head, and that of an action that waits.
    assert direct.answer(head) is None
    assert direct.answer(request("", line="POST /v1/wait HTTP/1.1", length="2")) is None


@contextlib.asynccontextmanager
async def served(path: Path) -> AsyncIterator[None]:
    api = ApiSocket(path, (), actions=ACTIONS, reported=pytest.fail)
    api.reserve()
    await api.start()
    try:
        yield
    finally:
        await api.stop()


async def read_answer(reader: asyncio.StreamReader) -> bytes:
    """Return the octets of one answer with a length."""
    head = await reader.readuntil(b"\r\n\r\n")
    (length,) = (
        int(line.partition(b":")[2])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    )
    return head + await reader.readexactly(length)


def test_the_answer_is_that_of_the_library(tmp_path: Path) -> None:
    async def of_the_library(octets: bytes) -> bytes:
        """Return the answer on a connection that the library has."""
        reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
        writer.write(request(line="POST /v1/other HTTP/1.1"))
        await read_answer(reader)
        writer.write(octets)
        answer = await read_answer(reader)
        writer.close()
        return answer

    async def main() -> None:
        async with served(tmp_path / "s"):
            direct = DirectActions(ACTIONS)
            for octets in OF_CONTROLLERS:
                found = direct.answer(octets)
                assert found is not None, octets
                status, fields, body = answered(found)
                other = answered(await of_the_library(octets))
                for of_time in (fields, other[1]):
                    assert of_time.pop("Date").endswith(" GMT")
                assert other[1].pop("Server")
                for members in (body, other[2]):
                    assert members.pop("generatedAt")
                assert (status, fields, body) == other

    asyncio.run(main())


def test_a_fault_is_logged_and_answered_without_its_text_and_without_the_library(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp.http_exceptions", None)
    with caplog.at_level(logging.ERROR):
        found = DirectActions(ACTIONS).answer(request('{"name":"fault"}'))
    assert found is not None
    assert b"a secret" not in found
    status, _, body = answered(found)
    assert (status, body["items"]) == (500, [])
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[1] is ERRORS["fault"]


def test_requests_of_both_kinds_are_answered_in_order(tmp_path: Path) -> None:
    def waiting(name: str) -> bytes:
        return request(f'{{"name":"{name}"}}', line="POST /v1/wait HTTP/1.1")

    async def main() -> None:
        async with served(tmp_path / "s"):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
            writer.write(request())
            found = [answered(await read_answer(reader))]
            writer.write(waiting("b") + request('{"name":"c"}') + waiting("d"))
            await asyncio.sleep(0)
            writer.write(request('{"name":"e"}'))
            found += [answered(await read_answer(reader)) for _ in range(4)]
            writer.write(request('{"name":"f"}'))
            found += [answered(await read_answer(reader))]
            writer.write(waiting("g"))
            found += [answered(await read_answer(reader))]
            writer.close()
        # The library names itself.
        assert ["Server" in fields for _, fields, _ in found] == [False, *[True] * 6]
        names = [item["changed"] for _, _, body in found for item in body["items"]]
        assert names == list("abcdefg")

    asyncio.run(main())


def test_a_body_that_comes_alone_is_answered_without_the_library(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path / "s"):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
            found = []
            for content, rest in (('{"name":"a"}', b""), ('{"name":"b"}', request() * 2)):
                octets = request(content)
                size = octets.index(b"{")
                writer.write(octets[:size])
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(reader.read(1), 0.02)
                writer.write(octets[size:] + rest)
                found.append(answered(await read_answer(reader)))
            found += [answered(await read_answer(reader)) for _ in range(2)]
            writer.close()
        # The library has the connection from the requests that came together on.
        assert ["Server" in fields for _, fields, _ in found] == [False, *[True] * 3]
        assert [body["items"][0]["changed"] for _, _, body in found] == list("abaa")

    asyncio.run(main())


def test_a_client_that_reads_no_answer_is_read_no_further(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path / "s"):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(tmp_path / "s"))
                client.setblocking(False)
                sent = idle = 0
                while idle < 20:
                    try:
                        sent += client.send(request())
                        idle = 0
                    except BlockingIOError:
                        idle += 1
                    await asyncio.sleep(0.001 if idle else 0)
                    assert sent < 2_000_000

    asyncio.run(main())


def test_an_answer_has_the_time_of_its_second(monkeypatch: pytest.MonkeyPatch) -> None:
    direct = DirectActions(ACTIONS)
    for now, clock in ((1000.0, "16:40"), (1000.9, "16:40"), (1001.0, "16:41"), (1060.0, "17:40")):
        monkeypatch.setattr(time, "time", itertools.repeat(now).__next__)
        found = direct.answer(request())
        assert found is not None
        _, fields, body = answered(found)
        assert fields["Date"] == f"Thu, 01 Jan 1970 00:{clock} GMT"
        assert body["generatedAt"] == f"1970-01-01T00:{clock}Z"


def test_a_repeated_request_costs_one_call_and_the_action(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a pause the processor has no code in its caches: each further function is a delay."""
    monkeypatch.setattr(time, "time", itertools.repeat(1000.0).__next__)
    direct, octets = DirectActions(ACTIONS), request()
    direct.answer(octets)
    called: list[str] = []

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        direct.answer(octets)
    finally:
        sys.setprofile(before)
    assert called == ["answer", "run"]
