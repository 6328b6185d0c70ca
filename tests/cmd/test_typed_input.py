"""Input that is typed: a command that reads a terminal names it, and draws no progress into it."""

from __future__ import annotations

import io

import pytest

from tests.cmd.terminal import ROOT, Terminal
from waggle.__main__ import main

KEEPALIVE = f"{'ff' * 16}001304"
SENTENCE = "reads this terminal; Ctrl-D ends the input"


class TypedInput(Terminal):
    """A terminal, and what is typed there."""

    @property
    def buffer(self) -> io.BytesIO:
        """Its octets."""
        return io.BytesIO(self.getvalue().encode())


@pytest.mark.parametrize(
    ("command", "typed"),
    [
        ("decode", KEEPALIVE),
        ("decode --jsonl", f'{{"id": 1, "hex": "{KEEPALIVE}"}}'),
        ("check -f -", ""),
        ("render -f - --node n", ""),
        ("explain -f - --node n", ""),
        ("convert -f -", ""),
        ("crds --installed -", '{"items": []}'),
        ("plan -f examples/quickstart --from -", ""),
    ],
)
def test_a_terminal_is_named_before_it_is_read(
    command: str, typed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = TypedInput(typed)
    for name in ("sys.stdin", "sys.__stdin__"):
        monkeypatch.setattr(name, terminal)
    monkeypatch.chdir(ROOT)
    main(command.split())
    first, *_ = capsys.readouterr().err.splitlines()
    assert first == f"waggle {command.split()[0]}: {SENTENCE}"


def test_a_pipe_is_not_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(KEEPALIVE))
    assert main(["decode"]) == 0
    assert capsys.readouterr().err == ""
