"""Run the operator: loads settings, runs the hive until it is ended, returns the exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from cells.agent import agent_cells
from cells.arguments import EXIT_USAGE, Parser, open_standard_streams
from cells.dialects.cell import DialectCell
from cells.hive import Cell, HiveError, Settings, add_flags, load, read_file
from cells.hive.option_loading import CONFIG_ENV
from cells.lean_imports import import_lean
from cells.operator.cells import operator_cells
from cells.options import KubernetesOptions
from cells.safe_text import escape
from waggle.dialects import DIALECTS

CELLS = operator_cells(*DIALECTS)

AGENT_CELLS = agent_cells(*DIALECTS)
"""Of the agent, whose variables an operator in the same environment ignores."""

EXIT_OK, EXIT_ERROR = 0, 1

DESCRIPTION = """\
Run the cluster-wide part of Waggle: write the objects that the enabled API dialects generate for the
cluster, and the conditions of BGP objects. Of several operators one is the leader.
"""
EPILOG = """\
Every option is a flag, an environment variable (in brackets) and a key of the configuration file. A
flag overrides a variable, a variable overrides the file.

exit status:
  0  ended by SIGTERM, SIGINT or SIGHUP, the Lease released
  1  cannot start, a part has failed permanently, or the leadership is lost
  2  wrong flag, variable or key
"""


def main(
    argv: Sequence[str] | None = None,
    env: Mapping[str, str] | None = None,
    cells: Sequence[Cell] = CELLS,
) -> int:
    """Run the program with these cells; returns its exit status."""
    open_standard_streams()
    args = vars(_parser(cells).parse_args(argv))
    environment = os.environ if env is None else env
    try:
        settings = _settings(cells, args, environment)
        options = settings.options["kubernetes"]
        if isinstance(options, KubernetesOptions) and options.kubeconfig is None:
            _complain("no cluster: set --kubeconfig FILE, or --kubeconfig in-cluster")
            return EXIT_USAGE
        import_lean()
        # With the cells that are on: --help imports none of them.
        from cells.hive.hive import Hive
        from waggle_operator import program

        hive = Hive(cells, settings)
    except HiveError as error:
        _complain(str(error))
        return EXIT_USAGE
    try:
        program.run(hive)
    except Exception as error:  # noqa: BLE001 - reported as one sentence and an exit status
        _complain(str(error) or type(error).__name__)
        return EXIT_ERROR
    return EXIT_OK


def _parser(cells: Sequence[Cell]) -> Parser:
    parser = Parser(prog="waggle-operator", description=DESCRIPTION, epilog=EPILOG)
    parser.add_version()
    parser.add_argument(
        "--config", metavar="FILE", type=Path, help=f"read options from this YAML [{CONFIG_ENV}]"
    )
    # Dialects last: most nodes have one, and the flags of all are many.
    add_flags(parser, sorted(cells, key=lambda cell: isinstance(cell, DialectCell)))
    return parser


def _settings(
    cells: Sequence[Cell], flags: Mapping[str, object], env: Mapping[str, str]
) -> Settings:
    given = flags["config"] or env.get(CONFIG_ENV)
    path = Path(str(given)) if given else None
    file = read_file(path) if path is not None else {}
    return load(
        cells, flags=flags, env=env, file=file, file_name=str(path or ""), foreign=AGENT_CELLS
    )


def _complain(text: str) -> None:
    print(f"waggle-operator: {escape(text)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
