"""``waggle peers``: the BGP sessions of a running agent, one line each; ``clear`` resets one."""

from __future__ import annotations

import argparse
from typing import Any

from waggle import ask_agent, output, sessions
from waggle.fleet.flags import add_fleet_flags, asks_cluster
from waggle.live import is_shown, live
from waggle.watching import add_watch_flag, watched


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
    return watched(args, _show)


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


def _show(args: argparse.Namespace) -> int:
    query = {"peer": args.peer, "instance": args.instance}
    if asks_cluster(args):
        return _show_fleet(args, query)
    answer = ask_agent.read(args, "PeerList", "/v1/peers", query)
    if answer is None:
        return output.EXIT_ERROR
    answer["items"].sort(key=output.peer_order)
    named = args.peer or args.instance
    if args.output not in output.TABLES:
        is_missing = named and not answer["items"]
        if is_missing:
            answer["errors"] = [
                {"code": "NotFound", "message": ask_agent.unknown_peer(args, named)}
            ]
        output.dump(answer, args.output)
        return output.EXIT_NOT_FOUND if is_missing else output.EXIT_OK
    if not answer["items"]:
        return _explain_absence(args, answer, named)
    output.table(sessions.columns(output.read_time(answer["generatedAt"])), answer["items"], args)
    items, problems = answer["items"], answer.get("problems", ())
    for sentence in (*sessions.left_out(items), *sessions.malformed(items), *problems):
        output.complain(args.prog, sentence)
    return output.EXIT_OK


def _show_fleet(args: argparse.Namespace, query: dict[str, str | None]) -> int:
    from waggle.fleet.view import FleetView, Searched, show_fleet, worst_sessions_first

    named = args.peer or args.instance

    def absent(nodes: Searched) -> str:
        return ask_agent.unknown_among(named, nodes.peers())

    def selects(item: dict[str, Any]) -> bool:
        is_peer = args.peer in (None, item["name"], item.get("address"))
        return is_peer and args.instance in (None, item["instance"])

    view = FleetView(
        kind="PeerList",
        request=lambda client: client.get("/v1/peers", query),
        columns=sessions.columns,
        order=worst_sessions_first,
        sessions=lambda item: [item],
        of_statuses=lambda _, items: items,
        selects=selects,
        empty="no peers",
        absent=absent if named else None,
    )
    return show_fleet(args, view)


def _explain_absence(args: argparse.Namespace, answer: dict[str, Any], named: str | None) -> int:
    """Print why there are no peers, or none of a name; returns the exit status."""
    problems = answer.get("problems", [])
    if named:
        text = ask_agent.unknown_peer(args, named)
    elif problems:
        text = "no peers, for the problems of the configuration:"
    elif args.server == "router":
        text = "no peers: the configuration has no neighbors, or none has connected from a prefix"
    else:
        text = (
            "no peers: no configuration selects this node, or the configuration has not been read "
            "yet; waggle render -f PATH --node NAME shows the peers of manifests"
        )
    output.complain(args.prog, text)
    for reason in (*problems, *(() if named else answer.get("notes", []))):
        output.complain(args.prog, reason)
    return output.EXIT_NOT_FOUND if named else output.EXIT_OK
