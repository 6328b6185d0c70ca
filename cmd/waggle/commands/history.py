"""``waggle history``: the last changes of an agent, each with its cause, old and new."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from cells.arguments import positive
from cells.safe_text import escape
from waggle import ask_agent, output
from waggle.history import COLUMNS, line
from waggle.output import EXIT_ERROR, EXIT_NOT_FOUND, EXIT_OK, EXIT_USAGE, NO_AGENT

OFF: Final = "the agent keeps no history: it was started with --history-entries 0"
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
MOST: Final = 200


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "history",
        help="list the last changes of objects, routes and sessions, with their causes",
        description="List the last changes that the agent has seen, the oldest first: of objects, of "
        "the routes that follow from them, of sessions. The agent keeps --history-entries of them, "
        "and with --history-on-disk over a restart.",
        epilog=output.exit_statuses(
            {
                EXIT_OK: "success, also without changes",
                EXIT_ERROR: f"{NO_AGENT}, or it keeps no history; with --watch: the agent stopped",
                EXIT_USAGE: output.USAGE,
                EXIT_NOT_FOUND: "no change of it is among the entries",
                output.EXIT_INTERRUPTED: output.WATCH_ENDS,
            },
            "examples:\n  waggle history --since 15m\n  waggle history 198.51.100.0/24\n"
            "  waggle history shop/web\n  waggle history tor-1 --watch",
        ),
    )
    parser.add_argument(
        "target",
        nargs="?",
        metavar="OBJECT|PREFIX|PEER",
        help="only changes of it or that it caused: [KIND/]NAMESPACE/NAME; a prefix, with more "
        "specific ones; an address; a peer by name or address",
    )
    parser.add_argument(
        "--since",
        type=_since,
        metavar="TIME",
        help="only changes from then on: 90s, 15m, 2h, 3d ago, or a time (RFC 3339)",
    )
    parser.add_argument(
        "--limit",
        type=positive,
        default=MOST,
        metavar="N",
        help="at most the last N (default: %(default)s)",
    )
    parser.add_argument(
        "-w", "--watch", action="store_true", help="print new changes as they come, too"
    )
    ask_agent.add_socket_flag(parser)
    output.add_output_flags(parser)


def _since(text: str) -> datetime:
    """Read a time or a duration, for argparse. Raises ArgumentTypeError."""
    if match := re.fullmatch(r"(\d{1,9})([smhd])", text, re.ASCII):
        try:
            return datetime.now(UTC) - timedelta(seconds=int(match[1]) * _SECONDS[match[2]])
        except OverflowError:
            return datetime.min.replace(tzinfo=UTC)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"neither a time nor 90s, 15m, 2h, 3d: {text!r}") from None
    return time if time.tzinfo is not None else time.astimezone()


def run(args: argparse.Namespace) -> int:
    """Print the changes; returns the exit status."""
    if args.watch and args.output not in ("table", "wide", "jsonl"):
        output.complain(args.prog, "--watch: with -o table, wide, jsonl only")
        return EXIT_USAGE
    query = {
        "about": args.target,
        "since": None if args.since is None else args.since.isoformat(),
        "limit": str(args.limit),
    }
    answer = ask_agent.read(args, "HistoryList", "/v1/history", query, OFF)
    if answer is None:
        return EXIT_ERROR
    answer["items"].reverse()
    if args.watch:
        for error in answer["errors"]:  # what is followed may come yet
            output.complain(args.prog, error["message"])
        return _watch(args, answer["items"])
    if args.output not in ("table", "wide"):
        output.dump(answer, args.output)
    elif answer["errors"]:
        output.complain(args.prog, answer["errors"][0]["message"])
    elif answer["items"]:
        output.table(COLUMNS, answer["items"], args)
    else:
        ago = "since the agent has started" if args.since is None else "in that time"
        output.complain(args.prog, f"no change {ago}")
    return EXIT_NOT_FOUND if answer["errors"] else EXIT_OK


def _watch(args: argparse.Namespace, items: Iterable[dict[str, Any]]) -> int:
    """Print the entries, then new ones until the agent stops; returns the exit status."""

    def show(item: dict[str, Any]) -> None:
        text = output.safe_json(item) if args.output == "jsonl" else escape(line(item))
        print(text, flush=True)

    query = {"about": args.target}
    for item in items:
        show(item)
        query["after"] = str(item["sequence"])  # what has come meanwhile is the first that follows
    try:
        for item in ask_agent.client(args).stream("/v1/history/follow", query):
            show(item)
    except ask_agent.AgentError as error:
        output.complain(args.prog, str(error))
    return EXIT_ERROR
