"""A named pipe without a writer as the file of a command: an error that names it, and no wait."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from resources import given_file
from waggle.__main__ import main

SILENT = "it is a named pipe, silent for 0.01 seconds"
NOT_READ = "is not a regular file"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["router", "check"], SILENT),
        (["router", "-c"], SILENT),
        (["router", "peers", "-c"], SILENT),
        (["render", "--node", "a", "-f", "empty.yaml", "--received"], SILENT),
        (["render", "--node", "a", "-f"], NOT_READ),
        (["check", "-f"], NOT_READ),
        (["crds", "--installed"], SILENT),
        (["decode", "--jsonl"], SILENT),
        (["decode", "--pcap"], SILENT),
        (["replay"], SILENT),
    ],
    ids=str,
)
def test_a_silent_named_pipe_is_an_error(
    command: list[str],
    reason: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(given_file, "WRITER_SECONDS", 0.01)
    monkeypatch.chdir(tmp_path)
    Path("empty.yaml").touch()
    path = tmp_path / "fifo"
    os.mkfifo(path)
    assert main([*command, str(path)])
    assert f"{path}: {reason}" in capsys.readouterr().err
