"""The sessions of a running agent or router, or of a whole cluster, as a command lists them."""

from __future__ import annotations

import argparse
from typing import Any

from waggle import ask_agent, output, sessions
from waggle.fleet.flags import asks_cluster
from waggle.watching import watched


def run(args: argparse.Namespace) -> int:
    """Print the sessions, again after changes with ``--watch``; returns the exit status."""
    return watched(args, _show)


def _show(args: argparse.Namespace) -> int:
    query = {"peer": args.peer, "instance": args.instance}
    if asks_cluster(args):
        return _show_fleet(args, query)
    answer = ask_agent.read(args, "PeerList", "/v1/peers", query)
    if answer is None:
        return output.EXIT_ERROR
    answer["items"].sort(key=output.peer_order)
    unknown = None
    if (args.peer or args.instance) and not answer["items"]:
        unknown = ask_agent.unknown_peer(args)
    if args.output not in output.TABLES:
        if unknown:
            answer["errors"] = [{"code": "NotFound", "message": unknown}]
        output.dump(answer, args.output)
        return output.EXIT_NOT_FOUND if unknown else output.EXIT_OK
    if not answer["items"]:
        return _explain_absence(args, answer, unknown)
    output.table(sessions.columns(output.read_time(answer["generatedAt"])), answer["items"], args)
    items, problems = answer["items"], answer.get("problems", ())
    for sentence in (*sessions.left_out(items), *sessions.malformed(items), *problems):
        output.complain(args.prog, sentence)
    return output.EXIT_OK


def _show_fleet(args: argparse.Namespace, query: dict[str, str | None]) -> int:
    from waggle.fleet.view import FleetView, Searched, show_fleet, worst_sessions_first

    named = args.peer or args.instance

    def absent(nodes: Searched) -> str | None:
        return ask_agent.unknown_among(
            args.peer, args.instance, nodes.peers(), lambda: nodes.has_instance(args.instance)
        )

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


def _explain_absence(args: argparse.Namespace, answer: dict[str, Any], unknown: str | None) -> int:
    """Print why there are no peers, or the sentence of an unknown name; returns the exit status."""
    problems = answer.get("problems", [])
    named = args.peer or args.instance
    if unknown:
        text = unknown
    elif args.instance:
        text = f"the instance {args.instance} has no peers"
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
    return output.EXIT_NOT_FOUND if unknown else output.EXIT_OK
