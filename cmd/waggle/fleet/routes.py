"""``waggle routes --all-nodes``: the routes of all nodes, by prefix; unused routes first."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from cells.api.client import Client
from cells.api.transport import AgentError
from waggle import kernel_routes, output, route_columns
from waggle.fleet.statuses import BASIS
from waggle.fleet.view import Answer, FleetView, Item, Searched, show_fleet
from waggle.route_filter import FilteredList, filters
from waggle.route_selection import Query, RouteSelection, hint, nearest, no_routes
from waggle.sessions import ESTABLISHED
from waggle.tables import Column

if TYPE_CHECKING:
    from waggle.fleet.by_objects import ByObjects

ONLY_AGENTS: Final = (
    "no object of a cluster has the routes that a node has received, selects from, or has installed"
)
NO_AS_PATH: Final = "--as-path: objects have no AS path, agents have"
ADVERTISED: Final = "advertised"
STATE: Final = Column("STATE", output.member("status"), minor=1, beneath=True)
REJECTED: Final = "rejected"
"""Member of an answer, added here: the number of routes that flags reject."""
MOST_ROUTES: Final = 500_000
"""Routes that are kept at once, of all nodes: a gigabyte or less."""


def show_routes(args: argparse.Namespace, selection: RouteSelection, query: Query) -> int:
    """Ask all agents for a table and print; returns the exit status."""
    is_kernel = query["table"] == kernel_routes.TABLE
    conditions = filters(args)
    kind, path = (
        ("KernelRouteList", kernel_routes.PATH) if is_kernel else ("RouteList", "/v1/routes")
    )
    kind = "RouteCountList" if args.count else kind
    of_kernel = {k: v for k, v in query.items() if k in ("family", "prefix", "limit")}
    columns = kernel_routes.COLUMNS if is_kernel else route_columns.COLUMNS[query["table"] or ""]

    numbers = itertools.count(1)

    def kept(item: Item) -> Item:
        if next(numbers) > MOST_ROUTES:
            text = (
                f"all nodes together have more than {MOST_ROUTES} routes: select some (a prefix, "
            )
            raise AgentError("TooLong", f"{text}--peer, --within, --limit), or use --count")
        return item

    def request(client: Client) -> Answer:
        answer = client.get_list(path, of_kernel if is_kernel else query)
        selected = FilteredList(answer, conditions, args.limit)
        items = [_count(selected)] if args.count else list(map(kept, selected))
        rest = {**selected.rest, REJECTED: selected.rejected}
        return {**answer.head, **rest, "items": items}

    def of_objects(objects: ByObjects, node: str) -> Answer:
        if args.as_path is not None:
            raise ValueError(NO_AS_PATH)
        answer = objects.routes(node, query)
        routes = answer["items"]
        items = [item for item in routes if all(select(item) for select in conditions)]
        if args.count:
            items = [_count(items) | {"basis": BASIS, "status": "by the objects"}]
        truncated = args.limit is not None and len(items) > args.limit
        kept_items = list(map(kept, items[: args.limit]))
        rest = {"truncated": True} if truncated else {}
        return {**answer, **rest, REJECTED: len(routes) - len(items), "items": kept_items}

    def absent(nodes: Searched) -> str | None:
        if nodes.missing or selection.prefix is None:
            return nodes.unknown_peer(args.peer, args.instance)
        if is_kernel:
            prefix, family = selection.prefix, selection.family
            of_nodes = nodes.read(
                lambda client: kernel_routes.nearest_known(client, family, prefix)
            )
            return kernel_routes.no_route(prefix, of_nodes)
        rejected = sum(answer[REJECTED] for answer in nodes.answers.values())
        of_table: Query = {**selection._asdict(), "peer": args.peer, "instance": args.instance}

        def near() -> str:
            known = nodes.read(
                lambda client: nearest(of_table, lambda wanted: client.get(path, wanted)),
                lambda objects, node: nearest(
                    of_table, lambda wanted: objects.routes(node, wanted)
                ),
            )
            return hint(selection.prefix or "", known)

        return no_routes(selection, args, rejected, near)

    counted = (
        Column("NODE", output.member("node")),
        Column("ROUTES", output.member("routes"), right=True),
    )
    view = FleetView(
        kind=kind,
        request=request,
        columns=lambda _: counted if args.count else columns,
        order=lambda items: sorted(items, key=_node if args.count else _order),
        empty=f"no {query['table']} routes",
        absent=absent,
        of_objects=of_objects if query["table"] == ADVERTISED else None,
        of_objects_columns=(STATE,),
        only_agents="" if query["table"] == ADVERTISED else ONLY_AGENTS,
    )
    return show_fleet(args, view)


def _count(routes: Iterable[Item]) -> Item:
    """Return the number of routes, of which none is kept."""
    return {"routes": sum(1 for _ in routes)}


def _node(item: Item) -> str:
    node: str = item["node"]
    return node


def _order(item: Item) -> tuple[Any, ...]:
    """Sort key: routes that are not accepted, or not installed, first; then by prefix and node."""
    is_used = item.get("accepted") is not False and item.get("state", "Installed") == "Installed"
    is_used = is_used and item.get("sessionState", ESTABLISHED) == ESTABLISHED
    of_prefix = output.address_order(item["prefix"])
    instance, peer = item.get("instance") or "", item.get("peer") or ""
    return is_used, *of_prefix, item["node"], instance, not item.get("best"), peer
