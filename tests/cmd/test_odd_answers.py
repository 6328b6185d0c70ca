"""An answer that is not what its kind has is a sentence, and never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cells.api.test_client import answering, http
from waggle.__main__ import main

ITEM = {"name": 7, "state": [], "instance": {}, "families": 5, "prefix": None, "kind": 1}
ODD = {
    "apiVersion": "cli.waggle/v1",
    "kind": "List",
    "generatedAt": "2026-01-01T00:00:00Z",
    "items": [ITEM],
    "errors": [],
}
COMMANDS = (
    *("peers", "status", "routes", "routes received", "explain", "explain --all", "history"),
    *("events", "metrics", "reconcilers", "bfd", "log", "trace 10.0.0.0/8"),
    "top --interval 0.01 --count 1",
    *("verify", "routes kernel", "routes 10.0.0.0/8", "peers clear tor", "router peers"),
    *("watch services", "antrea policy", "antrea routes -o json", "doctor", "history --watch"),
)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("answer", [ODD, {**ODD, "generatedAt": None}, {**ODD, "items": 3}])
def test_an_answer_of_other_types_ends_no_command_with_a_traceback(
    command: str, answer: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "api"
    with answering(path, http(answer)):
        status = main([*command.split(), "--socket", str(path)])
    printed = capsys.readouterr()
    assert status in (0, 1, 2, 4)
    if "is not understood" in printed.err:
        assert status == 1
        assert "Error: " in printed.err


def test_the_sentence_has_the_command_the_error_and_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "api"
    with answering(path, http(ODD)):
        assert main(["peers", "--socket", str(path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("waggle peers: the answer of the agent is not understood: ")
    assert error.endswith(")\n")
    assert ".py:" in error


def test_an_error_before_an_answer_is_not_an_agents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> int:
        raise ValueError("no answer has been read")

    monkeypatch.setattr("waggle.commands.errors.run", broken)
    with pytest.raises(ValueError, match="no answer has been read"):
        main(["errors"])


CLEAR = "\x1b[2J\u202e\n"


@pytest.mark.parametrize(
    "form", ["table", "json", "yaml", "antctl-json", "jsonpath={.items[*].name}"]
)
def test_a_view_of_a_dialect_is_printed_escaped(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "api"
    odd = {"name": f"a{CLEAR}b", "routerID": CLEAR, "memberASNs": [CLEAR]}
    with answering(path, http(odd)):
        assert main(["antrea", "policy", "-o", form, "--socket", str(path)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.replace("\n", "").isprintable()
    assert "[2J" in out
    assert form != "table" or len(out.splitlines()) == 2


@pytest.mark.parametrize("form", ["table", "antctl-json"])
def test_the_refusal_of_a_view_is_printed_escaped(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "api"
    body = b"no \x1b[2J\n"
    refusal = b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with answering(path, refusal):
        assert main(["antrea", "policy", "-o", form, "--socket", str(path)]) == 4
    assert capsys.readouterr() == ("", "waggle antrea: no \\x1b[2J\n")
