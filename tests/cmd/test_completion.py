"""``waggle completion``: what a shell completes, by the shell itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from waggle.__main__ import COMMANDS, main, whole_parser
from waggle.commands.completion import Command, Flag, commands_of, fish

ASK = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_waggle
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(name="script", scope="module")
def bash_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "waggle.bash"
    with pytest.MonkeyPatch.context() as patch, path.open("w") as file:
        patch.setattr("sys.stdout", file)
        assert main(["completion", "bash"]) == 0
    return path


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["pe"], ["peers"]),
        (["router", "re"], ["reset", "refresh"]),
        (["peers", "-o", "js"], ["json", "jsonl", "jsonpath="]),
        (["--help", "routes", "--as"], ["--as-path"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        # A file: the shell's own completion.
        (["plan", "-f", ""], []),
        (["antrea", "--ipv4"], ["--ipv4-only"]),
    ],
    ids=" ".join,
)
def test_bash_completes_commands_flags_and_choices(
    script: Path, words: list[str], completed: list[str]
) -> None:
    command = ["bash", "-c", ASK, "bash", str(script), "waggle", *words]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    assert answer.stderr == ""
    assert sorted(filter(None, answer.stdout.splitlines())) == sorted(completed)


def test_zsh_uses_the_same_script(capsys: pytest.CaptureFixture[str], script: Path) -> None:
    assert main(["completion", "zsh"]) == 0
    first, _, rest = capsys.readouterr().out.partition("\n")
    assert first == "autoload -U +X bashcompinit && bashcompinit"
    assert rest == script.read_text()


def test_every_command_is_completed() -> None:
    commands = {command.path: command for command in commands_of(whole_parser())}
    assert set(COMMANDS) <= set(commands[()].words)
    assert {("router", "check"), ("antrea",)} <= commands.keys()
    (output,) = (flag for flag in commands["peers",].flags if "-o" in flag.names)
    assert "table" in output.choices


def test_texts_are_quoted_for_fish() -> None:
    command = Command(("a",), "It's a \\ text.", (), ())
    lines = list(fish([Command((), "", (), ("a",)), command]))
    assert lines[-1].endswith(" -f -a 'a' -d 'It\\'s a \\\\ text.'")


def test_fish_has_a_line_for_each_word_and_flag_of_a_command() -> None:
    output = Flag(("-o", "--output"), True, ("json", "yaml"), "the form")
    quiet = Flag(("--quiet",), False, (), "no output")
    peers = Command(("peers",), "Sessions. And more.", (output, quiet), ())
    lines = [*fish([Command((), "", (), ("peers", "other")), peers])]
    at_top = "complete -c waggle -n '__waggle_at \\'\\'' -f"
    at_peers = "complete -c waggle -n '__waggle_at \\'peers\\''"
    assert lines[-4:] == [
        f"{at_top} -a 'peers' -d 'Sessions'",
        f"{at_top} -a 'other' -d ''",
        f"{at_peers} -s o -l output -r -f -a 'json yaml' -d 'the form'",
        f"{at_peers} -l quiet -d 'no output'",
    ]
