"""Questions to an agent's socket that get no answer, or an error: a code and a sentence each."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cells.api import transport
from cells.api.agent_socket import MAX_PATH, default_socket
from cells.api.client import AgentError, at_socket


def read(connection: socket.socket) -> bytes:
    """Read a request with its body."""
    octets = b""
    while b"\r\n\r\n" not in octets:
        octets += connection.recv(65536)
    head, _, body = octets.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    while length and len(body) < int(length[1]):
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


@contextmanager
def answering(path: Path, answer: bytes) -> Iterator[list[bytes]]:
    """Listen on a socket, and answer each question with these octets; yields the questions."""
    questions: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    questions.append(read(connection))
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield questions
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(60)


def http(body: object, status: str = "200 OK") -> bytes:
    octets = body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(octets)}\r\nConnection: close\r\n\r\n"
    return head.encode() + octets


def refused(path: Path) -> tuple[str, str]:
    with pytest.raises(AgentError) as caught:
        at_socket(path).get("/v1/peers", {})
    return caught.value.code, str(caught.value)


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        (http(b"<html>"), "BadAnswer", "{path} does not answer like an agent"),
        (http([]), "BadAnswer", "{path} does not answer like an agent"),
        (http({"kind": "PeerList"}), "BadAnswer", "{path} does not answer like an agent"),
        (
            http({"items": [], "errors": [{"code": "Busy", "message": "later"}]}, "503 Busy"),
            "Busy",
            "later",
        ),
        (http({"items": [], "errors": []}, "500 Error"), "Refused", "status 500"),
        (http({"items": []}, "400 Bad Request"), "Refused", "status 400"),
        (b"\x00\xff garbage \x1b[2J\r\n\r\n", "BadAnswer", "{path} does not answer like an agent"),
        (
            http({"items": []})[:-1],
            "AgentUnreachable",
            "the agent at {path} has ended within its answer",
        ),
    ],
)
def test_an_invalid_answer(answer: bytes, code: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "agent.sock"
    with answering(path, answer):
        assert refused(path) == (code, message.format(path=path))


def test_that_there_is_none_of_a_name_is_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "agent.sock"
    none = {"items": [], "errors": [{"code": "NotFound", "message": "no peer"}]}
    with answering(path, http(none, "404 Not Found")):
        assert at_socket(path).get("/v1/peers", {}) == none


def test_an_answer_that_breaks_off(tmp_path: Path) -> None:
    path = tmp_path / "agent.sock"
    with answering(path, b""):
        code, message = refused(path)
    assert code == "AgentUnreachable"
    assert message.startswith(f"the agent at {path} cannot be reached: ")


def test_no_agent(tmp_path: Path) -> None:
    path = tmp_path / "none.sock"
    code, message = refused(path)
    assert code == "AgentNotRunning"
    assert str(path) in message
    assert "--socket" in message


def test_a_path_that_no_socket_can_have(tmp_path: Path) -> None:
    path = tmp_path / ("x" * (MAX_PATH + 1))
    code, message = refused(path)
    assert code == "AgentNotRunning"
    assert f"{path} is longer than {MAX_PATH} bytes (see --socket)" in message


def test_members_of_a_question_that_are_not_set_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "agent.sock"
    answer = {"apiVersion": "v1", "items": [{"name": "a"}, {"name": "b"}], "errors": []}
    with answering(path, http(answer)) as questions:
        assert at_socket(path).get("/v1/peers", {"peer": "a b", "instance": None}) == answer
        assert at_socket(path).get("/v1/peers", {"peer": None}) == answer
        assert at_socket(path).post("/v1/verify") == answer
        found = at_socket(path).get_list("/v1/routes", {"table": "received"})
        assert (found.head["apiVersion"], list(found)) == ("v1", answer["items"])
    assert [question.split(b" HTTP")[0] for question in questions] == [
        b"GET /v1/peers?peer=a+b",
        b"GET /v1/peers",
        b"POST /v1/verify",
        b"GET /v1/routes?table=received",
    ]


def test_a_list_without_its_envelope_is_no_answer_of_an_agent(tmp_path: Path) -> None:
    path = tmp_path / "agent.sock"
    with answering(path, http({"items": []})), pytest.raises(AgentError, match="like an agent"):
        at_socket(path).get_list("/v1/routes", {})


def test_an_agent_that_does_not_answer_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = transport._UnixConnection
    monkeypatch.setattr(transport, "_UnixConnection", lambda path, _: connect(path, 0.05))
    path = tmp_path / "agent.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        code, message = refused(path)
    assert code == "AgentUnreachable"
    assert "timed out" in message


def test_the_socket_is_that_of_the_environment_or_of_the_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WAGGLE_API_SOCKET", "/somewhere/agent.sock")
    assert default_socket() == Path("/somewhere/agent.sock")
    monkeypatch.delenv("WAGGLE_API_SOCKET")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert default_socket() == Path("/run/waggle/agent.sock")
    monkeypatch.setenv("WAGGLE_API_SOCKET", "")
    assert default_socket() == Path("/run/waggle/agent.sock")


@pytest.mark.parametrize(
    ("kind", "seconds"), [("application/json", 7.0), ("application/jsonl", None)]
)
def test_an_answer_without_an_end_may_be_silent_for_any_time(
    kind: str, seconds: float | None, tmp_path: Path
) -> None:
    path = tmp_path / "s"
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: 3\r\n\r\n"
    with (
        answering(path, head.encode() + b"{}\n"),
        transport.UnixTransport(path).request("GET", "/v1/watch", timeout=7.0) as response,
    ):
        stream: Any = response.fp
        assert stream.raw._sock.gettimeout() == seconds
        assert response.readline() == b"{}\n"
