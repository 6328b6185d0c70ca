"""`waggle render`: the intent of one node, compiled from manifests without agent or cluster."""

from __future__ import annotations

import argparse
import gc
import sys
from typing import Any

from cells.api.model import problem_text
from resources.option_declarations import InvalidOption
from resources.pages import reference
from waggle import output
from waggle.dialects import Dialects
from waggle.intent_flags import add_intent_flags, offline_settings
from waggle.manifest_flag import add_manifest_flag, manifest_paths
from waggle.output import EXIT_ERROR, EXIT_NOT_FOUND, EXIT_OK, EXIT_USAGE, exit_statuses
from waggle.tables import NONE, Column

NAME = "render"

PEERS = (
    Column("PEER"),
    Column("ADDRESS", minor=3, beneath=True),
    Column("LOCAL-AS", right=True, minor=2),
    Column("PEER-AS", right=True),
    Column("ROUTER-ID", minor=1),
    Column("FAMILIES"),
    Column("ROUTES", right=True),
    Column("LOCAL-ADDRESS", wide=True),
    Column("HOLD/KA/RETRY", wide=True),
    Column("AUTH", wide=True),
    Column("GR", wide=True),
    Column("ACCEPT", wide=True),
)
ROUTES = (
    Column("PEER"),
    Column("PREFIX", minor=5, beneath=True),
    Column("NEXT-HOP", minor=4, beneath=True),
    Column("COMMUNITIES", minor=3, beneath=True),
    Column("LP", right=True, minor=2, beneath=True),
    Column("ORIGIN-OBJECT", minor=1, beneath=True),
    Column("ORIGIN", wide=True),
)


def add_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser], dialects: Dialects
) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        NAME,
        help="compile manifests to the peers and routes of a node, offline",
        description="Compile manifests, and print the instances, peers and routes of one node, with "
        f"the origins of each route, and every problem. {reference('render')} describes the JSON.",
        epilog=exit_statuses(
            {
                EXIT_OK: "success, also with problems",
                EXIT_ERROR: "problems and --strict",
                EXIT_USAGE: "wrong usage, or unreadable input",
                EXIT_NOT_FOUND: "no peers: manifests have Nodes, and not this one, or there are none",
            }
        ),
    )
    add_manifest_flag(parser)
    parser.add_argument("--node", required=True, metavar="NAME", help="the node")
    output.add_output_flags(parser, ("json", "yaml", "table", "wide"), "json")
    parser.add_argument("--strict", action="store_true", help="exit 1 when there are problems")
    add_intent_flags(parser, dialects)
    parser.set_defaults(dialects=dialects)


def run(args: argparse.Namespace) -> int:
    """Compile and print; returns the exit status."""
    from reconcilers.offline import compile_manifests
    from resources.manifests import UnreadablePathError

    paths = manifest_paths(args)
    # All objects are kept until the end: garbage collection would take a fifth of the time.
    gc.disable()
    try:
        settings = offline_settings(args, args.dialects)
        dialects = args.dialects.load()
        compiled = compile_manifests(paths, dialects, settings, sys.stdin.buffer)
        document = compiled.whole_document()
    except (UnreadablePathError, InvalidOption) as error:
        print(f"waggle render: {error}", file=sys.stderr)
        return EXIT_USAGE
    if args.output == "json":
        import msgspec

        text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
        print(text)
    elif args.output == "yaml":
        import yaml

        print(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), end="")
    else:
        _tables(document, args)
    if unknown_node := compiled.unknown_node():
        output.complain("waggle render", unknown_node)
        if not document["instances"]:
            return EXIT_NOT_FOUND
    return EXIT_ERROR if args.strict and document["problems"] else EXIT_OK


def _tables(document: dict[str, Any], args: argparse.Namespace) -> None:
    """Print peers, routes and problems as tables."""
    from resources.metav1 import NEUTRAL, is_adverse

    peers = [(instance, peer) for instance in document["instances"] for peer in instance["peers"]]
    peers.sort(key=lambda of: output.peer_order({**of[1], "instance": of[0]["name"]}))
    routes = [_route(*of, route) for of in peers for route in of[1]["advertise"]]
    if peers:
        output.table(PEERS, [peer_row(*of) for of in peers], args)
    if routes:
        print()
        output.table(ROUTES, routes, args)
    adverse = [c for c in document["conditions"] if is_adverse(c["type"], c["status"] == "True")]
    for line in _complaints([c for c in adverse if c["type"] not in NEUTRAL], document["problems"]):
        print(f"! {line}", file=sys.stderr)
    for line in _complaints([c for c in adverse if c["type"] in NEUTRAL], []):
        print(f"note: {line}", file=sys.stderr)
    if not peers:
        reason = "no configuration selects it"
        if document["problems"] or adverse:
            reason = "for the reasons above"
        print(f"No peers for node {document['node']}: {reason}.", file=sys.stderr)


def _complaints(conditions: list[dict[str, Any]], problems: list[dict[str, Any]]) -> list[str]:
    """Return a line for each adverse condition and problem.

    Of a condition whose message is that of a problem, the problem alone: it has the field.
    """
    messages = [problem["message"] for problem in problems]
    lines = [
        f"{_reference(condition)}: {condition['message']}"
        for condition in conditions
        if not any(message in condition["message"] for message in messages)
    ]
    return list(dict.fromkeys([*lines, *map(problem_text, problems)]))


def peer_row(instance: dict[str, Any], peer: dict[str, Any]) -> list[str]:
    """Return the cells of one peer, in the order of `PEERS`."""
    where = peer["address"] or peer["interface"] or NONE
    times = (peer[name] for name in ("holdTime", "keepaliveTime", "connectRetryTime"))
    restart, accept = peer["gracefulRestart"], peer["accept"]
    return [
        f"{instance['name']}/{peer['name']}",
        f"{f'[{where}]' if ':' in where else where}:{peer['peerPort']}",
        str(instance["localASN"]),
        str(peer["peerASN"] or peer["peerType"] or "any"),
        instance["routerID"],
        ",".join(output.short_family(family) for family in peer["families"]),
        str(len(peer["advertise"])),
        peer["localAddress"] or NONE,
        "/".join(NONE if time is None else f"{time:g}" for time in times),
        "TCP MD5" if peer["password"] else NONE,
        f"{restart['restartTime']:g}s" if restart else NONE,
        accept if accept == "all" else f"{len(accept)} rules" if accept else "none",
    ]


def _route(instance: dict[str, Any], peer: dict[str, Any], route: dict[str, Any]) -> list[str]:
    preference = route["localPreference"]
    return [
        f"{instance['name']}/{peer['name']}",
        route["prefix"],
        route["nextHop"] or "self",
        " ".join((*route["communities"], *route["largeCommunities"])),
        NONE if preference is None else str(preference),
        " ".join(map(_reference, route["origins"])),
        route["origin"],
    ]


def _reference(of: dict[str, str | None]) -> str:
    return "/".join(part for part in (of["kind"], of["namespace"], of["name"]) if part)
