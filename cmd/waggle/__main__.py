"""The front end of ``waggle``: imports the selected sub-command alone and runs it.

All sub-commands are imported only to list them in the help, so that ``waggle render`` does not load a
table library or an HTTP client. API dialects add sub-commands: the help lists them from the entries of
the dialects, and imports none.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from cells.arguments import Parser, open_standard_streams
from reconcilers.dialect_entry import Subcommand
from waggle.dialects import DIALECTS, Dialects
from waggle.output import (
    EXIT_ERROR,
    EXIT_INCOMPLETE,
    EXIT_INTERRUPTED,
    EXIT_NOT_FOUND,
    EXIT_OK,
    EXIT_PIPE,
    EXIT_USAGE,
    INCOMPLETE,
    complain,
    exit_statuses,
    is_of_output,
)
from waggle.paging import on_terminal

COMMANDS = (
    "status",
    "peers",
    "bfd",
    "routes",
    "explain",
    "doctor",
    "trace",
    "history",
    "events",
    "top",
    "metrics",
    "ui",
    "watch",
    "reconcilers",
    "verify",
    "log",
    "api",
    "render",
    "check",
    "plan",
    "convert",
    "crds",
    "decode",
    "replay",
    "router",
    "demo",
    "errors",
    "schema",
    "bugreport",
    "docs",
    "completion",
)
"""Modules of `waggle.commands` with ``add_parser(subparsers)`` and ``run(args)``, which returns the
exit status. ``add_parser`` imports nothing slow."""
OF_DIALECTS = frozenset({"explain", "doctor", "render", "check", "plan", "convert", "crds"})
"""Modules whose ``add_parser(subparsers, dialects)`` takes the API dialects as well."""

EPILOG = exit_statuses(
    {
        EXIT_OK: "success",
        EXIT_ERROR: "failure, no agent runs, or a check failed (status, verify, --strict)",
        EXIT_USAGE: "wrong usage, or unreadable input",
        EXIT_INCOMPLETE: INCOMPLETE,
        EXIT_NOT_FOUND: "no object, peer, prefix or kind of that name",
        EXIT_INTERRUPTED: "interrupted",
    },
    "waggle COMMAND --help describes a command and its exit statuses.",
)


NONSENSE = (LookupError, TypeError, ValueError, AttributeError)
"""Errors of answers that are not what their kind has."""

Subparsers: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001 - no public name
Run: TypeAlias = Callable[[argparse.Namespace], int]


def kubectl_main() -> int:
    """Run the program as the plugin of kubectl, which has whole clusters before it."""
    return main(plugin=True)


def main(
    argv: Sequence[str] | None = None, dialects: Dialects = DIALECTS, *, plugin: bool = False
) -> int:
    """Run the program with these API dialects; returns its exit status.

    ``plugin``: as ``kubectl waggle``, whose commands ask all nodes where they can.
    """
    if argv is None:
        # Modules and answers remain: with the default thresholds a start would collect often.
        gc.set_threshold(200_000, 20, 50)
        atexit.register(gc.freeze)  # The interpreter collects before it exits.
    arguments = sys.argv[1:] if argv is None else list(argv)
    if open_standard_streams():
        complain("waggle", "standard output is closed")
        return EXIT_ERROR
    if isinstance(sys.stdout, io.TextIOWrapper):
        # As standard error: a name that the locale cannot encode ends no command.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            status = _dispatch(arguments, dialects, plugin=plugin)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except OSError as error:
        if not isinstance(error, BrokenPipeError) and not is_of_output(error):
            raise
        return output_failed(error)
    return status


def output_failed(error: OSError) -> int:
    """Return the exit status of a program whose output cannot be written.

    A pipe that its reader has closed is no error (``waggle routes | head``).
    """
    _discard_output()
    if isinstance(error, BrokenPipeError):
        return EXIT_PIPE
    complain("waggle", f"standard output: {error.strerror}")
    return EXIT_ERROR


def _discard_output() -> None:
    """Direct standard output to nowhere: the interpreter flushes once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(arguments: Sequence[str], dialects: Dialects, *, plugin: bool) -> int:
    command = next(
        (word for word in arguments if not word.startswith("-") and word != "help"), None
    )
    known = {*COMMANDS, *dialects.subcommands}
    names = (command,) if command in known else COMMANDS
    parser, commands = _parser(names, dialects)
    parser.set_defaults(plugin=plugin)
    args = parser.parse_args(arguments)
    with on_terminal(args):
        try:
            return commands[args.command](args)
        except NONSENSE as error:
            if not getattr(args, "has_requested", False):
                raise
            return _not_understood(args, error)


def _not_understood(args: argparse.Namespace, error: Exception) -> int:
    """Return the exit status of a command that failed on the answer of an agent or router.

    Programs of other versions answer, and programs that are neither.
    """
    import traceback

    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno}"  # noqa: PTH119
    text = f"{type(error).__name__}: {error} ({where})"
    complain(args.prog, f"the answer of the {args.server} is not understood: {text}")
    return EXIT_ERROR


def whole_parser() -> Parser:
    """Return the parser with all commands, including the commands of API dialects."""
    return _parser((*COMMANDS, *DIALECTS.subcommands), DIALECTS)[0]


def _parser(names: Sequence[str], dialects: Dialects) -> tuple[Parser, dict[str, Run]]:
    """Return a parser with these commands, and what runs each.

    With all of `COMMANDS` alone the subcommands of dialects are listed in the help, and not imported.
    """
    parser = Parser(
        prog="waggle",
        description="Show the state of a running Waggle agent, and work on manifests without one.",
        epilog=EPILOG,
    )
    parser.add_version()
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    commands = {name: _command(name, subparsers, dialects) for name in names if name in COMMANDS}
    for name, subcommand in dialects.subcommands.items():
        if name in names:
            commands[name] = _of_dialect(subcommand, subparsers)
        elif names == COMMANDS:
            subparsers.add_parser(name, help=subcommand.help)
    return parser, commands


def _command(name: str, subparsers: Subparsers, dialects: Dialects) -> Run:
    module: Any = importlib.import_module(f"waggle.commands.{name}")
    module.add_parser(subparsers, *((dialects,) if name in OF_DIALECTS else ()))
    run: Run = module.run
    return run


def _of_dialect(subcommand: Subcommand, subparsers: Subparsers) -> Run:
    from waggle import dialect_command

    return dialect_command.add_parser(subparsers, subcommand)


if __name__ == "__main__":
    sys.exit(main())
