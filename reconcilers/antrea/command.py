"""``waggle antrea``: what antctl shows of BGP, with its names, flags, columns and formats."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from reconcilers.antrea.route_sets import ROUTE_TYPES
from reconcilers.antrea.views import IPV4_ONLY, IPV6_ONLY, PEERS, POLICY, ROUTES, TYPE
from reconcilers.dialect import Ask, Command

GET: Final = "get"
NONE: Final = "<NONE>"
MAX_LIST_CHARACTERS: Final = 50
"""Of the members of a confederation in a table."""
EXIT_ERROR, EXIT_USAGE, EXIT_NOT_FOUND = 1, 2, 4


class View(NamedTuple):
    """One view: its path, and the columns of its table."""

    path: str
    titles: tuple[str, ...]
    columns: tuple[str, ...]


VIEWS: Final = {
    "policy": View(
        POLICY,
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
    "peers": View(PEERS, ("PEER", "ASN", "STATE", "BFD"), ("peer", "asn", "state", "bfd")),
    "routes": View(ROUTES, ("ROUTE", "TYPE", "K8S-OBJ-REF"), ("route", "type", "k8sObjRef")),
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


def run(args: argparse.Namespace, ask: Ask) -> int:
    """Run the command ``waggle antrea``: print a view; returns the exit status."""
    words = [word for i, word in enumerate(args.words) if (i, word) != (0, GET)]
    name = ALIASES.get(words[0], words[0]) if len(words) == 1 else ""
    view = VIEWS.get(name)
    if view is None:
        return _complain(f"no view {' '.join(words)!r}: policy, peers or routes", EXIT_USAGE)
    query = {flag: "" for flag in (IPV4_ONLY, IPV6_ONLY) if getattr(args, flag.replace("-", "_"))}
    if args.type is not None:
        query[TYPE] = args.type
    if (query and name == "policy") or (TYPE in query and name == "peers"):
        return _complain(f"{', '.join(f'--{flag}' for flag in query)}: not of {name}", EXIT_USAGE)
    answer = ask(view.path, query)
    if answer.status != 200:
        message = answer.body.strip().splitlines()[0] if answer.body.strip() else ""
        status = EXIT_NOT_FOUND if answer.status == 404 else EXIT_ERROR
        return _complain(message or f"status {answer.status}", status)
    content = json.loads(answer.body)
    if args.output == "json":
        sys.stdout.write(json.dumps(content, indent=2) + "\n")
    elif args.output == "yaml":
        import yaml

        # Of a scalar PyYAML ends the document as well.
        text = "null\n" if content is None else yaml.safe_dump(content, sort_keys=True)
        sys.stdout.write(text)
    else:
        items = content if isinstance(content, list) else [] if content is None else [content]
        sys.stdout.write("".join(f"{line}\n" for line in table(view, items)))
    return 0


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


def _complain(message: str, status: int) -> int:
    sys.stderr.write(f"waggle antrea: {message}\n")
    return status


COMMAND: Final = Command(run, add_flags, formats=("table", "json", "yaml"))
