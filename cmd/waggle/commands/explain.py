"""``waggle explain``: why a prefix or an object is advertised to a peer, or is not.

The explanation comes from a running agent, which adds the state of its sessions, or from manifests
(``-f``), as for ``waggle render``.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from cells.nearest_prefixes import network_of
from waggle import ask_agent, kernel_routes, output, route_columns
from waggle.dialects import DIALECTS, Dialects
from waggle.fleet.flags import add_fleet_flags, asks_cluster
from waggle.intent_flags import add_intent_flags, given_intent_flags, offline_settings
from waggle.manifest_flag import add_manifest_flag, manifest_paths
from waggle.output import member
from waggle.tables import Column

if TYPE_CHECKING:
    from cells.api.client import Client
    from cells.api.model import ExplainItem, ReceivedExplainItem
    from reconcilers.compile_manifests import CompiledManifests
    from reconcilers.dialect import Dialect
    from waggle.fleet.by_objects import ByObjects
    from waggle.fleet.view import Searched


def _object(name: str) -> Callable[[dict[str, Any]], str]:
    return lambda item: output.object_name(item.get(name))


def _advertised(item: dict[str, Any]) -> str:
    if not item["advertised"]:
        return "no"
    if "basis" in item:
        return "intended"  # no agent has confirmed it
    aggregates = [p for p in item.get("advertisedPrefixes", ()) if p != item.get("prefix")]
    return f"as {', '.join(aggregates)}" if aggregates else "yes"


def _yes_or_no(name: str) -> Callable[[dict[str, Any]], str]:
    return lambda item: "" if item.get(name) is None else "yes" if item[name] else "no"


def _lost_by(item: dict[str, Any]) -> str:
    return "" if item.get("best") else item.get("status", "")


COLUMNS = (
    Column("INSTANCE", member("instance"), wide=True),
    Column("PEER", member("peer")),
    Column("PREFIX", member("prefix"), minor=6, beneath=True),
    Column("OBJECT", _object("object"), minor=4, beneath=True),
    Column("TYPE", member("addressType"), minor=3, beneath=True),
    Column("ADVERTISED", _advertised, style=lambda text: "yellow" if text == "no" else "green"),
    Column("REASON", member("reason"), minor=5, beneath=True),
    Column("RULE", _object("rule"), wide=True, minor=2, beneath=True),
    Column("WHY", member("message"), minor=1, beneath=True),
)


RECEIVED = (
    Column("INSTANCE", member("instance"), wide=True),
    Column("PEER", member("peer")),
    Column("PREFIX", member("prefix"), minor=6, beneath=True),
    Column("RECEIVED", _yes_or_no("received"), minor=4, beneath=True),
    Column(
        "ACCEPTED",
        _yes_or_no("accepted"),
        style=lambda text: "yellow" if text == "no" else "green",
    ),
    Column("REASON", member("reason"), minor=5, beneath=True),
    Column("FILTER", member("filter"), minor=3, beneath=True),
    Column("OBJECT", _object("object"), minor=2, beneath=True),
    Column("WHY", member("message"), minor=1, beneath=True),
)


PATHS = (
    Column("INSTANCE", member("instance"), wide=True),
    Column("PREFIX", member("prefix"), minor=4, beneath=True),
    Column("FROM", route_columns.source),
    Column("NEXT-HOP", member("nextHop", "self"), minor=3, beneath=True),
    Column("LP", member("localPreference"), right=True),
    Column("AS-PATH", member("asPath"), minor=2, beneath=True),
    Column("MED", member("med"), right=True),
    Column("BEST", _yes_or_no("best"), style=lambda text: "green" if text == "yes" else ""),
    Column("LOST-BY", _lost_by, minor=1, beneath=True),
)


NODE = Column("NODE", member("node"))
BESIDE = {
    "paths": ("Paths:", PATHS),
    "kernel": ("In the kernel:", kernel_routes.COLUMNS),
}
"""Lists of an answer beside its items, with their titles and columns."""


TARGETS = """\
targets:
  10.0.0.0/24             a prefix
  10.0.0.1                an address: the longest prefix that contains it
  shop/web                a Service
  KIND/[NAMESPACE/]NAME   Service, Node, Interface, or a kind of an API dialect

with --received:
  10.0.0.0/24             whether this prefix is accepted from each peer
  10.0.0.1                the longest received prefix that contains this address"""


def add_parser(subparsers: argparse._SubParsersAction[Any], dialects: Dialects) -> None:
    """Declare the arguments of ``waggle explain``."""
    parser = subparsers.add_parser(
        "explain",
        help="explain why a prefix or a Service is advertised to a peer, or is not",
        description="Explain, for each peer, whether the routes of a prefix, an address or an object "
        "are advertised, and which rule decides. Without a target: every route that is not "
        "advertised to a peer.",
        epilog=output.exit_statuses(
            {
                output.EXIT_OK: "success",
                output.EXIT_ERROR: output.NO_AGENT,
                output.EXIT_USAGE: "wrong usage, or unreadable manifests",
                output.EXIT_INCOMPLETE: output.INCOMPLETE,
                output.EXIT_NOT_FOUND: "no such target, peer, instance or node",
            },
            TARGETS,
        ),
    )
    parser.add_argument("target", nargs="?", metavar="PREFIX|OBJECT", help="the target")
    parser.add_argument("--peer", metavar="P", help="only this peer, by name, address or object")
    parser.add_argument("--instance", metavar="I", help="only peers of this instance")
    parser.add_argument("--all", action="store_true", help="without a target: every route")
    parser.add_argument(
        "--received",
        action="store_true",
        help="explain whether the prefix is accepted from each peer, and by which selector",
    )
    ask_agent.add_socket_flag(parser)
    add_fleet_flags(parser, node_flag=False)
    offline = parser.add_argument_group("offline")
    add_manifest_flag(
        offline,
        required=False,
        description="explain manifests, without an agent: a file, a directory tree, or - for standard "
        "input",
    )
    parser.add_argument(
        "--node",
        metavar="NAME",
        help="the node: with -f of the manifests, otherwise of the cluster",
    )
    add_intent_flags(offline, dialects)
    output.add_output_flags(parser)
    parser.set_defaults(dialects=dialects)


def run(args: argparse.Namespace) -> int:
    """Print the explanations; returns the exit status."""
    if args.filename and (not args.node or args.all_nodes):
        output.complain("waggle explain", "-f and --node go together, without --all-nodes")
        return output.EXIT_USAGE
    if args.filename and args.socket:
        output.complain("waggle explain", "--socket: -f explains manifests, without an agent")
        return output.EXIT_USAGE
    if not args.filename and (offline := given_intent_flags(args, args.dialects)):
        whose = "agents have" if asks_cluster(args) else "agent has"
        text = f"{offline[0]}: only with -f; without it the {whose} the options"
        output.complain("waggle explain", text)
        return output.EXIT_USAGE
    if args.received and args.target is None:
        output.complain("waggle explain", "--received needs a prefix or an address")
        return output.EXIT_USAGE
    if not args.filename and asks_cluster(args):
        return _show_fleet(args)
    answer = _offline(args) if args.filename else _of_agent(args)
    if answer is None:
        return output.EXIT_ERROR
    errors = {error.get("code"): error["message"] for error in answer["errors"]}
    answer["items"] = _in_order(answer["items"])
    _select(answer, args)
    status = output.EXIT_OK
    if "NotFound" in errors:
        status = output.EXIT_NOT_FOUND
    elif errors:
        status = output.EXIT_USAGE
    if args.output in output.TABLES:
        _print(answer, errors, args)
    else:
        output.dump(answer, args.output)
    return status


def _show_fleet(args: argparse.Namespace) -> int:
    """Print the answers of the agents of a cluster; returns the exit status."""
    from waggle.fleet.view import FleetView, show_fleet

    kind, path, query = _question(args)

    def request(client: Client) -> dict[str, Any]:
        answer = client.get(path, query)
        answer |= _beside(client, args)
        _select(answer, args)
        return answer

    def order(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        verdict = "accepted" if args.received else "advertised"
        return sorted(_in_order(items), key=lambda item: (bool(item[verdict]), item["node"]))

    def of_objects(objects: ByObjects, node: str) -> dict[str, Any]:
        answer = objects.explanations(node, args.target, args.peer, args.instance)
        _select(answer, args)
        return answer

    def absent(nodes: Searched) -> str | None:
        unknown = nodes.unknown_peer(args.peer, args.instance)
        return unknown or _unknown_target(args.target, nodes)

    columns = RECEIVED if args.received else COLUMNS
    view = FleetView(
        kind=kind,
        request=request,
        columns=lambda _: (NODE, *columns),
        order=order,
        empty="every route is advertised to every peer",
        absent=absent,
        of_objects=None if args.received else of_objects,
        only_agents="no object of a cluster has received routes" if args.received else "",
        beside={
            name: (title, listed if name == "kernel" else (NODE, *listed))
            for name, (title, listed) in BESIDE.items()
        },
    )
    return show_fleet(args, view)


def _unknown_target(target: str | None, nodes: Searched) -> str | None:
    """Return the sentence that none of several nodes has the target; None for that of one node."""
    from reconcilers.dialect import explained_kinds
    from reconcilers.intent.explain import parse_target
    from reconcilers.intent.nearest_targets import nothing_on_nodes

    if target is None or not nodes.missing or len(nodes.answers) < 2:
        return None
    # Agents of another version may know other kinds.
    with contextlib.suppress(ValueError):
        return nothing_on_nodes(
            nodes.missing, parse_target(target, explained_kinds(DIALECTS.load()))
        )
    return None


def _print(answer: dict[str, Any], errors: dict[str, str], args: argparse.Namespace) -> None:
    """Print the tables of an answer."""
    for message in errors.values():
        output.complain("waggle explain", message)
    if answer["items"]:
        output.table(RECEIVED if args.received else COLUMNS, answer["items"], args)
    elif not errors:
        output.complain("waggle explain", "every route is advertised to every peer")
    for member_name, (title, columns) in BESIDE.items():
        if answer.get(member_name):
            print(f"\n{title}" if answer["items"] else title)
            output.table(columns, answer[member_name], args)


def _in_order(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the items of each peer in address order; items without a prefix come last."""
    peers: dict[tuple[str | None, str | None], list[dict[str, Any]]] = {}
    for item in items:
        peers.setdefault((item.get("instance"), item.get("peer")), []).append(item)
    for of_peer in peers.values():
        of_peer.sort(key=lambda item: output.address_order(item.get("prefix")))
    return [item for of_peer in peers.values() for item in of_peer]


def _select(answer: dict[str, Any], args: argparse.Namespace) -> None:
    """Without a target leave the routes that are missing, unless all are wanted."""
    if args.target is None and not args.all:
        answer["items"] = [item for item in answer["items"] if _is_missing(item)]


def _is_missing(item: dict[str, Any]) -> bool:
    """Whether a route could be advertised and is not; a Service need not have all address types."""
    if item["advertised"]:
        return False
    pending = item["reason"] == "NoAddress" and item["addressType"] == "LoadBalancerIP"
    return "prefix" in item or "object" not in item or pending or item["reason"] == "NoInterface"


def _question(args: argparse.Namespace) -> tuple[str, str, dict[str, str | None]]:
    """Return the kind of the list, its path and the query."""
    query = {"peer": args.peer, "instance": args.instance}
    if args.received:
        return "ReceivedExplainList", "/v1/explain-received", {**query, "prefix": args.target}
    return "ExplainList", "/v1/explain", {**query, "target": args.target}


def _of_agent(args: argparse.Namespace) -> dict[str, Any] | None:
    kind, path, query = _question(args)

    def ask() -> dict[str, Any]:
        client = ask_agent.client(args)
        try:
            answer = client.get(path, query)
        except ask_agent.AgentError as error:
            if error.code != "BadRequest":
                raise
            # Of the arguments, and not of the agent.
            return output.document(kind, [], [{"code": error.code, "message": str(error)}])
        return answer | _beside(client, args)

    return ask_agent.answer(args, kind, ask)


def _beside(client: Client, args: argparse.Namespace) -> dict[str, Any]:
    """Return the members of `BESIDE` for the target, where the agent has any."""
    paths = _paths(client, args) if args.received else []
    members = {"paths": paths, "kernel": _in_kernel(client, args)}
    return {name: items for name, items in members.items() if items}


def _paths(client: Client, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return all paths of the prefix that take part in route selection, the best one first."""
    query = {"table": "available", "prefix": args.target, "instance": args.instance}
    with contextlib.suppress(ask_agent.AgentError):
        items: list[dict[str, Any]] = client.get("/v1/routes", query)["items"]
        return sorted(items, key=lambda item: (item["instance"], not item.get("best")))
    return []


def _in_kernel(client: Client, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the route of the kernel for a prefix or an address; none where the agent installs none."""
    if network_of(args.target or "") is None:
        return []
    with contextlib.suppress(ask_agent.AgentError):
        items: list[dict[str, Any]] = client.get("/v1/kernel-routes", {"prefix": args.target})[
            "items"
        ]
        return items
    return []


def _offline(args: argparse.Namespace) -> dict[str, Any]:
    import msgspec

    from reconcilers.intent.explain import NothingFoundError
    from resources.manifests.load import UnreadablePathError

    kind = "ReceivedExplainList" if args.received else "ExplainList"

    def rejected(code: str, error: Exception) -> dict[str, Any]:
        return output.document(kind, [], [{"code": code, "message": str(error)}])

    try:
        items = _offline_received(args) if args.received else _offline_advertised(args)
    except (ValueError, UnreadablePathError) as error:
        return rejected("BadRequest", error)
    except NothingFoundError as error:
        return rejected("NotFound", error)
    if args.received and not items:
        return rejected("NotFound", LookupError(_no_peer(args)))
    return output.document(kind, msgspec.to_builtins(items))


def _no_peer(args: argparse.Namespace) -> str:
    named = [f"{flag} {value}" for flag, value in _choice(args) if value is not None]
    return f"no such peer: {' '.join(named)}" if named else f"the node {args.node} has no peers"


def _choice(args: argparse.Namespace) -> list[tuple[str, str | None]]:
    return [("--peer", args.peer), ("--instance", args.instance)]


def _compiled(args: argparse.Namespace, dialects: Sequence[type[Dialect]]) -> CompiledManifests:
    """Compile the manifests. Raises `UnreadablePathError`, `NothingFoundError` for an unknown node."""
    from reconcilers.compile_manifests import compile_manifests
    from reconcilers.intent.explain import NothingFoundError

    settings = offline_settings(args, args.dialects)
    compiled = compile_manifests(manifest_paths(args), dialects, settings, sys.stdin.buffer)
    unknown = compiled.unknown_node()
    if unknown and not any(compiled.intent.instances.all(compiled.db.snapshot())):
        raise NothingFoundError(unknown)
    return compiled


def _chosen(
    args: argparse.Namespace, compiled: CompiledManifests
) -> Callable[[str, str | None, str | None], bool]:
    """Return whether a peer is the peer of the flags, by its instance, name and address.

    Raises `NothingFoundError` where none is.
    """
    from cells.hive.unknown_name import suggestion
    from reconcilers.intent.explain import NothingFoundError
    from reconcilers.intent.peer_names import chosen_peer

    peers = list(compiled.intent.peers.all(compiled.db.snapshot()))
    chosen = chosen_peer(peers, args.peer, args.instance)
    if peers and not any(chosen(row.instance, row.name, row.address) for row in peers):
        known = {row.name for row in peers} | {row.address for row in peers if row.address}
        near = suggestion(args.peer or "", known)
        raise NothingFoundError(f"{_no_peer(args)}{near}")
    return chosen


def _offline_advertised(args: argparse.Namespace) -> list[ExplainItem]:
    from cells.serve.items import explain_item
    from reconcilers.dialect import explained_kinds
    from reconcilers.intent.explain import parse_target

    dialects = args.dialects.load()
    kinds = explained_kinds(dialects)
    target = None if args.target is None else parse_target(args.target, kinds)
    compiled = _compiled(args, dialects)
    groups = compiled.explainer().explain(target, _chosen(args, compiled))
    return [explain_item(args.node, item) for group in groups for item in group]


def _offline_received(args: argparse.Namespace) -> list[ReceivedExplainItem]:
    from cells.serve.received import decided
    from speaker.api import parse_prefix

    wanted = parse_prefix(args.target)
    compiled = _compiled(args, args.dialects.load())
    chosen = _chosen(args, compiled)
    peers = sorted(
        compiled.intent.peers.all(compiled.db.snapshot()), key=lambda row: (row.instance, row.name)
    )
    return [
        decided(args.node, peer, wanted.family, wanted.prefixes[0])
        for peer in peers
        if chosen(peer.instance, peer.name, peer.address)
    ]
