"""The routes that arguments select, and the sentence where there are none, with the nearest prefixes.

The nearest prefixes are of one agent, or of all nodes: each is searched on its own.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from cells.nearest_prefixes import NEAREST, nearest_prefixes, network_of
from waggle import output
from waggle.route_filter import given_filters

Query: TypeAlias = dict[str, str | None]

COMPARED_ROUTES: Final = 10_000
"""In a table with more routes an unknown prefix has no near ones."""
FAMILIES: Final = {"ipv4": "ipv4-unicast", "ipv6": "ipv6-unicast"}
FAMILY_NAMES: Final = {value: name for name, value in FAMILIES.items()}


class RouteSelection(NamedTuple):
    """The routes that the positional arguments select; the members are query parameters."""

    table: str
    family: str | None = None
    prefix: str | None = None


def family_of(text: str) -> str | None:
    """Return the family of a prefix or address; None for another text."""
    network = network_of(text)
    return None if network is None else FAMILIES[f"ipv{network.version}"]


class Nearest(NamedTuple):
    """Known prefixes in place of an unknown one: the longest matches of its address, else near ones."""

    matches: frozenset[str] = frozenset()
    near: frozenset[str] = frozenset()


def nearest(query: Query, read: Callable[[Query], Mapping[str, Any]]) -> Nearest:
    """Return the known prefixes that ``read`` has for an unknown one, the ``prefix`` of a query."""
    address, slash, _ = (query["prefix"] or "").partition("/")
    matches = read({**query, "prefix": address})["items"] if slash else ()
    if matches:
        return Nearest(matches=frozenset(item["prefix"] for item in matches))
    every: Query = {**query, "prefix": None, "family": family_of(address)}
    answer = read({**every, "limit": str(COMPARED_ROUTES)})
    items = () if answer.get("truncated") else answer["items"]
    return Nearest(near=frozenset(nearest_prefixes(address, (item["prefix"] for item in items))))


def hint(prefix: str, of_nodes: Iterable[Nearest]) -> str:
    """Return what each node has for an unknown prefix, as the end of a sentence."""
    known = list(of_nodes)
    address = prefix.partition("/")[0]
    matches = sorted({p for of in known for p in of.matches}, key=output.address_order)
    if matches:
        return f"; the longest match of {address}: {', '.join(matches[:NEAREST])}"
    near = nearest_prefixes(address, {p for of in known for p in of.near})
    return f"; the nearest: {', '.join(near)}" if near else ""


def no_routes(
    selection: RouteSelection,
    args: argparse.Namespace,
    rejected: int,
    near: Callable[[], str],
    *,
    is_kept: bool = True,
) -> str:
    """Return what was not found.

    ``rejected``: the number of routes that flags reject; ``near`` returns the `hint` of an unknown
    prefix; ``is_kept`` is False where only some routes of the peers are kept.
    """
    family = f"{FAMILY_NAMES[selection.family]} " if selection.family else ""
    where = f" of peer {args.peer}" if args.peer else ""
    if rejected:
        flags = " and ".join(given_filters(args))
        return (
            f"no {selection.table} {family}route{where} is selected by {flags} "
            f"({rejected} without {'them' if ' ' in flags else 'it'})"
        )
    if selection.prefix is not None:
        relation = "for" if "/" in selection.prefix else "that contains"
        sentence = f"no {selection.table} {family}route{where} {relation} {selection.prefix}"
        return f"{sentence if is_kept else f'{sentence} is kept'}{near()}"
    if not is_kept:
        return f"no {selection.table} {family}route{where} is kept"
    sessions = args.prog.replace("routes", "peers")
    why = {
        "advertised": "no route is selected for advertisement, or no session is Established; "
        f"see {sessions}",
        "received": f"no session is Established, or the peers send no valid routes; see {sessions}",
        "available": "no route is selected for advertisement and none was received",
    }[selection.table]
    return f"no {selection.table} {family}routes{where}: {why}"


def truncated(limit: int) -> str:
    """Return the sentence below a list that ``--limit`` has cut."""
    first = "this is the first route" if limit == 1 else f"these are the first {limit} routes"
    return f"{first}; there are more"
