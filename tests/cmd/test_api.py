"""``waggle api``: the answer of a path as it is, or in the formats of the other commands."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cells.api.model import WatchItem
from cells.api.resource import ApiStream, Query
from tests.cells.api.test_client import answering, http
from tests.cmd.terminal import Terminal
from tests.cmd.test_peers import UP
from tests.support import plain_yaml
from tests.support.api import MadeUp, serving
from waggle.__main__ import main

PEERS = {
    "apiVersion": "cli.waggle/v1",
    "kind": "PeerList",
    "generatedAt": "2026-01-01T12:00:00Z",
    "items": [
        {"name": "tor-1", "localASN": 65000, "families": ["ipv4-unicast", "ipv6-unicast"]},
        {"name": "tor-2", "dynamic": True, "received": [{"routes": 3}]},
    ],
    "errors": [],
}
NOTHING = {**PEERS, "items": [], "notes": ["no configuration selects this node"]}
REFUSED = {**PEERS, "items": [], "errors": [{"code": "NotFound", "message": "no peer tor"}]}
TIME = datetime(2026, 1, 1, 12, 0, 0, 500_000, UTC)


def watching(_: Query) -> AsyncGenerator[Sequence[WatchItem]]:
    """Send two items, then end with an error."""

    async def items() -> AsyncGenerator[Sequence[WatchItem]]:
        yield [WatchItem(event_time=TIME, type="ADDED", kind="Node", name=f"n{i}") for i in (1, 2)]
        raise RuntimeError("the source has failed")

    return items()


STREAM = ApiStream(path="/v1/watch", parameters=("kind",), read=watching)


def of_peers(tmp_path: Path, *words: str, body: object = PEERS, status: str = "200 OK") -> int:
    path = tmp_path / "s"
    path.unlink(missing_ok=True)
    with answering(path, http(body, status)):
        return main(["api", "/v1/peers", "--socket", str(path), *words])


def test_by_default_the_octets_of_the_agent_are_printed(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    body = b'{"items":[ ],\n "x": 1}\n'
    assert of_peers(tmp_path, body=body) == 0
    assert capfdbinary.readouterr().out == body
    assert of_peers(tmp_path, "--include", body=body) == 0
    printed = capfdbinary.readouterr().out
    assert printed == b"HTTP/1.1 200 OK\r\nContent-Type: \r\n\r\n" + body


def test_an_answer_is_transformed_as_that_of_any_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert of_peers(tmp_path, "-o", "json") == 0
    printed = capsys.readouterr().out
    assert json.loads(printed) == PEERS
    assert printed.startswith('{\n  "apiVersion"')
    assert of_peers(tmp_path, "-o", "yaml") == 0
    assert plain_yaml.load(capsys.readouterr().out) == PEERS
    assert of_peers(tmp_path, "-o", "jsonl") == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == PEERS["items"]
    assert of_peers(tmp_path, "-o", "jsonpath={.items[*].name}") == 0
    assert capsys.readouterr().out == "tor-1 tor-2"


def test_a_table_has_a_column_for_each_member(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert of_peers(tmp_path, "-o", "table") == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["NAME", "LOCAL-ASN", "FAMILIES", "DYNAMIC", "RECEIVED"],
        ["tor-1", "65000", "ipv4-unicast,ipv6-unicast", "-", "-"],
        ["tor-2", "-", "-", "true", '[{"routes":', "3}]"],
    ]
    assert of_peers(tmp_path, "-o", "table", "--no-headers") == 0
    assert not capsys.readouterr().out.startswith("NAME")
    assert of_peers(tmp_path, "-o", "table", body=NOTHING) == 0
    assert capsys.readouterr() == ("", "waggle api: no configuration selects this node\n")


def test_a_refusal_is_the_answer_with_exit_status_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = {"body": REFUSED, "status": "404 Not Found"}
    assert of_peers(tmp_path, "-o", "json", **refusal) == 1  # type: ignore[arg-type]
    assert json.loads(capsys.readouterr().out) == REFUSED
    assert of_peers(tmp_path, "-o", "table", **refusal) == 1  # type: ignore[arg-type]
    assert capsys.readouterr() == ("", "waggle api: no peer tor\n")


def test_what_is_no_envelope_is_printed_as_one_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert of_peers(tmp_path, "-o", "yaml", body=[{"a": 1}]) == 0
    assert plain_yaml.load(capsys.readouterr().out) == [{"a": 1}]
    assert of_peers(tmp_path, "-o", "table", body=[{"a": 1}]) == 0
    assert capsys.readouterr().out.split() == ["A", "1"]
    assert of_peers(tmp_path, "-o", "table", body={"a": 1}) == 1
    assert (
        capsys.readouterr().err
        == "waggle api: /v1/peers: the answer is no list: -o json prints it\n"
    )


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        ("404 Not Found", "NotFound", "/v1/peers: the agent has no such path"),
        ("200 OK", "BadAnswer", "/v1/peers: the answer is not JSON: -o raw prints it"),
    ],
)
def test_an_answer_without_json_is_an_error_in_an_envelope(
    status: str, code: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert of_peers(tmp_path, "-o", "json", body=b"<html>", status=status) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["kind"], document["items"]) == ("ErrorList", [])
    assert document["errors"] == [{"code": code, "message": message}]
    assert of_peers(tmp_path, "-o", "table", body=b"<html>", status=status) == 1
    assert capsys.readouterr() == ("", f"waggle api: {message}\n")


def test_without_an_agent_a_format_for_programs_has_the_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["api", "/v1/peers", "--socket", str(tmp_path / "none")]
    assert main([*words, "-o", "yaml"]) == 1
    printed = capsys.readouterr()
    assert plain_yaml.load(printed.out)["errors"][0]["code"] == "AgentNotRunning"
    assert printed.err == ""
    assert main(words) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("waggle api: no agent runs here")


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_an_answer_without_an_end_is_a_line_for_each_item(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s"
    with serving(path, MadeUp([UP]), STREAM):
        assert main(["api", "/v1/watch?kind=nodes", "--socket", str(path), "-o", form]) == 1
    *items, end = map(json.loads, capsys.readouterr().out.splitlines())
    assert [item["name"] for item in items] == ["n1", "n2"]
    assert end == {"errors": [{"code": "StreamEnded", "message": "the source has failed"}]}


def test_an_answer_without_an_end_is_a_document_or_text_for_each_item(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s"
    with serving(path, MadeUp([UP]), STREAM):
        words = ["api", "/v1/watch?kind=nodes", "--socket", str(path), "-o"]
        assert main([*words, "yaml"]) == 1
        *items, end = plain_yaml.load_all(capsys.readouterr().out)
        assert [item["name"] for item in items] == ["n1", "n2"]
        assert end["errors"][0]["code"] == "StreamEnded"
        assert main([*words, 'jsonpath={.name}{"\\n"}']) == 1
        assert capsys.readouterr().out.split() == ["n1", "n2"]
        assert main([*words, "table"]) == 1
        assert "the answer has no end: -o json prints it" in capsys.readouterr().err


def test_headers_go_with_the_answer_as_it_is_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["api", "/v1/peers", "--include", "-o", "yaml", "--socket", str(tmp_path / "s")]
    assert main(words) == 2
    assert capsys.readouterr() == ("", "waggle api: --include: with -o raw only\n")


class Octets(Terminal):
    """A terminal, or another stream, with the octets that it gets."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._octets, self._is_terminal = io.BytesIO(), is_terminal

    @property
    def buffer(self) -> io.BytesIO:
        """Its octets."""
        return self._octets

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.mark.parametrize(("is_terminal", "end"), [(True, b"}\n"), (False, b"}")])
def test_a_terminal_has_a_line_end_behind_an_answer_without(
    is_terminal: bool, end: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, stream = tmp_path / "agent.sock", Octets(is_terminal=is_terminal)
    with serving(path, MadeUp()):
        monkeypatch.setattr("sys.stdout", stream)
        assert main(["api", "/v1/peers", "--socket", str(path)]) == 0
    assert stream.buffer.getvalue().endswith(end)
