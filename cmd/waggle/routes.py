"""``waggle routes``: what a running agent knows, what it tells each peer, what peers tell it.

It shows what the agent says, in the agent's order (peers by name, prefixes in address order).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from waggle import agent, output
from waggle.output import NONE, Column
from waggle.peers import add_output_flags, ask, read_time

TABLES = ("available", "advertised", "received")
FAMILIES = {"ipv4": "ipv4-unicast", "ipv6": "ipv6-unicast"}

_DETAILS = (
    Column("INSTANCE", wide=True),
    Column("COMMUNITIES", wide=True),
    Column("LARGE", wide=True),
    Column("LP/MED", wide=True),
)
ADVERTISED = (
    Column("NODE"),
    Column("PEER"),
    Column("PREFIX"),
    Column("NEXT-HOP"),
    Column("ORIGIN-OBJECT"),
    Column("COMMUNITIES"),
    Column("LP/MED"),
    Column("AGE", right=True),
    Column("INSTANCE", wide=True),
    Column("AS-PATH", wide=True),
    Column("LARGE", wide=True),
)
RECEIVED = (
    Column("NODE"),
    Column("PEER"),
    Column("PREFIX"),
    Column("NEXT-HOP"),
    Column("AS-PATH"),
    Column("STATUS"),
    *_DETAILS,
)
AVAILABLE = (
    Column("NODE"),
    Column("PREFIX"),
    Column("NEXT-HOP"),
    Column("FROM"),
    Column("BEST"),
    Column("AS-PATH"),
    Column("STATUS"),
    *_DETAILS,
)


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments of ``waggle routes``."""
    parser = subparsers.add_parser(
        "routes",
        help="the agent's routes: available, advertised, received",
        description="List the routes of a running agent.",
        epilog="available: all that the agent chooses from; advertised: what each peer is told; "
        "received: what each peer tells.",
    )
    parser.add_argument(
        "table",
        nargs="?",
        choices=(*TABLES, *FAMILIES),
        default="advertised",
        metavar="TABLE",
        help="available, advertised (the default) or received",
    )
    parser.add_argument(
        "family",
        nargs="?",
        choices=tuple(FAMILIES),
        metavar="FAMILY",
        help="ipv4 or ipv6; both by default",
    )
    parser.add_argument("--peer", metavar="P", help="only this peer, by name or address")
    parser.add_argument("--instance", metavar="I", help="only this instance")
    agent.add_socket_flag(parser)
    add_output_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Ask and print."""
    if args.table in FAMILIES:
        if args.family:
            output.complain("waggle routes", f"two families: {args.table} and {args.family}")
            return output.EXIT_USAGE
        args.table, args.family = "advertised", args.table
    query = {
        "table": args.table,
        "family": FAMILIES.get(args.family) if args.family else None,
        "peer": args.peer,
        "instance": args.instance,
    }
    answer = ask("routes", "RouteList", args, "/v1/routes", query)
    if answer is None:
        return output.EXIT_ERROR
    # An unknown peer or instance is not an empty answer: the agent names it as an error.
    missing = [error for error in answer["errors"] if error.get("code") == "NotFound"]
    if args.output not in ("table", "wide"):
        output.dump(answer, args.output)
        return output.EXIT_NOT_FOUND if missing else output.EXIT_OK
    if missing:
        output.complain("waggle routes", missing[0]["message"])
        return output.EXIT_NOT_FOUND
    if not answer["items"]:
        output.complain("waggle routes", _nothing(args))
        return output.EXIT_OK
    columns, draw = DRAWN[args.table]
    rows = [draw(item) for item in answer["items"]]
    output.table(columns, rows, wide=args.output == "wide", color=args.color)
    return output.EXIT_OK


def _nothing(args: argparse.Namespace) -> str:
    family = f"{args.family} " if args.family else ""
    where = f" of peer {args.peer}" if args.peer else ""
    why = {
        "advertised": "nothing is selected for advertisement, or no session is Established; "
        "see waggle peers",
        "received": "no session is Established, or what peers send is not accepted; "
        "see waggle peers",
        "available": "nothing is selected for advertisement and nothing was received",
    }[args.table]
    return f"no {args.table} {family}routes{where}: {why}"


def _advertised(item: dict[str, Any]) -> list[str]:
    return [
        item["node"],
        item.get("peer", NONE),
        item["prefix"],
        item.get("nextHop", "self"),
        _origins(item),
        _list(item, "communities"),
        _preference(item),
        _age(item),
        item["instance"],
        item.get("asPath", ""),
        _list(item, "largeCommunities"),
    ]


def _received(item: dict[str, Any]) -> list[str]:
    return [
        item["node"],
        item.get("peer", NONE),
        item["prefix"],
        item.get("nextHop", NONE),
        item.get("asPath", ""),
        item.get("status", NONE),
        item["instance"],
        _list(item, "communities"),
        _list(item, "largeCommunities"),
        _preference(item),
    ]


def _available(item: dict[str, Any]) -> list[str]:
    return [
        item["node"],
        item["prefix"],
        item.get("nextHop", "self"),
        item.get("peer") or _origins(item),
        "yes" if item.get("best") else "no",
        item.get("asPath", ""),
        item.get("status", NONE),
        item["instance"],
        _list(item, "communities"),
        _list(item, "largeCommunities"),
        _preference(item),
    ]


def _age(item: dict[str, Any]) -> str:
    since = read_time(item["sinceTime"]) if "sinceTime" in item else None
    return output.age(since, datetime.now(UTC))


def _origins(item: dict[str, Any]) -> str:
    """Return the first object that causes the route, and how many more do."""
    origins = item.get("origins", [])
    if not origins:
        return NONE
    first = origins[0]
    text = "/".join(first[key] for key in ("kind", "namespace", "name") if first.get(key))
    return text if len(origins) == 1 else f"{text} +{len(origins) - 1}"


def _list(item: dict[str, Any], key: str) -> str:
    return ",".join(item.get(key, []))


def _preference(item: dict[str, Any]) -> str:
    preference, med = item.get("localPreference"), item.get("med")
    if preference is None and med is None:
        return NONE
    return f"{NONE if preference is None else preference}/{NONE if med is None else med}"


DRAWN: dict[str, tuple[Sequence[Column], Callable[[dict[str, Any]], list[str]]]] = {
    "advertised": (ADVERTISED, _advertised),
    "received": (RECEIVED, _received),
    "available": (AVAILABLE, _available),
}
"""Table -> columns, and what makes a row of an item."""
