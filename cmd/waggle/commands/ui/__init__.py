"""``waggle ui``: the page of an agent, or of all agents of a cluster, on this host's loopback."""

from __future__ import annotations

import argparse
from typing import Any, Final

from waggle import ask_agent, output
from waggle.fleet.flags import add_fleet_flags, asks_cluster, usage_error
from waggle.format_flag import add_format_flag

KIND: Final = "PageAddressList"


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "ui",
        help="serve the page of an agent, or of the whole cluster, to a browser on this host",
        description="Serve the read-only page on loopback, until interrupted: of the agent on this "
        "host, or with --all-nodes of all agents of a cluster, with the rights of a kubeconfig. The "
        "address that is printed admits one browser; without it no one is answered. With -o json and "
        "yaml it is in a document, which is all of standard output.",
        epilog=output.exit_statuses(
            {
                output.EXIT_ERROR: "no agent runs, no cluster is reached, or the port is in use",
                output.EXIT_USAGE: output.USAGE,
                output.EXIT_INTERRUPTED: "interrupted",
            },
            "examples:\n  waggle ui --open\n  waggle ui --all-nodes\n"
            "  waggle ui -o jsonpath='{.items[0].url}{\"\\n\"}'",
        ),
    )
    parser.add_argument(
        "--port", type=_port, default=0, metavar="N", help="the TCP port; by default a free one"
    )
    parser.add_argument("--open", action="store_true", help="open the page in the browser, too")
    ask_agent.add_socket_flag(parser)
    add_fleet_flags(parser)
    add_format_flag(parser, ("table", "json", "jsonl", "yaml"), "table")


def _port(text: str) -> int:
    """Read a port, for argparse. Raises ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"not a port: {text!r}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted; returns the exit status."""
    cluster = asks_cluster(args)
    wrong = usage_error(args) if cluster else None
    if args.from_statuses:
        wrong = "--from-statuses: the page reads from agents"
    if wrong:
        output.complain(args.prog, wrong)
        return output.EXIT_USAGE
    from waggle.commands.ui.program import run_ui

    try:
        return run_ui(args, cluster=cluster)
    except ask_agent.AgentError as error:
        output.fail(args, KIND, error.code, str(error))
        return output.EXIT_ERROR
