"""``waggle log``: the level of a running agent, and its change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cells.api.test_client import answering, http
from waggle.__main__ import main

ANSWER: dict[str, Any] = {"apiVersion": "cli.waggle/v1", "kind": "LogLevelList", "errors": []}


@pytest.mark.parametrize(
    ("words", "request_line", "body"),
    [
        ("log", "GET /v1/log ", ""),
        ("log debug", "POST /v1/log ", {"level": "debug"}),
        ("log default", "POST /v1/log ", {"level": None}),
    ],
)
def test_the_level_is_read_or_set(
    words: str, request_line: str, body: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    item = {"level": "debug", "configured": "info", "chosen": True, "setBy": ["frrk8s"]}
    with answering(tmp_path / "api", http({**ANSWER, "items": [item]})) as questions:
        assert main([*words.split(), "--socket", str(tmp_path / "api"), "--no-headers"]) == 0
    head, _, sent = questions[0].partition(b"\r\n\r\n")
    assert head.startswith(request_line.encode())
    assert (json.loads(sent) if sent else "") == body
    assert capsys.readouterr().out == "debug  waggle log  info\n"


def test_an_unknown_level_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["log", "debgu"])
    assert ended.value.code == 2
    assert "LEVEL: unknown debgu (did you mean debug?)" in capsys.readouterr().err
