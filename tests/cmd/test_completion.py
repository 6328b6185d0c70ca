"""``waggle completion``: what a shell completes, by the shell itself."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.cmd.terminal import environment, open_terminal
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
        (["router", "c"], ["check", "clear", "collectors"]),
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
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert answer.stderr == ""
    assert sorted(filter(None, answer.stdout.splitlines())) == sorted(completed)


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("waggle pe", ["peers"]),
        ("waggle router c", ["check", "clear", "collectors"]),
        ("waggle peers -o js", ["json", "jsonl", "jsonpath="]),
        ("waggle --help routes --as", ["--as-path"]),
        ("waggle antrea --ipv4", ["--ipv4-only"]),
    ],
)
def test_fish_completes_commands_flags_and_choices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, completed: list[str]
) -> None:
    assert main(["completion", "fish"]) == 0
    script = tmp_path / "waggle.fish"
    script.write_text(capsys.readouterr().out)
    command = ["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert answer.stderr == ""
    words = {text.partition("\t")[0] for text in answer.stdout.splitlines()}
    assert sorted(filter(None, words)) == sorted(completed)


class Zsh:
    """A zsh with the script, in a terminal."""

    def __init__(self, script: Path) -> None:
        self._terminal, there = open_terminal(200)
        environ = {**environment(), "PS1": "", "ZDOTDIR": str(script.parent)}
        self.process = subprocess.Popen(
            ["zsh", "-f", "-i"], stdin=there, stdout=there, stderr=there, env=environ
        )
        os.close(there)
        self._type(f"autoload -U compinit; compinit -u -D; source {script}; echo rea''dy\n")
        self.read_until("ready")

    def _type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def completes(self, line: str, completed: str) -> None:
        """Type a line and the tabulator, by which the line is completed."""
        self._type(f"\x15{line}\t")
        self.read_until(completed)

    def read_until(self, text: str) -> None:
        shown = ""
        deadline = time.monotonic() + 60
        while text not in shown:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self._terminal], [], [], max(0.0, left))
            assert ready, (text, shown)
            shown += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", os.read(self._terminal, 65536).decode())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._terminal)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_completes_commands_flags_and_choices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "zsh"]) == 0
    script = tmp_path / "waggle.zsh"
    script.write_text(capsys.readouterr().out)
    zsh = Zsh(script)
    try:
        zsh.completes("waggle pe", "waggle peers")
        zsh.completes("waggle router cl", "waggle router clear")
        zsh.completes("waggle peers -o js", "waggle peers -o json")
        zsh.completes("waggle antrea --ipv4", "waggle antrea --ipv4-only")
    finally:
        zsh.close()


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


@pytest.mark.parametrize(
    ("shell", "file"),
    [
        ("bash", "~/.bashrc"),
        ("zsh", "~/.zshrc"),
        ("fish", "~/.config/fish/completions/waggle.fish"),
    ],
)
def test_a_document_has_the_script_and_the_file_that_it_is_for(
    shell: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert main(["completion", shell, "-o", "json"]) == 0
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert item["script"] == script
    assert (item["shell"], item["file"]) == (shell, file)
    assert f"waggle completion {shell}" in item["command"]
    assert main(["completion", shell, "-o", "table", "--no-headers"]) == 0
    assert capsys.readouterr().out.split("  ") == [shell, file, item["command"] + "\n"]


def test_the_help_has_the_installation_of_each_shell(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["completion", "--help"])
    assert (
        "installation:\n"
        "  bash  source <(waggle completion bash)            in ~/.bashrc\n"
        "  zsh   source <(waggle completion zsh)             in ~/.zshrc, behind compinit\n"
        "  fish  waggle completion fish > ~/.config/fish/completions/waggle.fish\n"
    ) in capsys.readouterr().out
