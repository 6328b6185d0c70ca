"""``waggle peers``: the BGP sessions of a running agent, one line each; ``clear`` resets one."""

from __future__ import annotations

import argparse
from typing import Any

from waggle import ask_agent, output, session_list
from waggle.fleet.flags import add_fleet_flags, asks_cluster
from waggle.live import is_shown, live
from waggle.watching import add_watch_flag


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the arguments of ``waggle peers``."""
    parser = subparsers.add_parser(
        "peers",
        help="list the BGP sessions of the agent",
        description="List the BGP sessions of a running agent. REASON is why a session is not "
        "Established; it has no route counts then.",
        epilog=output.exit_statuses(
            {
                output.EXIT_OK: "success, also without peers",
                output.EXIT_ERROR: f"{output.NO_AGENT}; of clear --soft: the session is down, or the "
                "peer does not support ROUTE-REFRESH",
                output.EXIT_USAGE: output.USAGE,
                output.EXIT_INCOMPLETE: output.INCOMPLETE,
                output.EXIT_NOT_FOUND: "no such peer or instance; with --node: no such node",
                output.EXIT_INTERRUPTED: output.WATCH_ENDS,
            }
        ),
    )
    parser.add_argument(
        "action",
        nargs="?",
        type=_action,
        choices=("clear",),
        help="clear: reset the session of a peer, or with --soft have its routes sent again",
    )
    parser.add_argument("target", nargs="?", metavar="PEER", help="with clear: the peer")
    parser.add_argument(
        "--soft",
        choices=("in", "out"),
        help="with clear: the session stays up. in: the peer sends its routes again "
        "(ROUTE-REFRESH); out: all routes are sent to it again",
    )
    parser.add_argument("--peer", metavar="P", help="only this peer, by name, address or object")
    parser.add_argument("--instance", metavar="I", help="only peers of this instance")
    ask_agent.add_socket_flag(parser)
    add_fleet_flags(parser)
    add_watch_flag(parser)
    output.add_output_flags(parser)


def _action(text: str) -> str:
    """Return the action. Raises ArgumentTypeError, as for a peer's name."""
    if text != "clear":
        raise argparse.ArgumentTypeError(f"{text!r} is not clear; --peer {text} selects a peer")
    return text


def run(args: argparse.Namespace) -> int:
    """Print the sessions; returns the exit status."""
    if getattr(args, "action", None) == "clear":
        return _clear(args)
    if getattr(args, "soft", None) is not None:
        output.complain(args.prog, "--soft: with clear PEER")
        return output.EXIT_USAGE
    of_agent = args.server == "agent" and not asks_cluster(args)
    if args.watch and args.output == "table" and of_agent and is_shown():
        return live(args)
    return session_list.run(args)


def _clear(args: argparse.Namespace) -> int:
    """Reset the session of a peer, or have routes sent again; returns the exit status."""
    if args.target is None or args.peer is not None or args.watch or args.all_nodes or args.node:
        output.complain(
            args.prog,
            "clear PEER: the peer is required, and neither --peer, --watch, --all-nodes nor --node "
            "goes with it",
        )
        return output.EXIT_USAGE
    body = {"peer": args.target, "instance": args.instance, "soft": args.soft}
    answer = ask_agent.act(args, "ClearedList", "/v1/clear", body)
    if answer is None:
        return output.EXIT_ERROR
    if args.output not in output.TABLES:
        output.dump(answer, args.output)
    else:
        for error in answer["errors"]:
            output.complain(args.prog, error["message"])
        for item in answer["items"]:
            output.line(f"{item['name']}: {item['message']}", 2)
    if answer["errors"]:
        return output.EXIT_NOT_FOUND
    return output.EXIT_OK if all(item["done"] for item in answer["items"]) else output.EXIT_ERROR
