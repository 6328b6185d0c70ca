"""``waggle router``: the speaker alone as a small BGP router, for labs, demos, tests and benchmarks.

The proof that `speaker` needs nothing else of this project. This module only declares the
command; the work is in modules that are imported when they are needed. docs/router.md describes
the file.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

EXIT_ERROR = 1
EXIT_USAGE = 2


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the command, its flags and its actions."""
    parser = subparsers.add_parser(
        "router",
        help="the speaker alone, as a small BGP router",
        description="Run a small BGP router, or change what a running one announces.",
        epilog="Without an action it runs until SIGTERM. docs/router.md describes the file.",
    )
    _add_config(parser, default=None)
    parser.add_argument(
        "--restarted",
        action="store_true",
        help="a predecessor has left its routes with neighbours that have graceful restart",
    )
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="write every input of the speaker into a file, for waggle replay",
    )
    parser.add_argument(
        "--record-limit",
        type=int,
        default=256,
        metavar="MIB",
        help="how large that file may become (default: %(default)s)",
    )
    parser.set_defaults(action="run")
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    for name, text in (
        ("announce", "announce prefixes at a running router"),
        ("withdraw", "withdraw prefixes at a running router"),
    ):
        action = actions.add_parser(name, help=text, description=f"{text.capitalize()}.")
        action.add_argument("prefixes", nargs="+", metavar="PREFIX", help="such as 10.0.0.0/24")
        _add_where(action)
        if name == "announce":
            _add_attributes(action)
    for name, text in (
        ("reset", "end a neighbour's session and begin again"),
        ("shutdown", "end a neighbour's session and keep it down"),
        ("enable", "begin again with a neighbour that was shut down"),
    ):
        action = actions.add_parser(name, help=text, description=f"{text.capitalize()}.")
        action.add_argument("peer", metavar="NEIGHBOR", help="its name")
        if name != "enable":
            action.add_argument(
                "--message", default="", metavar="TEXT", help="for the people at the other end"
            )
        _add_where(action)
    refresh = actions.add_parser(
        "refresh",
        help="ask a neighbour of a running router to send its routes again",
        description="Ask a neighbour to send its routes again (RFC 2918).",
    )
    refresh.add_argument("peer", metavar="NEIGHBOR", help="its name")
    refresh.add_argument("--family", metavar="FAMILY", help="only this one, such as ipv4-unicast")
    _add_where(refresh)
    for name, text in (
        ("peers", "the sessions of a running router, as JSON"),
        ("collectors", "the monitoring stations of a running router, as JSON"),
        ("routes", "the routes of a running router, as JSON"),
    ):
        action = actions.add_parser(name, help=text, description=f"Print {text}.")
        _add_where(action)
        if name == "routes":
            action.add_argument(
                "table",
                nargs="?",
                default="available",
                choices=("available", "received", "advertised"),
                help="which table (default: %(default)s)",
            )
            action.add_argument("--peer", metavar="P", help="only this peer")


def _add_config(parser: argparse.ArgumentParser, default: Any) -> None:  # noqa: ANN401  argparse's
    parser.add_argument(
        "-c",
        "--config",
        type=Path,
        default=default,
        metavar="FILE",
        help="the router's configuration, YAML",
    )


def _add_where(parser: argparse.ArgumentParser) -> None:
    _add_config(parser, default=argparse.SUPPRESS)
    parser.add_argument(
        "--socket",
        type=Path,
        metavar="PATH",
        help="the running router's apiSocket (default: the one that FILE names)",
    )


def _add_attributes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--next-hop", metavar="ADDRESS", help="instead of the session's own")
    parser.add_argument("--med", type=int, metavar="N", help="MULTI_EXIT_DISC")
    parser.add_argument("--local-preference", type=int, metavar="N", help="for iBGP peers")
    parser.add_argument(
        "--community",
        action="append",
        default=[],
        dest="communities",
        metavar="A:B",
        help="a community; may be given several times",
    )
    parser.add_argument(
        "--large-community",
        action="append",
        default=[],
        dest="large_communities",
        metavar="A:B:C",
        help="a large community; may be given several times",
    )


def run(args: argparse.Namespace) -> int:
    """Run the router or the action; the exit status."""
    # Imported here, so that help stays quick.
    from waggle.router.config import ConfigError, load

    action = args.action or "run"
    try:
        config = load(args.config) if args.config is not None else None
    except ConfigError as error:
        return _usage(str(error))
    if action == "run":
        if config is None:
            return _usage("waggle router needs -c FILE")
        from waggle.router.program import main

        return main(
            config,
            restarted=args.restarted,
            record=args.record,
            record_limit=args.record_limit * 1024 * 1024,
        )
    socket = args.socket or (config.api_socket if config is not None else None)
    if socket is None:
        return _usage(f"waggle router {action} needs --socket PATH, or -c FILE with apiSocket")
    from waggle.router import client

    return client.run(action, Path(socket), args)


def _usage(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return EXIT_USAGE
