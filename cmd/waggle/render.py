"""`waggle render`: the intent of one node, compiled from manifests without agent or cluster."""

from __future__ import annotations

import argparse
import gc
import sys
from typing import Any

from resources.option_declarations import InvalidOption
from waggle.dialects import Dialects
from waggle.intent_flags import add_intent_flags, offline_settings
from waggle.output import EXIT_ERROR, EXIT_OK, EXIT_USAGE, exit_statuses

NAME = "render"


def add_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser], dialects: Dialects
) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        NAME,
        help="compile manifests to the peers and routes of a node, offline",
        description="Compile manifests, and print the instances, peers and routes of one node, with "
        "the origins of each route, and every problem. docs/render.md describes the JSON.",
        epilog=exit_statuses(
            {
                EXIT_OK: "success, also with problems",
                EXIT_ERROR: "problems and --strict",
                EXIT_USAGE: "wrong usage, or unreadable input",
            }
        ),
    )
    parser.add_argument(
        "-f",
        "--filename",
        action="append",
        required=True,
        metavar="PATH",
        nargs="+",
        help="a file or a directory tree of YAML or JSON, or - for standard input; may be repeated",
    )
    parser.add_argument("--node", required=True, metavar="NAME", help="the node")
    parser.add_argument(
        "-o",
        "--output",
        choices=("json", "yaml", "table"),
        default="json",
        help="the format (default: %(default)s)",
    )
    parser.add_argument("--strict", action="store_true", help="exit 1 when there are problems")
    add_intent_flags(parser, dialects)
    parser.set_defaults(dialects=dialects)


def run(args: argparse.Namespace) -> int:
    """Compile and print; returns the exit status."""
    from reconcilers.offline import render
    from resources.manifests import UnreadablePathError

    paths = [path for group in args.filename for path in group]
    # All objects are kept until the end: garbage collection would take a fifth of the time.
    gc.disable()
    try:
        settings = offline_settings(args, args.dialects)
        document = render(paths, args.dialects.load(), settings, sys.stdin.buffer)
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
        _table(document)
    return EXIT_ERROR if args.strict and document["problems"] else EXIT_OK


def _table(document: dict[str, Any]) -> None:
    """Print peers, routes and problems as tables."""
    from waggle.output import Column, table

    titles: tuple[str, ...]
    peers, routes = [], []
    for instance in document["instances"]:
        for peer in instance["peers"]:
            name = f"{instance['name']}/{peer['name']}"
            where = f"[{peer['address']}]" if ":" in peer["address"] else peer["address"]
            asn = str(peer["peerASN"]) if peer["peerASN"] else "any"
            families = ",".join(peer["families"])
            peers.append(
                [
                    name,
                    f"{where}:{peer['peerPort']}",
                    str(instance["localASN"]),
                    asn,
                    instance["routerID"],
                    families,
                    str(len(peer["advertise"])),
                ]
            )
            routes += [
                [
                    name,
                    route["prefix"],
                    route["nextHop"] or "self",
                    " ".join((*route["communities"], *route["largeCommunities"])) or "-",
                    "-" if route["localPreference"] is None else str(route["localPreference"]),
                    " ".join(_origin(origin) for origin in route["origins"]),
                ]
                for route in peer["advertise"]
            ]
    if peers:
        titles = ("PEER", "ADDRESS", "LOCAL-AS", "PEER-AS", "ROUTER-ID", "FAMILIES", "ROUTES")
        table([Column(title) for title in titles], peers)
    if routes:
        print()
        titles = ("PEER", "PREFIX", "NEXT-HOP", "COMMUNITIES", "LP", "ORIGIN-OBJECT")
        table([Column(title) for title in titles], routes)
    for condition in document["conditions"]:
        if condition["status"] == "True":
            line = f"{condition['kind']}/{condition['name']}: {condition['message']}"
            print(f"! {line}", file=sys.stderr)
    for problem in document["problems"]:
        parts = (*problem["objects"][:1], problem["field"], problem["message"])
        print("! " + ": ".join(part for part in parts if part), file=sys.stderr)
    if not peers:
        print(f"No peers: no configuration selects node {document['node']}.", file=sys.stderr)


def _origin(origin: dict[str, str | None]) -> str:
    return "/".join(part for part in (origin["kind"], origin["namespace"], origin["name"]) if part)
