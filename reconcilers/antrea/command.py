"""``waggle antrea``: what antctl shows of BGP, with its names, flags and columns.

``-o json`` is the envelope of all commands; ``-o antctl-json`` is for scripts of antctl.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from reconcilers.antrea.route_sets import ROUTE_TYPES
from reconcilers.antrea.views import (
    IPV4_ONLY,
    IPV6_ONLY,
    PEERS,
    POLICY,
    ROUTES,
    TYPE,
    PeerView,
    PolicyView,
    RouteView,
)
from reconcilers.dialect import Ask, Command, CommandError, Listing

GET: Final = "get"
NONE: Final = "<NONE>"
MAX_LIST_CHARACTERS: Final = 50
"""Of the members of a confederation in a table."""
CODES: Final = {400: "BadRequest", 404: "NotFound", 503: "NotEnabled"}
"""Codes of the statuses with which the agent refuses a view."""


class View(NamedTuple):
    """One view: its path, the kind and the type of its items, and the columns of its table."""

    path: str
    kind: str
    item: type
    titles: tuple[str, ...]
    columns: tuple[str, ...]


VIEWS: Final = {
    "policy": View(
        POLICY,
        "AntreaPolicyList",
        PolicyView,
        (
            "NAME",
            "ROUTER-ID",
            "LOCAL-ASN",
            "LISTEN-PORT",
            "CONFEDERATION-IDENTIFIER",
            "MEMBER-ASNs",
        ),
        ("name", "routerID", "localASN", "listenPort", "confederationIdentifier", "memberASNs"),
    ),
    "peers": View(
        PEERS,
        "AntreaPeerList",
        PeerView,
        ("PEER", "ASN", "STATE", "BFD"),
        ("peer", "asn", "state", "bfd"),
    ),
    "routes": View(
        ROUTES,
        "AntreaRouteList",
        RouteView,
        ("ROUTE", "TYPE", "K8S-OBJ-REF"),
        ("route", "type", "k8sObjRef"),
    ),
}
ALIASES: Final = {
    "bgppolicy": "policy",
    "bgppeers": "peers",
    "bgppeer": "peers",
    "bgproutes": "routes",
    "bgproute": "routes",
}


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command ``waggle antrea``."""
    parser.add_argument(
        "words",
        nargs="+",
        metavar="VIEW",
        help="policy, peers or routes (antctl's names bgppolicy, bgppeers, bgproutes, also after get)",
    )
    parser.add_argument("--ipv4-only", action="store_true", help="of peers and routes: IPv4 only")
    parser.add_argument("--ipv6-only", action="store_true", help="of peers and routes: IPv6 only")
    parser.add_argument(
        "-T",
        "--type",
        choices=sorted(ROUTE_TYPES),
        metavar="TYPE",
        help=f"of routes: only this type: {', '.join(ROUTE_TYPES)}",
    )


def read(args: argparse.Namespace, ask: Ask) -> Listing:
    """Return the view that the arguments name. Raises `CommandError`."""
    words = [word for i, word in enumerate(args.words) if (i, word) != (0, GET)]
    name = ALIASES.get(words[0], words[0]) if len(words) == 1 else ""
    view = VIEWS.get(name)
    if view is None:
        raise CommandError("BadRequest", f"no view {' '.join(words)!r}: policy, peers or routes")
    query = {flag: "" for flag in (IPV4_ONLY, IPV6_ONLY) if getattr(args, flag.replace("-", "_"))}
    if args.type is not None:
        query[TYPE] = args.type
    if (query and name == "policy") or (TYPE in query and name == "peers"):
        flags = ", ".join(f"--{flag}" for flag in query)
        raise CommandError("BadRequest", f"{flags}: not of {name}")
    answer = ask(view.path, query)
    if answer.status != 200:
        message = answer.body.strip().splitlines()[0] if answer.body.strip() else ""
        code = CODES.get(answer.status, "Refused")
        raise CommandError(code, message or f"status {answer.status}")
    content = json.loads(answer.body)
    items = content if isinstance(content, list) else [] if content is None else [content]
    return Listing(view.kind, items, table(view, items), content)


def table(view: View, items: Sequence[dict[str, Any]]) -> list[str]:
    """Return the lines of a table of ``waggle antrea`` in antctl's form: sorted as text."""
    if not items:
        return [""]
    rows = sorted([_cell(item.get(key)) for key in view.columns] for item in items)
    widths = [max(map(len, column)) for column in zip(view.titles, *rows, strict=True)]
    return [
        " ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in (view.titles, *rows)
    ]


def _cell(value: object) -> str:
    if isinstance(value, list):
        return _shortened(str(item) for item in value) or NONE
    return NONE if value in (None, "", 0) else str(value)


def _shortened(items: Iterable[str]) -> str:
    """Join a list, sorted as text; what makes it longer than `MAX_LIST_CHARACTERS` is counted."""
    texts = sorted(items)
    text = ",".join(texts)
    shown = len(texts)
    while len(text) > MAX_LIST_CHARACTERS and shown > 1:
        shown -= 1
        text = f"{','.join(texts[:shown])} + {len(texts) - shown} more..."
    return text


COMMAND: Final = Command(
    read,
    {view.kind: view.item for view in VIEWS.values()},
    add_flags,
    native_format="antctl-json",
)
