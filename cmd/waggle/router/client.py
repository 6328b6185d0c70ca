"""Actions on a running router: one request over its socket, the answer on standard output."""

from __future__ import annotations

import argparse
import codecs
import difflib
import json
import socket
from collections.abc import Iterator
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import Any, Final

from cells.api.streamed_list import StreamedList
from waggle.output import EXIT_ERROR, EXIT_NOT_FOUND, EXIT_USAGE, complain

TIMEOUT = 30.0
"""Seconds without an octet of the answer."""
RECEIVE_OCTETS: Final = 65536
TABLES: Final = ("available", "received", "advertised")


class RouterError(ConnectionError):
    """The router cannot be reached, or its answer breaks off; the text is the reason."""


def request(path: Path, message: dict[str, Any]) -> dict[str, Any]:
    """Send one request and return the answer. Raises `RouterError`."""
    answer: dict[str, Any] = json.loads("".join(_pieces(path, message)))
    return answer


def _pieces(path: Path, message: dict[str, Any]) -> Iterator[str]:
    """Send one request and yield the answer in pieces, as they arrive. Raises `RouterError`.

    An error of the consumer, which prints the answer, is not one of the router.
    """
    text = codecs.getincrementaldecoder("utf-8")()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(TIMEOUT)
        try:
            sock.connect(str(path))
        except OSError as error:
            reason = f"{path}: {error.strerror or error}"
            raise RouterError(f"{reason}; no router runs here, see --socket") from None
        data = b""
        while not data.endswith(b"\n"):
            try:
                if not data:
                    sock.sendall(json.dumps(message).encode() + b"\n")
                data = sock.recv(RECEIVE_OCTETS)
            except TimeoutError:
                raise RouterError(f"{path}: no answer for {TIMEOUT:g}s") from None
            except OSError as error:
                raise RouterError(f"{path}: {error.strerror or error}") from None
            if not data:
                raise RouterError(f"{path}: the router closed the connection")
            yield text.decode(data)


def _print_routes(path: Path, message: dict[str, Any]) -> dict[str, Any]:
    """Print the routes of an answer as a JSON list, as they arrive; returns the rest of it."""
    broken = RouterError(f"{path}: the answer is not a router's")
    routes = StreamedList(_pieces(path, message), "routes", broken)
    printed = False
    for route in routes:
        print(",\n" if printed else "[\n", _indented(route), sep="", end="")
        printed = True
    answer = {**routes.head, **routes.rest}
    if answer.get("ok"):
        print("\n]" if printed else "[]")
    if answer.get("truncated"):
        complain("waggle router routes", "there are more routes: --limit has cut the list")
    return answer


def _indented(route: dict[str, Any]) -> str:
    """Encode a route with two levels of indentation; faster than the indentation of `json`."""
    members = [f'    "{name}": {_member(value)}' for name, value in route.items()]
    return "  {\n" + ",\n".join(members) + "\n  }"


def _member(value: object) -> str:
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if not isinstance(value, list) or not value:
        return "null" if value is None else json.dumps(value)
    return "[\n" + ",\n".join(f"      {_member(one)}" for one in value) + "\n    ]"


def _table_and_prefix(first: str | None, second: str | None) -> tuple[str, str | None]:
    """Read the arguments of ``routes``, each of which may be absent. Raises ValueError."""
    if first is None or first in TABLES:
        return first or TABLES[0], second
    if second is None and any(mark in first for mark in ".:/"):
        return TABLES[0], first
    close = difflib.get_close_matches(first, TABLES, n=1)
    hint = f"did you mean {close[0]}?" if close else f"one of {', '.join(TABLES)}"
    raise ValueError(f"there is no table {first!r} ({hint})")


def run(action: str, path: Path, args: argparse.Namespace) -> int:
    """Perform one action; returns the exit status."""
    message: dict[str, Any] = {"op": action}
    if action in ("announce", "withdraw"):
        message["prefixes"] = args.prefixes
    if action == "announce":
        message["nextHop"] = args.next_hop
        message["med"] = args.med
        message["localPreference"] = args.local_preference
        message["communities"] = args.communities
        message["largeCommunities"] = args.large_communities
    if action in ("refresh", "reset", "shutdown", "enable"):
        message["peer"] = args.peer
    if action in ("reset", "shutdown"):
        message["message"] = args.message
    if action == "refresh":
        message["family"] = args.family
    try:
        if action == "routes":
            message["table"], message["prefix"] = _table_and_prefix(args.table, args.prefix)
            for key in ("family", "peer", "limit"):
                message[key] = getattr(args, key)
            answer = _print_routes(path, message)
        else:
            answer = request(path, message)
    except ValueError as error:
        complain(f"waggle router {action}", f"{error}; see waggle router {action} --help")
        return EXIT_USAGE
    except RouterError as error:
        complain(f"waggle router {action}", str(error))
        return EXIT_ERROR
    if not answer.get("ok"):
        reason = answer.get("error", "the router gave no reason")
        complain(f"waggle router {action}", reason)
        return EXIT_USAGE
    absent = answer.get("absent", ())
    for prefix in absent:
        complain(f"waggle router {action}", f"{prefix}: the router does not originate it")
    if absent:
        return EXIT_NOT_FOUND
    if action in ("peers", "collectors"):
        print(json.dumps(answer[action], indent=2))
    return 0
