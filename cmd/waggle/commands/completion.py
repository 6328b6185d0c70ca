"""``waggle completion``: a script by which a shell completes commands, flags and their choices.

The script is generated from the parser of the program, so that it has what ``--help`` has. It is
static: a shell that completes runs nothing.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from waggle import output
from waggle.output import EXIT_OK, EXIT_USAGE, USAGE, exit_statuses, member
from waggle.tables import Column


class Installation(NamedTuple):
    """How a shell gets its script."""

    command: str
    file: str
    """In which the command stands, or to which it writes the script."""
    remark: str = ""


INSTALLATIONS: Final = {
    "bash": Installation("source <(waggle completion bash)", "~/.bashrc"),
    "zsh": Installation("source <(waggle completion zsh)", "~/.zshrc", "behind compinit"),
    "fish": Installation(
        "waggle completion fish > ~/.config/fish/completions/waggle.fish",
        "~/.config/fish/completions/waggle.fish",
    ),
}
"""By the name of the shell."""
KIND: Final = "CompletionList"
SCRIPT: Final = "script"
COLUMNS: Final = (
    Column("SHELL", member("shell")),
    Column("FILE", member("file"), minor=1, beneath=True),
    Column("COMMAND", member("command"), minor=2, beneath=True),
)


class Flag(NamedTuple):
    """A flag of a command."""

    names: tuple[str, ...]
    value: bool
    """Whether a value follows."""
    choices: tuple[str, ...]
    help: str


class Command(NamedTuple):
    """A command, or one below it."""

    path: tuple[str, ...]
    help: str
    flags: tuple[Flag, ...]
    words: tuple[str, ...]
    """The commands below it, and the choices of its arguments."""


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "completion",
        help="print a script by which a shell completes commands and flags",
        description="Print a script by which bash, zsh or fish completes commands, flags and their "
        "choices. With -o json and yaml it is in a document, with the file that it is for.",
        epilog=exit_statuses({EXIT_OK: "success", EXIT_USAGE: USAGE}, _epilog()),
    )
    parser.add_argument("shell", choices=tuple(INSTALLATIONS), help="the shell")
    output.add_output_flags(parser, (SCRIPT, "table", "json", "jsonl", "yaml"), SCRIPT)


def _epilog() -> str:
    """Return the installation for each shell as lines."""
    lines = ["installation:"]
    for shell, (command, file, remark) in INSTALLATIONS.items():
        where = "" if file in command else ", ".join(filter(None, (f"in {file}", remark)))
        lines.append(f"  {shell:<4}  {command:<42}  {where}".rstrip())
    return "\n".join(lines)


def run(args: argparse.Namespace) -> int:
    """Print the script; returns the exit status."""
    from waggle.__main__ import whole_parser

    commands = list(commands_of(whole_parser()))
    if args.shell == "fish":
        lines = list(fish(commands))
    else:
        lines = [*(ZSH if args.shell == "zsh" else ()), *bash(commands)]
    script = "\n".join(lines) + "\n"
    command, file, _ = INSTALLATIONS[args.shell]
    item = {"shell": args.shell, "file": file, "command": command, "script": script}
    if args.output == SCRIPT:
        print(script, end="")
    else:
        output.show(output.document(KIND, [item]), COLUMNS, args)
    return EXIT_OK


def commands_of(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[Command]:
    """Yield a command and those below it."""
    # argparse has no public names for the arguments of a parser.
    flags: list[Flag] = []
    words: list[str] = []
    below: dict[str, argparse.ArgumentParser] = {}
    formatter = parser._get_formatter()  # noqa: SLF001
    for action in parser._actions:  # noqa: SLF001
        if action.help == argparse.SUPPRESS:
            continue
        choices = tuple(map(str, action.choices or ()))
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            below = dict(action.choices)
            words += choices
        elif action.option_strings:
            text = formatter._expand_help(action) if action.help else ""  # noqa: SLF001
            flags.append(Flag((*action.option_strings,), action.nargs != 0, choices, text))
        else:
            words += choices
    yield Command(path, parser.description or "", tuple(flags), tuple(words))
    for name, command in below.items():
        yield from commands_of(command, (*path, name))


ZSH: Final = ("autoload -U +X bashcompinit && bashcompinit",)


def bash(commands: list[Command]) -> Iterator[str]:
    """Yield the lines of the script for bash; zsh has it as well.

    ``path`` and ``words`` are special in zsh, and an index there is no arithmetic expression.
    """
    paths = "|".join(f"/{'/'.join(command.path)}" for command in commands if command.path)
    yield "_waggle() {"
    yield "    local word offered= flags= at= current=${COMP_WORDS[$COMP_CWORD]}"
    yield "    local previous=${COMP_WORDS[$((COMP_CWORD - 1))]}"
    yield '    for word in "${COMP_WORDS[@]:1:$((COMP_CWORD - 1))}"; do'
    yield '        case "$at/$word" in'
    yield f'            {paths}) at="$at/$word" ;;'
    yield "        esac"
    yield "    done"
    yield '    case "$at:$previous" in'
    for command in commands:
        for flag in command.flags:
            if flag.value:
                names = "|".join(f"/{'/'.join(command.path)}:{name}" for name in flag.names)
                pattern = names if command.path else names.replace("/:", ":")
                # Without choices it may be the name of a file, which the shell completes.
                reply = _compgen(shlex.quote(" ".join(flag.choices))) if flag.choices else ":"
                yield f"        {pattern}) {reply}; return ;;"
    yield "    esac"
    yield '    case "$at" in'
    for command in commands:
        path = f"/{'/'.join(command.path)}" if command.path else '""'
        names = " ".join(name for flag in command.flags for name in flag.names)
        words = " ".join(command.words)
        yield f"        {path}) offered={shlex.quote(words)} flags={shlex.quote(names)} ;;"
    yield "    esac"
    yield "    [[ $current == -* ]] && offered=$flags"
    words_of_command = _compgen('"$offered"')
    yield f"    {words_of_command}"
    yield "}"
    yield "complete -o default -F _waggle waggle"


def _compgen(words: str) -> str:
    return f'COMPREPLY=($(compgen -W {words} -- "$current"))'


def fish(commands: list[Command]) -> Iterator[str]:
    """Yield the lines of the script for fish."""
    paths = " ".join("/".join(command.path) for command in commands if command.path)
    yield "function __waggle_at"
    yield "    set -l path"
    yield "    for word in (commandline -opc)[2..-1]"
    yield f"        if contains -- (string join -- / $path $word) {paths}"
    yield "            set -a path $word"
    yield "        end"
    yield "    end"
    yield "    set -l joined (string join / $path)"
    yield '    test "$joined" = "$argv[1]"'
    yield "end"
    helps = {command.path: command.help for command in commands}
    for command in commands:
        at = f"complete -c waggle -n {_fish('__waggle_at ' + repr('/'.join(command.path)))}"
        for word in command.words:
            text = helps.get((*command.path, word), "").partition(". ")[0]
            yield f"{at} -f -a {_fish(word)} -d {_fish(text)}"
        for flag in command.flags:
            names = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in flag.names
            )
            value = " -r" if flag.value else ""
            choices = f" -f -a {_fish(' '.join(flag.choices))}" if flag.choices else ""
            yield f"{at} {names}{value}{choices} -d {_fish(flag.help)}"


def _fish(text: str) -> str:
    r"""Quote a text for fish: within single quotes only ``\`` and ``'`` are escaped."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
