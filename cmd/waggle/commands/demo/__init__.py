"""`waggle demo`: an agent and a router on loopback, and the routes that the router receives, live.

Runs two processes: `waggle-agent` on a directory of manifests, and `waggle router`, which is the peer
of those manifests. This module declares the command; `waggle.commands.demo.program` runs it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from cells.api.agent_socket import SOCKET_ENV
from cells.arguments import positive_seconds
from waggle.format_flag import add_format_flag
from waggle.output import EXIT_ERROR, EXIT_OK, EXIT_USAGE, exit_statuses

NAME = "demo"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        NAME,
        help="run an agent and a router on loopback, live",
        description="Run an agent on a directory of manifests and a router on another loopback "
        "address, and show the routes that the router receives. Ctrl-C, or the end of the terminal, "
        "ends both. The other commands reach the agent at its usual socket. -o json, jsonl and yaml "
        "have its changes, each on its own; with --once, --detach and --stop they have one answer.",
        epilog=exit_statuses(
            {
                EXIT_OK: "ended by Ctrl-C; --once, --detach: the router holds the routes of waggle "
                "render; --stop: ended",
                EXIT_ERROR: "a program failed; --once, --detach: other routes after --timeout; "
                "--stop: no demo runs",
                EXIT_USAGE: "wrong usage, or no such file or directory",
            }
        ),
    )
    parser.add_argument(
        "--manifests",
        type=Path,
        metavar="DIR",
        help="the agent's manifests (default: examples/quickstart, or a copy of the installed ones)",
    )
    parser.add_argument(
        "--router",
        type=Path,
        metavar="FILE",
        help="the router's configuration (default: examples/router.yaml, or a copy of it)",
    )
    parser.add_argument(
        "--node", default="node-1", metavar="NAME", help="the agent's node (default: %(default)s)"
    )
    parser.add_argument(
        "--socket",
        metavar="PATH",
        type=Path,
        help=f"the agent's socket [{SOCKET_ENV}; default: as for the other commands]",
    )
    way = parser.add_mutually_exclusive_group()
    way.add_argument(
        "--detach",
        action="store_true",
        help="return as soon as the router holds the routes; both programs go on in the background",
    )
    way.add_argument(
        "--stop", action="store_true", help="end the demo that runs in the background or elsewhere"
    )
    way.add_argument(
        "--once",
        action="store_true",
        help="exit as soon as the router holds exactly the routes of `waggle render`",
    )
    parser.add_argument(
        "--timeout",
        type=positive_seconds,
        default=30.0,
        metavar="SECONDS",
        help="the longest time that --once and --detach wait (default: %(default)g)",
    )
    parser.add_argument(
        "--screenshot",
        type=Path,
        metavar="FILE",
        help="with --once or --detach: write the tables as an SVG picture",
    )
    add_format_flag(parser, ("table", "json", "jsonl", "yaml"), "table")


def run(args: argparse.Namespace) -> int:
    """Run the demo; returns the exit status."""
    from waggle.commands.demo.program import main

    return main(args)
