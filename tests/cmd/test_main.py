"""The front end of ``waggle``: it imports what is used, and leaves quietly."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cmd.help_pages import ACTIONS
from waggle.__main__ import COMMANDS, main
from waggle.output import (
    EXIT_ERROR,
    EXIT_INCOMPLETE,
    EXIT_INTERRUPTED,
    EXIT_NOT_FOUND,
    EXIT_OK,
    EXIT_USAGE,
)

WAGGLE = [sys.executable, "-m", "waggle"]


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload,no-any-return]  # options are passed on
        [*WAGGLE, *arguments], capture_output=True, text=True, timeout=60, check=False, **options
    )


@pytest.mark.program
@pytest.mark.parametrize("command", ["peers", "render", "decode"])
def test_only_the_sub_command_in_use_is_imported(command: str) -> None:
    code = (
        "import sys; from waggle.__main__ import main\n"
        "try: main([sys.argv[1], '--help'])\n"
        "except SystemExit: pass\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, command],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    loaded = set(done.stderr.split())
    others = {f"waggle.commands.{name}" for name in COMMANDS if name != command}
    assert not loaded & others
    slow = {"aiohttp", "rich", "dependency_injector", "opentelemetry.sdk", "prometheus_client"}
    assert not loaded & slow


@pytest.mark.program
def test_help_lists_every_sub_command_and_the_exit_codes() -> None:
    done = run("--help")
    assert done.returncode == 0
    for name in COMMANDS:
        assert f"\n    {name}" in done.stdout
    _, _, statuses = done.stdout.partition("exit status:")
    known = {EXIT_OK, EXIT_ERROR, EXIT_USAGE, EXIT_INCOMPLETE, EXIT_NOT_FOUND, EXIT_INTERRUPTED}
    assert set(map(int, re.findall(r"^  (\d+) ", statuses, re.MULTILINE))) == known


@pytest.mark.program
def test_a_closed_pipe_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as broken:
        done = subprocess.run(
            [*WAGGLE, "--help"], stdout=broken, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert done.stderr == b""


@pytest.mark.program
def test_a_closed_pipe_of_a_list_is_no_error(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as broken:
        done = subprocess.run(
            [*WAGGLE, "peers", "-o", "json", "--socket", str(tmp_path / "none")],
            stdout=broken,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert done.stderr == b""
    assert done.returncode == 141


@pytest.mark.parametrize(
    "words",
    [
        ["router", "check", "examples/router.yaml"],
        ["decode", *[f"{'ff' * 16}001304"] * 1000],
        ["docs", "cli"],
        ["schema", "PeerList"],
    ],
)
def test_output_that_cannot_be_written_is_one_sentence(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr("sys.stdout", full)
        assert main(words) == 1
    assert capsys.readouterr().err == "waggle: standard output: No space left on device\n"


def test_a_closed_pipe_of_decoded_messages_is_no_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as broken:
        monkeypatch.setattr("sys.stdout", broken)
        assert main(["decode", *[f"{'ff' * 16}001304"] * 1000]) == 141
    assert capsys.readouterr().err == ""


def test_an_interrupt_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("waggle.commands.peers.run", interrupted)
    assert main(["peers"]) == 130


def test_no_command_is_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("waggle.__main__.COMMANDS", ("peers",))
    with pytest.raises(SystemExit) as caught:
        main([])
    assert caught.value.code == 2
    assert "COMMAND" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["-v"], ["--version"], ["version"]])
def test_the_version_has_several_spellings(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("waggle 0.")


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (["help"], "usage: waggle ["),
        (["help", "peers"], "usage: waggle peers "),
        (["router", "help"], "usage: waggle router "),
        (["help", "router", "announce"], "usage: waggle router announce "),
    ],
)
def test_help_is_a_word_as_well(
    words: list[str], usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(usage)


@pytest.mark.parametrize("words", [["--color=always", "peers"], ["--color", "always", "peers"]])
def test_a_flag_of_a_command_may_come_before_it(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--socket", str(tmp_path / "none")]) == 1
    assert "no agent runs here" in capsys.readouterr().err


def _helps() -> Iterator[list[str]]:
    yield ["waggle"]
    yield from (["waggle", name] for name in COMMANDS)
    yield from (["waggle", "router", name] for name in ACTIONS)


@pytest.mark.parametrize("words", [*_helps()], ids=" ".join)
def test_a_help_has_80_columns(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        main([*words[1:], "--help"])
    assert ended.value.code == 0
    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > 80] == []


def test_make_help_lists_every_target_of_a_person() -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    done = subprocess.run(
        ["make", "help"], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    listed = {line.split()[0] for line in done.stdout.splitlines()}
    phony = set(makefile.partition(".PHONY:")[2].partition("\n")[0].split())
    assert phony - listed == set()


def test_a_wrong_word_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["peers", "--\x1b[31m"])
    assert "--\\x1b[31m" in capsys.readouterr().err
