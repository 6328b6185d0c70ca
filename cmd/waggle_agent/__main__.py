"""Run the agent: loads settings, runs the hive until SIGTERM or SIGINT, returns the exit status."""

from __future__ import annotations

import asyncio
import gc
import importlib.metadata
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import structlog
import uvloop

from cells.agent import agent_cells
from cells.api.client import AgentError, get
from cells.api.model import ReconcilerItem, default_path
from cells.api.server import ApiOptions
from cells.apply.api import reconciler_item
from cells.apply.show import lines
from cells.arguments import Parser
from cells.dialects import cilium
from cells.hive import Cell, Hive, HiveError, Settings, add_flags, load, read_file
from cells.hive.errors import SettingError
from cells.hive.option_loading import CONFIG_ENV
from cells.hive.show import CellView, dot, tree, views
from cells.text import escape
from reconcilers.apply import Runner

DIALECTS = (cilium.AGENT,)
"""The cells of the API dialects."""
CELLS = agent_cells(*DIALECTS)

SOURCES = ("manifests", "kubernetes")
"""The cells with a source of objects; at most one is enabled."""
EXIT_OK, EXIT_ERROR, EXIT_USAGE, EXIT_PIPE = 0, 1, 2, 141

DESCRIPTION = """\
Run the BGP control plane of a Kubernetes node: compile the objects of the cluster to peers and
routes, and advertise these with BGP.

  waggle-agent                run the agent
  waggle-agent cells [--dot]  print its cells and their state
  waggle-agent reconcilers    print its reconcilers in their order, and their state
"""
EPILOG = """\
Every option is a flag, an environment variable (in brackets) and a key of the configuration file. A
flag overrides a variable, a variable overrides the file.

exit status:
  0  ended by SIGTERM or SIGINT, all sessions closed
  1  cannot start, or a part has failed permanently
  2  wrong flag, variable or key
"""

T = TypeVar("T")

log = structlog.get_logger("waggle.agent")


def main(
    argv: Sequence[str] | None = None,
    env: Mapping[str, str] | None = None,
    cells: Sequence[Cell] = CELLS,
) -> int:
    """Run the program with these cells; returns its exit status."""
    args = _parser(cells).parse_args(argv)
    try:
        settings = _settings(cells, vars(args), os.environ if env is None else env)
        if args.command == "cells":
            return _quietly_cut(lambda: _cells(cells, settings, as_dot=args.dot))
        if args.command == "reconcilers":
            return _quietly_cut(lambda: _reconcilers(cells, settings))
        hive = Hive(cells, settings)
    except HiveError as error:
        _complain(error)
        return EXIT_USAGE
    return uvloop.run(_run(hive))


def _quietly_cut(work: Callable[[], int]) -> int:
    """Print; a pipe closed by its reader (``... | head``) is no error."""
    try:
        status = work()
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes once more at exit and needs an open file.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PIPE
    return status


def _parser(cells: Sequence[Cell]) -> Parser:
    parser = Parser(prog="waggle-agent", description=DESCRIPTION, epilog=EPILOG)
    version = importlib.metadata.version("waggle-bgp")
    parser.add_argument("--version", action="version", version=f"waggle-agent {version}")
    parser.add_argument(
        "command",
        nargs="?",
        choices=("run", "cells", "reconcilers"),
        default="run",
        metavar="COMMAND",
        help="run (the default), cells or reconcilers",
    )
    parser.add_argument("--dot", action="store_true", help="with cells: print Graphviz")
    parser.add_argument(
        "--config", metavar="FILE", type=Path, help=f"read options from this YAML [{CONFIG_ENV}]"
    )
    add_flags(parser, cells)
    return parser


def _settings(cells: Sequence[Cell], flags: Mapping[str, Any], env: Mapping[str, str]) -> Settings:
    path = flags["config"] or (Path(env[CONFIG_ENV]) if env.get(CONFIG_ENV) else None)
    file = read_file(path) if path is not None else {}
    settings = load(cells, flags=flags, env=env, file=file, file_name=str(path or ""))
    if all(settings.enabled[source] for source in SOURCES):
        # Each would delete the objects of the other one.
        raise SettingError(
            "", "--kubeconfig", "excludes --manifests: an agent has one source of objects"
        )
    return settings


def _cells(cells: Sequence[Cell], settings: Settings, *, as_dot: bool) -> int:
    if as_dot:
        print(dot(views(cells, settings)))
        return EXIT_OK
    # Builds the cells to report errors of the start, without starting them.
    Hive(cells, settings)
    print(tree(_running(settings, "/v1/cells", CellView) or views(cells, settings)))
    return EXIT_OK


def _reconcilers(cells: Sequence[Cell], settings: Settings) -> int:
    runner = Hive(cells, settings).get(Runner)
    known = _running(settings, "/v1/reconcilers", ReconcilerItem)
    print(lines(known or map(reconciler_item, runner.reports())))
    return EXIT_OK


def _running(settings: Settings, path: str, kind: type[T]) -> list[T] | None:
    """Return the items of the agent that runs with these settings; None if no agent runs."""
    options = settings.options["api"]
    socket = Path(options.socket) if isinstance(options, ApiOptions) and options.socket else None
    try:
        answer = get(socket or default_path(), path, {})
    except AgentError:
        return None
    return [msgspec.convert(item, kind) for item in answer["items"]]


async def _run(hive: Hive) -> int:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_unhandled)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, hive.shutdown)
    if not hive.settings.enabled["logging"]:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(100))
    hive.readiness.when_ready(_settle_memory)

    def started() -> None:
        if not any(hive.settings.enabled[source] for source in SOURCES):
            log.warning(
                "no source of objects, so no route will be advertised: "
                "set --kubeconfig FILE or --manifests DIR",
                event_name="agent.no_source",
            )

    try:
        await hive.run(started)
    except Exception as error:  # noqa: BLE001 - reported as one sentence and an exit status
        _complain(error)
        return EXIT_ERROR
    return EXIT_OK


def _settle_memory() -> None:
    """Tune the garbage collector once the tables are full.

    Present objects (modules, rows, attributes) mostly remain, so later collections skip them and are
    less frequent: a full collection of a million objects would delay every session. Reference
    counting frees nearly all objects anyway.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _unhandled(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    log.error(
        "unhandled error in the event loop",
        event_name="agent.unhandled",
        what=context.get("message"),
        exc_info=context.get("exception"),
    )


def _complain(error: Exception) -> None:
    text = str(error) if isinstance(error, HiveError) else str(error) or type(error).__name__
    print(f"waggle-agent: {escape(text)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
