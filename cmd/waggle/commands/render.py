"""`waggle render`: the intent of one node, compiled from manifests without agent or cluster."""

from __future__ import annotations

import argparse
import gc
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from cells.api.model import problem_text
from reconcilers.kernel.options import FibOptions
from resources.enumeration import MAX_NAMED_OBJECTS
from resources.option_declarations import InvalidOption
from resources.pages import reference
from waggle import output
from waggle.dialects import Dialects
from waggle.intent_flags import (
    add_intent_flags,
    add_option_flags,
    given_options,
    offline_settings,
)
from waggle.manifest_flag import add_manifest_flag, complain_of_input, manifest_paths
from waggle.output import EXIT_ERROR, EXIT_NOT_FOUND, EXIT_OK, EXIT_USAGE, exit_statuses, member
from waggle.tables import NONE, Column

if TYPE_CHECKING:
    from reconcilers.kernel.received_file import ReceivedRoutes

NAME = "render"
KERNEL = "kernel"
"""The cell whose options select the received routes that are installed."""


class PeerRow(NamedTuple):
    """A row of the table of peers."""

    instance: dict[str, Any]
    peer: dict[str, Any]

    @property
    def name(self) -> str:
        """The peer with its instance."""
        return f"{self.instance['name']}/{self.peer['name']}"

    @property
    def address(self) -> str:
        """Its address or interface, with the port."""
        where = self.peer["address"] or self.peer["interface"] or NONE
        return f"{f'[{where}]' if ':' in where else where}:{self.peer['peerPort']}"

    @property
    def times(self) -> str:
        """Its timers."""
        names = ("holdTime", "keepaliveTime", "connectRetryTime")
        times = (self.peer[name] for name in names)
        return "/".join(NONE if time is None else f"{time:g}" for time in times)

    @property
    def accept(self) -> str:
        """Its import policy."""
        accept = self.peer["accept"]
        return accept if accept == "all" else f"{len(accept)} rules" if accept else "none"


def _restart_time(row: PeerRow) -> str:
    restart = row.peer["gracefulRestart"]
    return f"{restart['restartTime']:g}s" if restart else ""


def _origins(route: dict[str, Any]) -> str:
    """Return the first origins of a route, and the number of the others."""
    names = [output.object_name(origin) for origin in route["origins"][:MAX_NAMED_OBJECTS]]
    more = len(route["origins"]) - len(names)
    return " ".join([*names, f"+{more}"] if more else names)


PEERS: tuple[Column, ...] = (
    Column("PEER", lambda row: row.name),
    Column("ADDRESS", lambda row: row.address, minor=3, beneath=True),
    Column("LOCAL-AS", lambda row: str(row.instance["localASN"]), right=True, minor=2),
    Column(
        "PEER-AS", lambda row: str(row.peer["peerASN"] or row.peer["peerType"] or "any"), right=True
    ),
    Column("ROUTER-ID", lambda row: row.instance["routerID"], minor=1),
    Column("FAMILIES", lambda row: ",".join(map(output.short_family, row.peer["families"]))),
    Column("ROUTES", lambda row: str(len(row.peer["advertise"])), right=True),
    Column("LOCAL-ADDRESS", lambda row: row.peer["localAddress"] or "", wide=True),
    Column("HOLD/KA/RETRY", lambda row: row.times, wide=True),
    Column("AUTH", lambda row: "TCP MD5" if row.peer["password"] else "", wide=True),
    Column("GR", _restart_time, wide=True),
    Column("ACCEPT", lambda row: row.accept, wide=True),
)
ROUTES: tuple[Column, ...] = (
    Column("PEER", member("peer")),
    Column("PREFIX", member("prefix"), minor=5, beneath=True),
    Column("NEXT-HOP", member("nextHop", "self"), minor=4, beneath=True),
    Column(
        "COMMUNITIES",
        lambda route: " ".join((*route["communities"], *route["largeCommunities"])),
        minor=3,
        beneath=True,
    ),
    Column("LP", member("localPreference"), right=True, minor=2, beneath=True),
    Column(
        "ORIGIN-OBJECT",
        _origins,
        minor=1,
        beneath=True,
    ),
    Column("ORIGIN", member("origin"), wide=True),
)


def _hops(route: dict[str, Any]) -> str:
    hops = ((hop["via"], hop["dev"]) for hop in route["nexthops"])
    return " ".join(via if dev is None else f"{via}%{dev}" for via, dev in hops) or route["type"]


KERNEL_ROUTES: tuple[Column, ...] = (
    Column("TABLE", member("table"), right=True),
    Column("PREFIX", member("prefix")),
    Column("NEXT-HOPS", _hops, minor=1, beneath=True),
    Column("METRIC", member("metric"), right=True, wide=True),
    Column("PROTOCOL", member("protocol"), right=True, wide=True),
)
NOT_INSTALLED: tuple[Column, ...] = (
    Column("PREFIX", member("prefix")),
    Column("PEER", member("peer"), minor=2, beneath=True),
    Column("NOT-INSTALLED", member("reason")),
    Column("MESSAGE", member("message"), minor=1, beneath=True),
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
    parser.add_argument(
        "--received",
        metavar="FILE",
        help="routes that the peers of the node announce, as JSON: print what would stand in the "
        "kernel, and why other routes do not",
    )
    add_intent_flags(parser, dialects)
    add_option_flags(parser, KERNEL, FibOptions)
    parser.set_defaults(dialects=dialects)


def run(args: argparse.Namespace) -> int:
    """Compile and print; returns the exit status."""
    import msgspec

    from reconcilers.compile_manifests import compile_manifests
    from reconcilers.kernel.received_file import InvalidReceivedFile
    from resources.manifests.load import UnreadablePathError

    paths = manifest_paths(args)
    # All objects are kept until the end: garbage collection would take a fifth of the time.
    gc.disable()
    try:
        fib = given_options(args, KERNEL, FibOptions)
        settings = msgspec.structs.replace(offline_settings(args, args.dialects), fib=fib)
        dialects = args.dialects.load()
        compiled = compile_manifests(paths, dialects, settings, sys.stdin.buffer)
        document = compiled.whole_document()
        if args.received is not None:
            try:
                document |= compiled.kernel(_received(args.received))
            except InvalidReceivedFile as error:
                complain_of_input(args, f"{args.received}: {error}")
                return EXIT_USAGE
    except (UnreadablePathError, InvalidOption) as error:
        complain_of_input(args, str(error))
        return EXIT_USAGE
    if args.output not in output.TABLES:
        output.dump_value(msgspec.to_builtins(document), args.output)
    else:
        _tables(document, args)
    if unknown_node := compiled.unknown_node():
        output.complain("waggle render", unknown_node)
        if not document["instances"]:
            return EXIT_NOT_FOUND
    return EXIT_ERROR if args.strict and document["problems"] else EXIT_OK


def _received(path: str) -> ReceivedRoutes:
    """Read the file of ``--received``. Raises `InvalidReceivedFile`."""
    from reconcilers.kernel.received_file import InvalidReceivedFile, decode_received
    from resources.given_file import read_given

    try:
        return decode_received(read_given(path))
    except OSError as error:
        raise InvalidReceivedFile(error.strerror) from None


def _tables(document: dict[str, Any], args: argparse.Namespace) -> None:
    """Print peers, routes and problems as tables."""
    from resources.metav1 import NEUTRAL, is_adverse

    peers = [
        PeerRow(instance, peer) for instance in document["instances"] for peer in instance["peers"]
    ]
    peers.sort(key=lambda row: output.peer_order({**row.peer, "instance": row.instance["name"]}))
    routes = [route | {"peer": row.name} for row in peers for route in row.peer["advertise"]]
    if peers:
        output.table(PEERS, peers, args)
    if routes:
        print()
        output.table(ROUTES, routes, args)
    for columns, rows in (
        (KERNEL_ROUTES, document.get("kernel")),
        (NOT_INSTALLED, document.get("notInstalled")),
    ):
        if rows:
            print()
            output.table(columns, rows, args)
    adverse = [c for c in document["conditions"] if is_adverse(c["type"], c["status"] == "True")]
    for line in _complaints([c for c in adverse if c["type"] not in NEUTRAL], document["problems"]):
        output.line(f"! {line}", 2, sys.stderr)
    for line in _complaints([c for c in adverse if c["type"] in NEUTRAL], []):
        output.line(f"note: {line}", 6, sys.stderr)
    if not peers:
        reason = "no configuration selects it"
        if document["problems"] or adverse:
            reason = "for the reasons above"
        output.line(f"No peers for node {document['node']}: {reason}.", 2, sys.stderr)


def _complaints(conditions: list[dict[str, Any]], problems: list[dict[str, Any]]) -> list[str]:
    """Return a line for each adverse condition and problem.

    Of a condition whose message is that of a problem, the problem alone: it has the field.
    """
    messages = [problem["message"] for problem in problems]
    lines = [
        f"{output.object_name(condition)}: {condition['message']}"
        for condition in conditions
        if not any(message in condition["message"] for message in messages)
    ]
    return list(dict.fromkeys([*lines, *map(problem_text, problems)]))
