"""The entry of ``waggle``: answers for ``--all-nodes`` without the rest of the program."""

from __future__ import annotations

import io
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from cells.api.model import RouteItem
from tests.cmd.test_imports import below, imported
from tests.cmd.test_peers import UP
from tests.support.api import MadeUp, serving
from waggle import relay as entry
from waggle.__main__ import main
from waggle.relay import relay


def routes(count: int) -> MadeUp:
    items = [
        RouteItem(node="n", instance="i", peer="p", family="ipv4-unicast", prefix=f"10.0.{i}.0/24")
        for i in range(count)
    ]
    return MadeUp([UP], routes=items)


@pytest.mark.parametrize("target", ["/v1/peers", "/v1/routes?limit=2000", "/v1/peers?x=1"])
def test_the_answer_is_that_of_the_command(
    target: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "s"
    words = ["api", "--include", target, "--socket", str(path)]
    output = io.BytesIO()
    with serving(path, routes(2000)):
        status = relay(words, output)
        assert main(words) == status
    usual = capfdbinary.readouterr().out
    # All but the time of the answer.
    lengths = [len(text) for text in (output.getvalue(), usual)]
    assert lengths[0] == lengths[1]
    assert output.getvalue().partition(b"\r\n\r\n")[0] == usual.partition(b"\r\n\r\n")[0]
    assert output.getvalue()[-50:] == usual[-50:]


@pytest.mark.parametrize(
    "words",
    [
        ["peers"],
        ["api", "/v1/peers"],
        ["api", "--include", "v1/peers"],
        ["api", "--include", "/v1/a b"],
        ["api", "--include", "/v1/peers", "--socket"],
        ["api", "--include", "/v1/peers", "--help"],
        ["api", "--include", "/v1/peers", "--socket", "/nonexistent/socket"],
        ["api", "--include", "/v1/peers", "--socket", "/" + "x" * 200],
    ],
)
def test_anything_else_is_left_to_the_program(words: Sequence[str]) -> None:
    output = io.BytesIO()
    assert relay(words, output) is None
    assert output.getvalue() == b""


@contextmanager
def answering(path: Path, *pieces: bytes) -> Iterator[list[str]]:
    """Answer one request over a socket; yields the words of the command."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                # A client may leave before the end.
                with suppress(BrokenPipeError, ConnectionResetError):
                    for piece in pieces:
                        connection.sendall(piece)

        thread = threading.Thread(target=answer)
        thread.start()
        yield ["api", "--include", "/v1/peers", "--socket", str(path)]
        thread.join()


@pytest.mark.parametrize(
    "nonsense", [b"", b"HTTP/1.1 200 OK\r\n", b"ready\r\n\r\n", b"a b c\r\n\r\n"]
)
def test_no_answer_of_http_is_left_to_the_program(nonsense: bytes, tmp_path: Path) -> None:
    output = io.BytesIO()
    with answering(tmp_path / "s", nonsense) as words:
        assert relay(words, output) is None
    assert output.getvalue() == b""


def test_a_status_from_400_on_is_exit_status_1(tmp_path: Path) -> None:
    output = io.BytesIO()
    head = (b"HTTP/1.0 404 Not Found\r\n", b"Server: x\r\ncontent-type: text/plain\r\n\r\n", b"no")
    with answering(tmp_path / "s", *head) as words:
        assert relay(words, output) == 1
    assert output.getvalue() == (b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n\r\nno")


@pytest.mark.parametrize(
    "head", [b"Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", b"Content-Length: 9\r\n\r\nhalf"]
)
def test_an_answer_without_its_end_is_an_error(
    head: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = io.BytesIO()
    with answering(tmp_path / "s", b"HTTP/1.1 200 OK\r\n", head) as words:
        assert relay(words, output) == 1
    assert output.getvalue().endswith(b"\r\n\r\nhalf")
    assert capsys.readouterr().err == "waggle api: the answer breaks off: it has no end\n"


def test_a_silent_agent_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(entry, "TIMEOUT_SECONDS", 0.05)
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        output = io.BytesIO()
        assert relay(["api", "--include", "/v1/peers", "--socket", str(path)], output) == 1
    assert output.getvalue() == b""
    text = f"waggle api: the agent at {path} cannot be reached: timed out\n"
    assert capsys.readouterr().err == text


def test_an_interrupt_is_the_exit_status_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(entry, "connected", interrupted)
    monkeypatch.setattr(sys, "argv", ["waggle", "api", "--include", "/v1/peers"])
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=io.BytesIO()))
    assert entry.main() == 130


def test_a_reader_that_leaves_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.BytesIO):
        def flush(self) -> None:
            raise BrokenPipeError

    monkeypatch.setattr("waggle.__main__._discard_output", lambda: None)
    with answering(tmp_path / "s", b"HTTP/1.0 200 OK\r\n\r\n", b"{}") as words:
        assert relay(words, Closed()) == 141


def test_the_entry_runs_the_program_for_other_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["waggle", "errors", "NotOwner"])
    assert entry.main() == 0
    assert "NotOwner" in capsys.readouterr().out
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=io.BytesIO()))
    with serving(tmp_path / "s", MadeUp([UP])):
        words = ["waggle", "api", "--include", "/v1/peers", "--socket", str(tmp_path / "s")]
        monkeypatch.setattr(sys, "argv", words)
        assert entry.main() == 0


@pytest.mark.program
def test_neither_the_answer_nor_the_question_loads_what_it_does_not_use(tmp_path: Path) -> None:
    modules = imported("import waggle.relay\nwaggle.relay.relay(['peers'], None)")
    slow = ("argparse", "http", "msgspec", "ssl", "email", "waggle.__main__", "reconcilers")
    assert below(modules, *slow) == []
    modules = imported("import waggle.__main__, waggle.commands.peers, waggle.fleet.view")
    assert "aiohttp" in modules
    unused = ("reactivex", "statedb", "resources.tables", "resources.kind")
    assert below(modules, *unused, "resources.kubernetes.reflector", "reconcilers.dialect") == []
