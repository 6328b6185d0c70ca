"""``waggle watch``: the objects that a running agent reads, and their changes, one line each."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from cells.safe_text import escape
from waggle import ask_agent, output
from waggle.endless import print_error, print_item


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the arguments of ``waggle watch``."""
    parser = subparsers.add_parser(
        "watch",
        help="print objects and their changes as the agent reads them",
        description="Print the objects of some kinds that a running agent has read, then each change, "
        "until the agent stops. Only names are printed, no contents.",
        epilog=output.exit_statuses(
            {
                output.EXIT_ERROR: "the agent stopped, or no agent runs",
                output.EXIT_USAGE: output.USAGE,
                output.EXIT_NOT_FOUND: "the agent reads no kind of that name",
                output.EXIT_INTERRUPTED: "interrupted",
            },
            "example:\n  waggle watch services nodes",
        ),
    )
    parser.add_argument(
        "kinds",
        nargs="+",
        metavar="KIND",
        help="a kind: plural, singular or CamelCase (services, service, Service)",
    )
    parser.add_argument(
        "--watch-only", action="store_true", help="print changes only, not the present objects"
    )
    ask_agent.add_socket_flag(parser)
    output.add_output_flags(parser, ("table", "json", "jsonl", "yaml"), headers=False, ends=False)


def run(args: argparse.Namespace) -> int:
    """Print changes until the agent stops or the output is closed; returns the exit status."""
    query: dict[str, str | None] = {
        "kind": ",".join(args.kinds),
        "changesOnly": "true" if args.watch_only else None,
    }
    try:
        for item in ask_agent.client(args).stream("/v1/watch", query):
            if args.output == "table":
                sys.stdout.write(escape(_text(item)) + "\n")
                sys.stdout.flush()
            else:
                print_item(item, args.output)
    except ask_agent.AgentError as error:
        if args.output == "table":
            output.complain("waggle watch", str(error))
        else:
            print_error(error.code, str(error), args.output)
        return output.EXIT_NOT_FOUND if error.code == "NotFound" else output.EXIT_ERROR
    return output.EXIT_OK


def _text(item: dict[str, Any]) -> str:
    name = "/".join(filter(None, (item.get("namespace"), item["name"])))
    time = (
        output.read_time(item["eventTime"])
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )
    return f"{time}  {item['type']:<8}  {item['kind']}  {name}"
