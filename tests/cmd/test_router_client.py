"""``waggle router routes``: its arguments, and what it prints of a router's answer."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from waggle.__main__ import main

ROUTE: dict[str, Any] = {
    "prefix": "10.0.0.0/8",
    "asPath": "65001",
    "communities": ["1:2", "no-export"],
}
ROUTE |= {"largeCommunities": [], "med": None, "best": True, "peer": 'a "b" \u00e9'}


@contextmanager
def router(path: Path, answer: bytes) -> Iterator[list[dict[str, Any]]]:
    """Answer one request with these octets, then close; yields the requests."""
    requests: list[dict[str, Any]] = []

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            requests.append(json.loads(connection.makefile("rb").readline()))
            connection.sendall(answer)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=serve)
        thread.start()
        yield requests
        thread.join(10)


def answered(*routes: dict[str, Any]) -> bytes:
    """Return the answer of a router with these routes."""
    return json.dumps({"ok": True, "routes": routes}, separators=(",", ":")).encode() + b"\n"


@pytest.fixture(name="path")
def path_of_socket(tmp_path: Path) -> Path:
    return tmp_path / "api"


@pytest.mark.parametrize(
    ("words", "table", "prefix", "peer"),
    [
        ("", "available", None, None),
        ("received", "received", None, None),
        ("10.1.2.3", "available", "10.1.2.3", None),
        ("2001:db8::/32 --peer tor", "available", "2001:db8::/32", "tor"),
        ("received --peer tor 10.1.2.3", "received", "10.1.2.3", "tor"),
        ("--peer=tor received --limit 5 10.1.2.3", "received", "10.1.2.3", "tor"),
    ],
)
def test_table_and_prefix_may_be_absent_and_flags_may_stand_anywhere(
    path: Path, words: str, table: str, prefix: str | None, peer: str | None
) -> None:
    with router(path, answered()) as requests:
        assert main(["router", "routes", *words.split(), "--socket", str(path)]) == 0
    (request,) = requests
    assert (request["table"], request["prefix"], request["peer"]) == (table, prefix, peer)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("recieved", "there is no table 'recieved' (did you mean received?)"),
        ("all", "there is no table 'all' (one of available, received, advertised)"),
        ("10.0.0.1 10.0.0.2", "there is no table '10.0.0.1' (one of "),
        ("received 10.0.0.1 --limit 1 10.0.0.2", "unexpected argument 10.0.0.2"),
    ],
)
def test_arguments_that_select_nothing_are_a_usage_error(
    path: Path, words: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        raise SystemExit(main(["router", "routes", *words.split(), "--socket", str(path)]))
    assert capsys.readouterr().err.startswith(f"waggle router routes: {error}")


def test_routes_are_printed_as_json_with_an_indentation_of_two(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with router(path, answered(ROUTE, ROUTE)):
        assert main(["router", "routes", "--socket", str(path)]) == 0
    assert capsys.readouterr().out == json.dumps([ROUTE, ROUTE], indent=2) + "\n"


def test_a_reader_that_closes_the_pipe_is_no_error(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read, write = os.pipe()
    os.close(read)
    with router(path, answered(*[ROUTE] * 1000)), os.fdopen(write, "w") as broken:
        monkeypatch.setattr("sys.stdout", broken)
        assert main(["router", "routes", "--socket", str(path)]) == 141
        assert capsys.readouterr().err == ""


def test_an_answer_that_breaks_off_is_an_error_behind_what_was_printed(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with router(path, answered(ROUTE)[:-3] + b","):
        assert main(["router", "routes", "--socket", str(path)]) == 1
    captured = capsys.readouterr()
    assert '"10.0.0.0/8"' in captured.out
    assert captured.err == f"waggle router routes: {path}: the router closed the connection\n"


def test_without_a_router_the_error_names_the_flag(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["router", "peers", "--socket", str(path)]) == 1
    error = f"{path}: No such file or directory; no router runs here, see --socket"
    assert capsys.readouterr().err == f"waggle router peers: {error}\n"
