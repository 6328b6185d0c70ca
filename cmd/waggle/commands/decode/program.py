"""The input of `waggle decode`, and the session context in which messages are decoded."""

from __future__ import annotations

import argparse
import io
import ipaddress
import json
import string
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from resources.given_file import open_given
from resources.pages import reference
from speaker.iana import ROLES, Role
from speaker.message import HEADER_SIZE
from speaker.negotiated import Negotiated
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family
from waggle import output
from waggle.commands.decode.messages import Json, decode_message
from waggle.commands.decode.pcap import NotACapture, messages
from waggle.manifest_flag import STANDARD_INPUT, complain_of_input
from waggle.output import EXIT_OK, EXIT_USAGE, complain, reason_of
from waggle.progress import expect_input
from waggle.tables import Column

KIND: Final = "MessageList"
_OF_KIND = {
    "open": ("asn", "routerID", "holdTime"),
    "notification": ("name", "shutdownCommunication"),
    "route-refresh": ("family", "subtype"),
    "update": ("endOfRib",),
}
"""Members of a message that its row has as ``name=value``, by its kind."""


def _details(answer: Json) -> str:
    if "invalid" in answer:
        return f"line {answer['line']}: {answer['invalid']}"
    members = _OF_KIND.get(answer["kind"], ())
    return " ".join(f"{name}={answer[name]}" for name in members if name in answer)


COLUMNS = (
    Column("KIND", lambda answer: answer.get("kind") or ""),
    Column("ANNOUNCE", lambda answer: ",".join(answer.get("announce", ())), minor=5, beneath=True),
    Column("WITHDRAW", lambda answer: ",".join(answer.get("withdraw", ())), minor=4, beneath=True),
    Column("NEXT-HOP", output.member("nextHop"), minor=3, beneath=True),
    Column("AS-PATH", output.member("asPath"), minor=2, beneath=True),
    Column("OUTCOME", output.member("outcome"), style=lambda _: "red"),
    Column("DETAILS", _details, minor=1, beneath=True),
)


def _octets(text: str) -> bytes:
    """Read hexadecimal digits, perhaps with spaces and colons. Raises ValueError."""
    digits = "".join(text.replace(":", " ").split())
    wrong = next((char for char in digits if char not in string.hexdigits), None)
    if wrong is not None:
        raise ValueError(f"{wrong!r} is not a hexadecimal digit")
    if len(digits) % 2:
        raise ValueError("an odd number of hexadecimal digits: octets have two each")
    return bytes.fromhex(digits)


def _why(error: Exception) -> str:
    """Return why a line or an input cannot be used, without names of Python."""
    match error:
        case json.JSONDecodeError():
            return f"not JSON: {error.msg}, column {error.colno}"
        case KeyError():
            return f"the key {str(error.args[0])!r} is missing"
        case TypeError() | AttributeError():
            return (
                f"the line is not an object with texts and numbers as {reference('cli')} describes"
            )
        case UnicodeDecodeError():
            return "not text: neither hexadecimal digits nor JSON"
        case OSError():
            return reason_of(error)
        case _:
            return str(error)


def _cut(octets: bytes) -> Iterator[bytes]:
    """Split octets into messages by their length fields."""
    while octets:
        length = int.from_bytes(octets[16:18], "big")
        size = length if HEADER_SIZE <= length <= len(octets) else len(octets)
        yield octets[:size]
        octets = octets[size:]


def _families(names: Iterable[str]) -> frozenset[Family]:
    return frozenset(Family.parse(name) for name in names)


def _role(value: str | int | None) -> int | None:
    """Parse a BGP role: a name, or the number of IANA. Raises ValueError."""
    if isinstance(value, str) and value in ROLES:
        return ROLES[value]
    return None if value is None else Role(int(value))


def context_of(context: dict[str, Any]) -> Negotiated:
    """Return the session context of a line. Raises ValueError for an invalid value."""
    families = _families(context.get("families") or ()) or frozenset((IPV4_UNICAST, IPV6_UNICAST))
    asn = context.get("peerASN")
    ebgp = bool(context.get("ebgp", True))
    return Negotiated(
        peer_asn=asn if isinstance(asn, int) else 0,
        local_asn=context.get("localASN") or 0,
        local_router_id=int(ipaddress.IPv4Address(context.get("localRouterID") or 0)),
        local_role=_role(context.get("localRole")),
        ebgp=ebgp,
        confederation=bool(context.get("confederation")),
        as4=bool(context.get("as4", True)),
        families=families,
        add_path_receive=_families(context.get("addpath") or ()),
        extended_message=bool(context.get("extended")),
        extended_next_hop=_families(context.get("extendedNextHop") or ()),
    )


def _lines(source: Iterable[str]) -> Iterator[Json]:
    for number, line in enumerate(source, 1):
        if not line.strip():
            continue
        item = None
        try:
            item = json.loads(line)
            octets = _octets(item["hex"])
            session = context_of(item.get("context") or {})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            name = {"id": item.get("id")} if isinstance(item, dict) else {}
            yield {**name, "line": number, "invalid": _why(error)}
            continue
        yield {"id": item.get("id"), **decode_message(octets, session)}


def _decoded(args: argparse.Namespace) -> Iterator[Json]:
    """Yield the messages of the input. Raises ValueError, OSError and NotACapture."""
    if args.jsonl == STANDARD_INPUT:
        expect_input(args)
        yield from _lines(sys.stdin)
        return
    if args.jsonl is not None:
        with io.TextIOWrapper(open_given(args.jsonl)) as file:
            yield from _lines(file)
        return
    session = Negotiated(
        ebgp=args.ebgp,
        as4=args.as4,
        extended_message=args.extended,
        families=_families(args.family) or frozenset((IPV4_UNICAST, IPV6_UNICAST)),
        add_path_receive=_families(args.add_path),
    )
    if args.pcap is not None:
        for octets, of_capture in messages(Path(args.pcap)):
            yield decode_message(octets, of_capture or session)
        return
    if not args.hex:
        expect_input(args)
    for text in args.hex or sys.stdin.read().splitlines():
        for octets in _cut(_octets(text)):
            yield decode_message(octets, session)


def _conflict(args: argparse.Namespace) -> str | None:
    """Return which arguments do not go together; None where all do."""
    inputs = {"HEX": args.hex, "--pcap": args.pcap, "--jsonl": args.jsonl}
    given = [name for name, value in inputs.items() if value not in (None, [])]
    if len(given) > 1:
        return f"{' and '.join(given)}: one input at a time"
    of_session = {
        "--no-as4": not args.as4,
        "--ibgp": not args.ebgp,
        "--extended": args.extended,
        "--add-path": args.add_path,
        "--family": args.family,
    }
    without_effect = [flag for flag, value in of_session.items() if value]
    if args.jsonl is not None and without_effect:
        return f"{', '.join(without_effect)}: not with --jsonl, whose lines have a context each"
    return None


def main(args: argparse.Namespace) -> int:
    """Decode the input and print; returns the exit status."""
    if conflict := _conflict(args):
        complain("waggle decode", f"{conflict}; see waggle decode --help")
        return EXIT_USAGE
    is_list = args.output not in ("jsonl", "table")
    items: list[Json] = []
    try:
        if is_list:
            for answer in _decoded(args):
                items.append(answer)  # noqa: PERF402  what precedes an error is kept
        else:
            _print(_decoded(args), args)
    except (ValueError, OSError, NotACapture) as error:
        if output.is_of_output(error):
            raise
        where = f"{args.pcap}: " if isinstance(error, NotACapture) else ""
        message = f"{where}{_why(error)}; see waggle decode --help"
        if is_list:
            complain_of_input(args, message, kind=KIND, items=items)
        else:
            complain("waggle decode", message)
        return EXIT_USAGE
    if is_list:
        output.dump(output.document(KIND, items), args.output)
    return EXIT_OK


def _print(answers: Iterable[Json], args: argparse.Namespace) -> None:
    """Print messages as they are decoded: a JSON line each, or a table."""
    if args.output == "table":
        output.table(COLUMNS, answers, args)
        return
    for answer in answers:
        print(json.dumps(answer))
