"""Run the agent: loads settings, runs the hive until SIGTERM or SIGINT, returns the exit status."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cells.agent import agent_cells
from cells.arguments import Parser, open_standard_streams
from cells.dialects.cell import DialectCell
from cells.hangup import note_hangups
from cells.hive import Cell, HiveError, Settings, add_flags, load, read_file
from cells.hive.errors import SettingError
from cells.hive.option_loading import CONFIG_ENV
from cells.lean_imports import import_lean
from cells.operator.cells import operator_cells
from cells.safe_text import escape
from waggle.dialects import DIALECTS
from waggle.format_flag import add_format_flag

CELLS = agent_cells(*DIALECTS)

OPERATOR_CELLS = operator_cells(*DIALECTS)
"""Of the operator, whose variables an agent in the same environment ignores."""

SOURCES = ("manifests", "kubernetes")
"""The cells with a source of objects; at most one is enabled."""
EXIT_OK, EXIT_ERROR, EXIT_USAGE, EXIT_PIPE = 0, 1, 2, 141
TEXT = "text"
"""The format of ``-o`` by default."""

DESCRIPTION = """\
Run the BGP control plane of a Kubernetes node: compile the objects of the cluster to peers and
routes, and advertise these with BGP.

  waggle-agent                            run the agent
  waggle-agent cells [--dot | -o FORMAT]  print its cells and their state
  waggle-agent reconcilers [-o FORMAT]    print its reconcilers, and their state
"""
EPILOG = """\
Every option is a flag, an environment variable (in brackets) and a key of the configuration file. A
flag overrides a variable, a variable overrides the file.

exit status:
  0  ended by SIGTERM or SIGINT, all sessions closed
  1  cannot start, or a part has failed permanently
  2  wrong flag, variable or key
"""


def main(
    argv: Sequence[str] | None = None,
    env: Mapping[str, str] | None = None,
    cells: Sequence[Cell] = CELLS,
) -> int:
    """Run the program with these cells; returns its exit status."""
    # Modules and rows remain: with the default thresholds the start would collect often.
    gc.set_threshold(200_000, 20, 50)
    open_standard_streams()
    args = _arguments(_parser(cells), argv)
    # Before the imports of an agent, which take a while.
    hung_up = note_hangups() if args.command == "run" else None
    environment = os.environ if env is None else env
    try:
        settings = _settings(cells, vars(args), environment)
        import_lean()
        # With the cells that are on: --help imports none of them.
        from cells.hive.hive import Hive
        from waggle_agent import program

        if args.command == "cells":
            form = "dot" if args.dot else args.output or TEXT
            return _quietly_cut(lambda: program.print_cells(cells, settings, form))
        if args.command == "reconcilers":
            return _quietly_cut(
                lambda: program.print_reconcilers(cells, settings, args.output or TEXT)
            )
        hive = Hive(cells, settings)
    except HiveError as error:
        _complain(error)
        return EXIT_USAGE
    try:
        program.run(hive, lambda: _settings(cells, vars(args), environment), hung_up)
    except Exception as error:  # noqa: BLE001 - reported as one sentence and an exit status
        _complain(error)
        return EXIT_ERROR
    return EXIT_OK


def _quietly_cut(work: Callable[[], None]) -> int:
    """Print; a pipe closed by its reader (``... | head``) is no error."""
    try:
        work()
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes once more at exit and needs an open file.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PIPE
    return EXIT_OK


def _prefix_tables() -> str:
    from speaker.server import PREFIX_TABLE_FORM

    return f"prefix tables in {PREFIX_TABLE_FORM}"


def _parser(cells: Sequence[Cell]) -> Parser:
    parser = Parser(prog="waggle-agent", description=DESCRIPTION, epilog=EPILOG)
    parser.add_version(_prefix_tables)
    parser.add_argument(
        "command",
        nargs="?",
        choices=("run", "cells", "reconcilers"),
        default="run",
        metavar="COMMAND",
        help="run (the default), cells or reconcilers",
    )
    parser.add_argument("--dot", action="store_true", help="with cells: print Graphviz")
    add_format_flag(parser, (TEXT, "json", "jsonl", "yaml"), TEXT)
    parser.add_argument(
        "--config", metavar="FILE", type=Path, help=f"read options from this YAML [{CONFIG_ENV}]"
    )
    # Dialects last: most nodes have one, and the flags of all are many.
    add_flags(parser, sorted(cells, key=lambda cell: isinstance(cell, DialectCell)))
    return parser


def _arguments(parser: Parser, argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the arguments; ``output`` is None without ``-o``. Refuses flags of another command."""
    args = parser.parse_args(argv, argparse.Namespace(output=None))
    if args.dot and args.command != "cells":
        parser.error("--dot: only with cells")
    if args.output is not None and args.command == "run":
        parser.error("-o: only with cells or reconcilers")
    if args.dot and args.output is not None:
        parser.error("--dot excludes -o")
    return args


def _settings(cells: Sequence[Cell], flags: Mapping[str, Any], env: Mapping[str, str]) -> Settings:
    path = flags["config"] or (Path(env[CONFIG_ENV]) if env.get(CONFIG_ENV) else None)
    file = read_file(path) if path is not None else {}
    settings = load(
        cells, flags=flags, env=env, file=file, file_name=str(path or ""), foreign=OPERATOR_CELLS
    )
    if all(settings.enabled[source] for source in SOURCES):
        # Each would delete the objects of the other.
        raise SettingError(
            "", "--kubeconfig", "excludes --manifests: an agent has one source of objects"
        )
    return settings


def _complain(error: Exception) -> None:
    text = str(error) if isinstance(error, HiveError) else str(error) or type(error).__name__
    print(f"waggle-agent: {escape(text)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
