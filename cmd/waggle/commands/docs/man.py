"""Man pages of ``waggle`` and its commands, in section 1, from the parser that prints ``--help``.

The macros are from man(7). A page has the command, and the actions below it as subsections.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

FONT_NAME, FONT_VALUE = "\\fB", "\\fI"


def pages(parser: argparse.ArgumentParser, version: str) -> Iterator[tuple[str, str]]:
    """Yield the file name and the text of each page."""
    commands = _below(parser)
    yield _page_name(parser), _page(parser, version, dict(commands))
    for _, command in commands:
        yield _page_name(command), _page(command, version, {})


def _page_name(parser: argparse.ArgumentParser) -> str:
    return f"{parser.prog.replace(' ', '-')}.1"


def _below(parser: argparse.ArgumentParser) -> list[tuple[str, argparse.ArgumentParser]]:
    """Return the commands below a parser."""
    # argparse has no public names for the arguments of a parser.
    return [
        item
        for action in parser._actions  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001
        for item in action.choices.items()
    ]


def _page(
    parser: argparse.ArgumentParser,
    version: str,
    commands: dict[str, argparse.ArgumentParser],
) -> str:
    name = parser.prog.replace(" ", "-")
    title = (parser.description or "").partition(". ")[0].rstrip(".")
    lines = [
        f'.TH {name.upper()} 1 "" "waggle {version}" "Waggle"',
        ".SH NAME",
        f"{_plain(name)} \\- {_plain(title[:1].lower() + title[1:])}",
        *_body(parser, ".SH"),
    ]
    if commands:
        lines.append(".SH SEE ALSO")
        listed = [f"\\fB{_plain(c.prog.replace(' ', '-'))}\\fR(1)" for c in commands.values()]
        lines.append(", ".join(listed))
    else:
        for _, action in _below(parser):
            lines += [f'.SH "{_plain(action.prog.upper())}"', *_body(action, ".SS")]
        lines += [".SH SEE ALSO", "\\fBwaggle\\fR(1)"]
    return "\n".join(lines) + "\n"


def _body(parser: argparse.ArgumentParser, heading: str) -> Iterator[str]:
    """Yield synopsis, description, arguments and epilog."""
    usage = re.sub(r"\s+", " ", parser.format_usage().removeprefix("usage: ")).strip()
    yield from (f"{heading} SYNOPSIS", _text(usage))
    yield from (f"{heading} DESCRIPTION", _text(parser.description or ""))
    formatter = parser._get_formatter()  # noqa: SLF001
    yield f"{heading} OPTIONS"
    for action in parser._actions:  # noqa: SLF001
        if action.help == argparse.SUPPRESS or isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            continue
        yield ".TP"
        yield _invocation(formatter, action)
        yield _text(formatter._expand_help(action) if action.help else "")  # noqa: SLF001
    for action in parser._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            yield f"{heading} COMMANDS"
            for choice in action._choices_actions:  # noqa: SLF001
                yield from (
                    ".TP",
                    f"{FONT_NAME}{_plain(choice.dest)}\\fR",
                    _text(choice.help or ""),
                )
    for part in filter(None, (parser.epilog or "").split("\n\n")):
        yield from _epilog(part, heading)


def _invocation(formatter: argparse.HelpFormatter, action: argparse.Action) -> str:
    """Return a flag with its value, or an argument, in the fonts of man pages."""
    value = formatter._format_args(action, formatter._get_default_metavar_for_optional(action))  # noqa: SLF001
    if not action.option_strings:
        metavar = action.metavar if isinstance(action.metavar, str) else action.dest
        return f"{FONT_VALUE}{_plain(metavar)}\\fR"
    names = ", ".join(f"{FONT_NAME}{_plain(name)}\\fR" for name in action.option_strings)
    return f"{names} {FONT_VALUE}{_plain(value)}\\fR" if value else names


def _epilog(part: str, heading: str) -> Iterator[str]:
    """Yield a paragraph; one with an indented line is kept in its lines, under its first one."""
    first, _, rest = part.partition("\n")
    if first.endswith(":") and rest:
        yield f'{heading} "{_plain(first.removesuffix(":").upper())}"'
        part = rest
    if "\n " in f"\n{part}":
        yield from (".nf", *map(_text, part.splitlines()), ".fi")
    else:
        yield from (".PP", _text(part.replace("\n", " ")))


def _plain(text: str) -> str:
    """Escape a text within a line."""
    return text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")


def _text(text: str) -> str:
    """Escape a line of text: a leading dot or quote begins no request."""
    line = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{line}" if line[:1] in (".", "'") else line
