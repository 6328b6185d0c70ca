"""``waggle routes kernel``: the routes that an agent installs in the kernel."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from waggle import ask_agent, output
from waggle.output import member
from waggle.route_columns import origin_objects
from waggle.route_selection import Nearest, hint, nearest, truncated
from waggle.tables import Column

if TYPE_CHECKING:
    from cells.api.client import Client

TABLE = "kernel"
"""The word that selects them."""
PATH = "/v1/kernel-routes"
OFF = (
    "the agent installs no routes in the kernel: it has no dialect whose API is for that, or no "
    "capability NET_ADMIN (--fib, --fib-socket)"
)


def _hops(item: Mapping[str, Any]) -> str:
    hops = ((hop["via"], hop.get("interface")) for hop in item.get("nextHops", ()))
    texts = [via if interface is None else f"{via}%{interface}" for via, interface in hops]
    return " ".join(texts) or ("" if item["type"] == "unicast" else str(item["type"]))


def _state(item: Mapping[str, Any]) -> str:
    return str(item.get("reason") or item["state"])


COLUMNS = (
    Column("NODE", member("node"), minor=1),
    Column("TABLE", member("table"), right=True),
    Column("PREFIX", member("prefix"), minor=6, beneath=True),
    Column("NEXT-HOPS", _hops, minor=5, beneath=True),
    Column("PEERS", lambda item: " ".join(item.get("peers", ())), minor=3, beneath=True),
    Column("ORIGIN-OBJECT", origin_objects, minor=4, beneath=True),
    Column("STATE", _state),
    Column("INSTANCE", member("instance"), wide=True),
    Column("METRIC", member("metric"), right=True, wide=True),
    Column("MESSAGE", member("message"), minor=2, wide=True),
)


def run(args: argparse.Namespace, family: str | None, prefix: str | None) -> int:
    """Print the routes; returns the exit status."""
    for flag, value in (("--peer", args.peer), ("--instance", args.instance)):
        if value is not None:
            output.complain(args.prog, f"{flag} does not select routes of the kernel")
            return output.EXIT_USAGE
    query = {"family": family, "prefix": prefix, "limit": args.limit and str(args.limit)}
    answer = ask_agent.answer(
        args,
        "KernelRouteList",
        lambda: ask_agent.of_cell(args, lambda agent: agent.get_list(PATH, query), OFF),
    )
    if answer is None:
        return output.EXIT_ERROR
    try:
        items = iter(answer)
        first = next(items, None)
        listed = chain(() if first is None else (first,), items)
        missing = _missing(args, family, prefix) if first is None and prefix is not None else ""
        if args.output not in output.TABLES:
            error = {"errors": [{"code": "NotFound", "message": missing}]} if missing else {}
            output.dump_list(answer.head, listed, lambda: {**answer.rest, **error}, args.output)
        elif first is not None:
            output.table(COLUMNS, listed, args)
            if answer.rest.get("truncated"):
                output.complain(args.prog, truncated(args.limit))
        else:
            output.complain(args.prog, missing or "no route of the kernel")
    except ask_agent.AgentError as error:
        # A part of the answer is printed already.
        output.complain(args.prog, str(error))
        return output.EXIT_ERROR
    return output.EXIT_NOT_FOUND if missing else output.EXIT_OK


def _missing(args: argparse.Namespace, family: str | None, prefix: str) -> str:
    known = []
    with contextlib.suppress(ask_agent.AgentError):
        known.append(nearest_known(ask_agent.client(args), family, prefix))
    return no_route(prefix, known)


def nearest_known(client: Client, family: str | None, prefix: str) -> Nearest:
    """Return what an agent has in place of an unknown prefix. Raises `AgentError`."""
    names = ("family", "prefix", "limit")
    return nearest(
        {"family": family, "prefix": prefix},
        lambda query: client.get(PATH, {name: query.get(name) for name in names}),
    )


def no_route(prefix: str, known: Iterable[Nearest]) -> str:
    """Return the sentence that the kernel has no route for a prefix, with the nearest ones."""
    return f"no route of the kernel for {prefix}{hint(prefix, known)}"


def approve(args: argparse.Namespace) -> int:
    """Approve the routes that wait, and print them; returns the exit status."""
    answer = ask_agent.answer(
        args,
        "KernelRouteList",
        lambda: ask_agent.of_cell(args, lambda agent: agent.post("/v1/kernel-routes/approve"), OFF),
    )
    if answer is None:
        return output.EXIT_ERROR
    output.show(answer, COLUMNS, args, "no route waits for approval")
    return output.EXIT_OK
