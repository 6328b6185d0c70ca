"""``waggle watch``: the changes of objects as a running agent reads them, a line each."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from cells.text import escape
from waggle import agent, output
from waggle.peers import read_time


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments of ``waggle watch``."""
    parser = subparsers.add_parser(
        "watch",
        help="changes of objects as the agent reads them",
        description="Print the objects that a running agent has read, then each change of them.",
        epilog="For example: waggle watch services nodes. Contents are never shown.",
    )
    parser.add_argument(
        "kinds",
        nargs="+",
        metavar="KIND",
        help="plural, singular or kind, for example services, service, Service",
    )
    parser.add_argument(
        "--watch-only", action="store_true", help="print changes only, not what is there already"
    )
    agent.add_socket_flag(parser)
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "json"),
        default="text",
        help="a line of text, or of JSON, for each change (default: text)",
    )


def run(args: argparse.Namespace) -> int:
    """Print changes until the agent stops or the reader leaves; the exit status."""
    query: dict[str, str | None] = {
        "kind": ",".join(args.kinds),
        "changesOnly": "true" if args.watch_only else None,
    }
    try:
        for item in agent.stream(args.socket or agent.default_socket(), "/v1/watch", query):
            line = output.safe_json(item) if args.output == "json" else escape(_text(item))
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
    except agent.AgentError as error:
        if args.output == "json":
            failure = {"code": error.code, "message": str(error)}
            sys.stdout.write(output.safe_json({"errors": [failure]}) + "\n")
        else:
            output.complain("waggle watch", str(error))
        return output.EXIT_NOT_FOUND if error.code == "NotFound" else output.EXIT_ERROR
    return output.EXIT_OK


def _text(item: dict[str, Any]) -> str:
    name = "/".join(filter(None, (item.get("namespace"), item["name"])))
    time = read_time(item["eventTime"]).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return f"{time}  {item['type']:<8}  {item['kind']}  {name}"
