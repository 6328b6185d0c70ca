"""An answer without an item is a sentence on standard error: what is not there, and perhaps why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cells.api.test_client import answering, http
from waggle.__main__ import main

EMPTY = {
    "apiVersion": "cli.waggle/v1",
    "kind": "List",
    "errors": [],
    "items": [],
    "generatedAt": "2026-01-01T00:01:30Z",
}


@pytest.mark.parametrize(
    ("command", "status", "sentence"),
    [
        ("peers", 0, "no peers: no configuration selects this node"),
        ("peers --peer tor", 4, "no peer is called tor"),
        ("routes", 0, "no advertised routes: no route is selected"),
        ("routes received", 0, "no received routes: no session is Established"),
        ("routes available", 0, "no available routes: no route is selected"),
        ("routes kernel", 0, "no route of the kernel"),
        ("routes 10.0.0.0/8", 4, "no advertised route for 10.0.0.0/8"),
        ("events", 0, "no Events since the agent started"),
        ("history", 0, "no change since the agent has started"),
        ("history --since 1m", 0, "no change in that time"),
        ("bfd", 0, "no BFD sessions"),
        ("explain", 0, "every route is advertised to every peer"),
        ("trace 10.0.0.0/8", 4, "no change of 10.0.0.0/8 is among the last spans"),
        ("router peers", 0, "no peers: the configuration has no neighbors"),
        ("router collectors", 0, "no monitoring stations: the configuration has no bmp.collectors"),
    ],
)
def test_an_answer_without_an_item_is_a_sentence(
    command: str, status: int, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "api"
    words = command.split()
    with answering(path, http(EMPTY)):
        assert main([*words, "--socket", str(path)]) == status
    program = " ".join(["waggle", *words[: 2 if words[0] == "router" else 1]])
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"{program}: {sentence}")


@pytest.mark.parametrize("command", ["peers", "routes", "events", "history", "bfd", "explain"])
def test_a_document_without_an_item_has_no_sentence(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "api"
    with answering(path, http(EMPTY)):
        assert main([command, "-o", "json", "--socket", str(path)]) == 0
    printed = capsys.readouterr()
    assert '"items": []' in printed.out
    assert printed.err == ""
