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
    "node": "192.0.2.1",
    "instance": "router",
    "family": "ipv4-unicast",
    "prefix": "10.0.0.0/8",
    "asPath": "65001",
    "communities": ["1:2", "no-export"],
    "best": True,
    "peer": 'a "b" \u00e9',
}


@contextmanager
def router(path: Path, answer: bytes, octets: int | None = None) -> Iterator[list[str]]:
    """Answer one request with the first octets of a body, then close; yields the request's targets."""
    targets: list[str] = []
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(answer)}\r\n\r\n".encode()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            targets.append(connection.makefile("rb").readline().decode().split()[1])
            connection.sendall(head + answer[:octets])

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=serve, daemon=True)  # no request may come
        thread.start()
        yield targets
        thread.join(60)


def answered(*routes: dict[str, Any]) -> bytes:
    """Return the answer of a router with these routes."""
    document = {"apiVersion": "cli.waggle/v1", "kind": "RouteList", "errors": [], "items": routes}
    return json.dumps(document, separators=(",", ":")).encode()


@pytest.fixture(name="path")
def path_of_socket(tmp_path: Path) -> Path:
    return tmp_path / "api"


@pytest.mark.parametrize(
    ("words", "query"),
    [
        ("", "table=available"),
        ("received", "table=received"),
        ("received ipv6", "table=received&family=ipv6-unicast"),
        ("10.1.2.3", "table=available&prefix=10.1.2.3"),
        ("10.1.2.3/8", "table=available&prefix=10.1.2.3%2F8"),
        ("2001:db8::/32 --peer tor", "table=available&prefix=2001%3Adb8%3A%3A%2F32&peer=tor"),
        (
            "--peer=tor received --limit 5 10.1.2.3",
            "table=received&prefix=10.1.2.3&peer=tor&limit=5",
        ),
    ],
)
def test_table_and_prefix_may_be_absent_and_flags_may_stand_anywhere(
    path: Path, words: str, query: str
) -> None:
    with router(path, answered(ROUTE)) as targets:
        assert main(["router", "routes", *words.split(), "-o", "json", "--socket", str(path)]) == 0
    assert targets == [f"/v1/routes?{query}"]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("recieved", "recieved is neither a table (available, advertised, received), a family"),
        ("10.0.0.1 10.0.0.2", "more than one prefix: 10.0.0.1 and 10.0.0.2"),
        ("received 10.0.0.1 --limit 1 10.0.0.2", "more than one prefix"),
    ],
)
def test_arguments_that_select_nothing_are_a_usage_error(
    path: Path, words: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        raise SystemExit(main(["router", "routes", *words.split(), "--socket", str(path)]))
    assert capsys.readouterr().err.startswith(f"waggle router routes: {error}")


def test_routes_are_a_table_or_the_agents_envelope(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with router(path, answered(ROUTE, ROUTE)):
        assert main(["router", "routes", "--socket", str(path)]) == 0
    title, line, other = capsys.readouterr().out.splitlines()
    assert (title.split()[:2], line) == (["NODE", "PREFIX"], other)
    assert line.split()[:2] == ["192.0.2.1", "10.0.0.0/8"]
    path.unlink()
    with router(path, answered(ROUTE, ROUTE)):
        assert main(["router", "routes", "-o", "json", "--socket", str(path)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["kind"], answer["items"]) == ("RouteList", [ROUTE, ROUTE])


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
    with router(path, answered(ROUTE, ROUTE), octets=-20):
        assert main(["router", "routes", "-o", "json", "--socket", str(path)]) == 1
    captured = capsys.readouterr()
    assert '"10.0.0.0/8"' in captured.out
    assert captured.err.startswith("waggle router routes: ")
    assert "router" in captured.err.removeprefix("waggle router routes: ")


def test_without_a_router_the_error_names_the_flag(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["router", "peers", "--socket", str(path)]) == 1
    error = f"no router runs here: there is no socket {path} (see --socket)"
    assert capsys.readouterr().err == f"waggle router peers: {error}\n"
