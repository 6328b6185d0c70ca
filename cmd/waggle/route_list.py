"""The routes of a running agent or router, as a command lists them: selected, in order, with notes.

The agent selects the routes, peer by peer; this module puts the prefixes of each in address order.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from cells.arguments import positive
from waggle import ask_agent, kernel_routes, output, route_columns, sessions
from waggle.fleet.flags import asks_cluster
from waggle.route_columns import TABLES
from waggle.route_filter import FilteredList, add_filter_flags, filters
from waggle.route_selection import (
    FAMILIES,
    FAMILY_NAMES,
    Query,
    RouteSelection,
    family_of,
    hint,
    nearest,
    no_routes,
    truncated,
)
from waggle.watching import add_watch_flag, watched

SORTED_ROUTES = 2_000
"""Routes that are read before the first is printed; a node advertises some hundreds."""
_FAMILY_WORDS = {**FAMILIES, **{value: value for value in FAMILIES.values()}}
"""Both names of each family, as they are written in an argument."""


def add_arguments(
    parser: argparse.ArgumentParser,
    table: str,
    tables: Sequence[str] = TABLES,
    *,
    peer_by: str = "name or address",
) -> None:
    """Declare what selects routes of these tables; without a TABLE it is ``table``."""
    *others, last = (name for name in tables if name != table)
    parser.add_argument(
        "table",
        nargs="?",
        metavar="TABLE",
        help=f"{table} (the default), {', '.join(others)} or {last}",
    )
    parser.add_argument("family", nargs="?", metavar="FAMILY", help="ipv4 or ipv6; default: both")
    parser.add_argument(
        "prefix",
        nargs="?",
        metavar="PREFIX|ADDRESS",
        help="only this prefix, or the longest prefix that contains the address, at each peer",
    )
    parser.add_argument("--peer", metavar="P", help=f"only this peer, by {peer_by}")
    parser.add_argument(
        "--limit",
        type=positive,
        metavar="N",
        help="only the first N routes of the answer",
    )
    add_filter_flags(parser)
    add_watch_flag(parser)
    parser.set_defaults(default_table=table, tables=tables, instance=None, approve=False)


def run(args: argparse.Namespace) -> int:
    """Print the routes; returns the exit status."""
    return watched(args, _show)


def _show(args: argparse.Namespace) -> int:
    try:
        words = filter(None, (args.table, args.family, args.prefix))
        selection = _selection(words, args.default_table, args.tables)
    except ValueError as error:
        output.complain(args.prog, f"{error}; see {args.prog} --help")
        return output.EXIT_USAGE
    conditions = filters(args)
    if asks_cluster(args):
        from waggle.fleet.routes import show_routes

        if args.approve or (selection.table == kernel_routes.TABLE and (conditions or args.peer)):
            text = "--approve is for one agent, and a route of the kernel has no attributes of BGP"
            output.complain(args.prog, text)
            return output.EXIT_USAGE
        limit = None if conditions or args.count else args.limit
        given = {"peer": args.peer, "instance": args.instance, "limit": limit and str(limit)}
        return show_routes(args, selection, {**selection._asdict(), **given})
    if selection.table == kernel_routes.TABLE:
        if conditions or args.count:
            text = "--within, --community, --as-path, --origin and --count are for routes of BGP"
            output.complain(args.prog, text)
            return output.EXIT_USAGE
        if args.approve and args.watch:
            output.complain(args.prog, "--approve installs routes once: not with --watch")
            return output.EXIT_USAGE
        if args.approve:
            return kernel_routes.approve(args)
        return kernel_routes.run(args, selection.family, selection.prefix)
    # The limit is one of selected routes.
    limit = None if conditions or args.count else args.limit
    given = {"peer": args.peer, "instance": args.instance, "limit": limit and str(limit)}
    query = {**selection._asdict(), **given}
    if args.approve:
        output.complain(args.prog, f"--approve is for the table {kernel_routes.TABLE}")
        return output.EXIT_USAGE
    answer = ask_agent.read_list(args, "RouteList", "/v1/routes", query)
    if answer is None:
        return output.EXIT_ERROR
    selected = FilteredList(answer, conditions, None if limit else args.limit)
    try:
        return _count(selected, args) if args.count else _print(selected, selection, args)
    except ask_agent.AgentError as error:
        # A part of the answer is printed already.
        output.complain(args.prog, str(error))
        return output.EXIT_ERROR


def _count(answer: FilteredList, args: argparse.Namespace) -> int:
    """Print the number of routes; returns the exit status. Raises `AgentError`."""
    number = sum(1 for _ in answer)
    errors = [*answer.head.get("errors", ()), *answer.rest.get("errors", ())]
    if args.output not in output.TABLES:
        head = {**answer.head, "errors": errors, "items": [], "count": number}
        output.dump(head, "json" if args.output == "jsonl" else args.output)
    elif not errors:
        print(number)
    for error in errors if args.output in output.TABLES else ():
        output.complain(args.prog, error["message"])
    return output.EXIT_NOT_FOUND if errors else output.EXIT_OK


def _print(answer: FilteredList, selection: RouteSelection, args: argparse.Namespace) -> int:
    """Print the routes as they arrive; returns the exit status. Raises `AgentError`."""
    ahead = _read_ahead(answer)
    items = ahead.in_order(of_peers=selection.table != "available")
    first = next(items, None)
    all_items = chain(() if first is None else (first,), items)
    is_missing = selection.prefix is not None and first is None
    if args.output not in output.TABLES:

        def rest() -> Mapping[str, Any]:
            if not is_missing or answer.head.get("errors") or answer.rest.get("errors"):
                return answer.rest
            text = _no_routes(selection, args, answer.rejected, is_kept=True)
            return {**answer.rest, "errors": [{"code": "NotFound", "message": text}]}

        output.dump_list(answer.head, all_items, rest, args.output)
    elif first is not None:
        columns = route_columns.COLUMNS[selection.table]
        if selection.table == "available" and ahead.may_be_of_several_instances:
            # No other column shows it: routes that the agent originates have no peer.
            columns = [c._replace(wide=c.wide and c != route_columns.INSTANCE) for c in columns]
        output.table(columns, all_items, args)
    # An unknown peer or instance is not an empty answer: the agent names it as an error.
    errors = [*answer.head.get("errors", ()), *answer.rest.get("errors", ())]
    missing = [error for error in errors if error.get("code") == "NotFound"]
    if args.output in output.TABLES:
        for note in _notes(answer, selection, args, missing, empty=first is None):
            output.complain(args.prog, note)
    if missing or is_missing:
        return output.EXIT_NOT_FOUND
    return output.EXIT_OK


def _notes(
    answer: FilteredList,
    selection: RouteSelection,
    args: argparse.Namespace,
    missing: Sequence[Mapping[str, str]],
    *,
    empty: bool,
) -> Iterator[str]:
    """Yield the notes below the table, which is ``empty`` or not."""
    if missing:
        yield missing[0]["message"]
    elif empty:
        counted = []
        if selection.table == "received":
            counted = list(_not_kept(_peers(args), selection))
        yield _no_routes(selection, args, answer.rejected, is_kept=not counted)
        yield from counted
    elif answer.rest.get("truncated"):
        yield truncated(args.limit)
    elif selection.table == "received" and selection.prefix is None:
        yield from _not_kept(_peers(args), selection)
    if selection.table == "received" and not missing:
        yield from sessions.malformed(_peers(args))
    if selection.table == "advertised" and not missing:
        yield from sessions.left_out(_peers(args))


class ReadAhead(NamedTuple):
    """The routes that are read before the first is printed, and the others as they arrive."""

    known: list[dict[str, Any]]
    rest: Iterator[dict[str, Any]]
    """Raises `AgentError` where the answer breaks off."""
    is_complete: bool
    """True if there are no others."""

    @property
    def may_be_of_several_instances(self) -> bool:
        """True if the routes are of several instances, or not all of them are known."""
        return not self.is_complete or len({item["instance"] for item in self.known}) > 1

    def in_order(self, *, of_peers: bool) -> Iterator[dict[str, Any]]:
        """Iterate over the routes of each peer, or of each instance, in address order.

        Peers and instances stay in the agent's order, and so do paths of one prefix: the best one is
        first. An answer of more than `SORTED_ROUTES` stays in the agent's order.
        """
        yield from _sorted(self.known, of_peers=of_peers) if self.is_complete else self.known
        yield from self.rest


def _read_ahead(items: Iterable[dict[str, Any]]) -> ReadAhead:
    remaining = iter(items)
    known: list[dict[str, Any]] = []
    try:
        known.extend(islice(remaining, SORTED_ROUTES))
        following = next(remaining, None)
    except ask_agent.AgentError as error:
        return ReadAhead(known, _broken(error), is_complete=True)
    rest = iter(()) if following is None else chain((following,), remaining)
    return ReadAhead(known, rest, is_complete=following is None)


def _broken(error: ask_agent.AgentError) -> Iterator[dict[str, Any]]:
    yield from ()
    raise error


def _sorted(items: list[dict[str, Any]], *, of_peers: bool) -> Iterator[dict[str, Any]]:
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for item in items:
        group = item["instance"], item.get("peer", "") if of_peers else ""
        groups.setdefault(group, []).append(item)
    for routes in groups.values():
        routes.sort(key=lambda item: output.address_order(item["prefix"]))
        yield from routes


def _peers(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the sessions of the peers of a question; none without an answer."""
    query = {"peer": args.peer, "instance": args.instance}
    answer = ask_agent.read(args, "PeerList", "/v1/peers", query)
    return [] if answer is None else list(answer["items"])


def _not_kept(peers: Iterable[dict[str, Any]], selection: RouteSelection) -> Iterator[str]:
    """Yield a sentence for each peer of whose routes, of the selected family, not all are kept."""
    wanted = selection.family or (selection.prefix and family_of(selection.prefix))
    for item in peers:
        families = [
            family for family in item.get("received", ()) if wanted in (None, family["family"])
        ]
        counted = sum(family.get("notKept", 0) for family in families)
        if counted:
            total = sum(family["routes"] for family in families)
            kept = total - counted
            of_family = f"{FAMILY_NAMES[wanted]} " if wanted else ""
            yield (
                f"{item['name']}: {kept} of {total} received {of_family}routes are kept, "
                "the others are only counted (--keep-received)"
            )


def _selection(words: Iterable[str], table: str, tables: Sequence[str]) -> RouteSelection:
    """Read the positional arguments, each of which may be absent. Raises ValueError."""
    parameters: dict[str, str] = {}
    for word in words:
        if word in tables:
            key, value = "table", word
        elif word in _FAMILY_WORDS:
            key, value = "family", _FAMILY_WORDS[word]
        elif family_of(word) is not None:
            key, value = "prefix", word
        else:
            close = difflib.get_close_matches(word, (*tables, *FAMILIES), n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ValueError(
                f"{word} is neither a table ({', '.join(tables)}), a family "
                f"({', '.join(FAMILIES)}), a prefix nor an address{hint}"
            )
        if key in parameters:
            raise ValueError(f"more than one {key}: {parameters[key]} and {value}")
        parameters[key] = value
    prefix, family = parameters.get("prefix"), parameters.get("family")
    if prefix is not None and family not in (None, family_of(prefix)):
        raise ValueError(f"{prefix} is not of the family {family}")
    return RouteSelection(**{"table": table} | parameters)


def _no_routes(
    selection: RouteSelection, args: argparse.Namespace, rejected: int, *, is_kept: bool
) -> str:
    """Return what was not found, as `no_routes`, with the nearest prefixes of the agent."""

    def near() -> str:
        query: Query = {**selection._asdict(), "peer": args.peer, "instance": args.instance}
        with contextlib.suppress(ask_agent.AgentError):
            client = ask_agent.client(args)
            known = nearest(query, lambda wanted: client.get("/v1/routes", wanted))
            return hint(selection.prefix or "", [known])
        return ""

    return no_routes(selection, args, rejected, near, is_kept=is_kept)
