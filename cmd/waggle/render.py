"""`waggle render`: what a node would do, offline. No agent, no cluster, no network."""

from __future__ import annotations

import argparse
import gc
import ipaddress
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reconcilers.intent.options import IntentOptions

NAME = "render"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its flags."""
    parser = subparsers.add_parser(
        NAME,
        help="what a node would do with these manifests, offline",
        description="Reads manifests and prints the instances, sessions and routes of one node, with "
        "the object that each route comes from, and every problem. docs/render.md describes the JSON.",
        epilog="Exit status: 0, also with problems; 1 with problems and --strict; 2 when the input "
        "could not be read.",
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
        help="how to print it (default: %(default)s)",
    )
    parser.add_argument("--strict", action="store_true", help="exit 1 when there are problems")
    add_intent_flags(parser)


def add_intent_flags(parser: argparse._ActionsContainer) -> None:
    """Add the settings of the agent that decide what is advertised."""
    parser.add_argument(
        "--secrets-namespace",
        default="kube-system",
        metavar="NAME",
        help="where the Secrets of TCP MD5 are (default: %(default)s)",
    )
    parser.add_argument(
        "--no-service-endpoints-routable",
        choices=("true", "false"),
        default="true",
        help="advertise Services with policy Cluster that have no endpoint (default: %(default)s)",
    )
    parser.add_argument(
        "--legacy-origin-attribute",
        choices=("true", "false"),
        default="false",
        help="advertise LoadBalancer addresses with ORIGIN INCOMPLETE (default: %(default)s)",
    )
    parser.add_argument(
        "--peering-policies",
        choices=("exclusive", "first", "translate"),
        default="exclusive",
        help="what to do with CiliumBGPPeeringPolicies: follow them, but of several for a node none; "
        "of several the first; or translate them to objects of v2 (default: %(default)s)",
    )
    parser.add_argument(
        "--drain",
        choices=("off", "withdraw", "deprefer"),
        default="off",
        help="what becomes of the routes of a node that is cordoned or tainted (default: %(default)s)",
    )
    parser.add_argument(
        "--drain-taint",
        action="append",
        metavar="KEY",
        help="key of a taint of such a node; repeatable (default: that of a cordoned one)",
    )
    parser.add_argument(
        "--drain-prepend",
        type=int,
        choices=range(17),
        default=0,
        metavar="N",
        help="with --drain=deprefer: how many more times our AS is in the path (default: 0)",
    )
    parser.add_argument(
        "--router-id-allocation-ip-pool",
        type=ipv4_network,
        metavar="CIDR",
        help="router IDs come from this IPv4 prefix (default: the node's IPv4 address)",
    )


def ipv4_network(text: str) -> str:
    """Check a prefix, for argparse."""
    try:
        return str(ipaddress.IPv4Network(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(args: argparse.Namespace) -> int:
    """Render; the exit status."""
    from reconcilers.offline import render
    from resources.manifests import UnreadablePathError

    paths = [path for group in args.filename for path in group]
    options = intent_options(args)
    # Everything that is made here is kept until the end: looking for garbage is a fifth of the time.
    gc.disable()
    try:
        document = render(paths, options, sys.stdin.buffer)
    except UnreadablePathError as error:
        print(f"waggle render: {error}", file=sys.stderr)
        return 2
    if args.output == "json":
        import msgspec

        text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
        print(text)
    elif args.output == "yaml":
        import yaml

        print(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), end="")
    else:
        _table(document)
    return 1 if args.strict and document["problems"] else 0


def intent_options(args: argparse.Namespace) -> IntentOptions:
    """Read what `add_intent_flags` and ``--node`` say."""
    from reconcilers.intent.options import DRAIN_TAINTS, IntentOptions

    return IntentOptions(
        node=args.node,
        secrets_namespace=args.secrets_namespace,
        no_service_endpoints_routable=args.no_service_endpoints_routable == "true",
        legacy_origin_attribute=args.legacy_origin_attribute == "true",
        peering_policies=args.peering_policies,
        router_id_allocation_ip_pool=args.router_id_allocation_ip_pool,
        drain=args.drain,
        drain_taints=tuple(args.drain_taint or DRAIN_TAINTS),
        drain_prepend=args.drain_prepend,
    )


def _table(document: dict[str, Any]) -> None:
    """Print sessions, routes and problems for people."""
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
        print(f"No sessions: nothing selects node {document['node']}.", file=sys.stderr)


def _origin(origin: dict[str, str | None]) -> str:
    return "/".join(part for part in (origin["kind"], origin["namespace"], origin["name"]) if part)
