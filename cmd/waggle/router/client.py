"""Actions on a running router: one request over its socket, the answer on standard output."""

from __future__ import annotations

import argparse
import codecs
import json
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from cells.api.streamed_list import StreamedList
from waggle.output import EXIT_ERROR, EXIT_USAGE, complain

TIMEOUT = 30.0
"""Seconds without an octet of the answer."""
RECEIVE_OCTETS: Final = 65536


def request(path: Path, message: dict[str, Any]) -> dict[str, Any]:
    """Send one request and return the answer. Raises OSError."""
    answer: dict[str, Any] = json.loads("".join(_pieces(path, message)))
    return answer


def _pieces(path: Path, message: dict[str, Any]) -> Iterator[str]:
    """Send one request and yield the answer in pieces, as they arrive. Raises OSError."""
    text = codecs.getincrementaldecoder("utf-8")()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(TIMEOUT)
        sock.connect(str(path))
        sock.sendall(json.dumps(message).encode() + b"\n")
        data = b""
        while not data.endswith(b"\n"):
            data = sock.recv(RECEIVE_OCTETS)
            if not data:
                raise ConnectionError("the router closed the connection")
            yield text.decode(data)


def _print_routes(pieces: Iterable[str]) -> dict[str, Any]:
    """Print the routes of an answer as a JSON list, as they arrive; returns the rest of it."""
    routes = StreamedList(pieces, "routes", ConnectionError("the answer is not a router's"))
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
    return "\n".join("  " + line for line in json.dumps(route, indent=2).splitlines())


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
            for key in ("table", "prefix", "family", "peer", "limit"):
                message[key] = getattr(args, key)
            answer = _print_routes(_pieces(path, message))
        else:
            answer = request(path, message)
    except OSError as error:
        hint = "no router runs here, see --socket"
        complain(f"waggle router {action}", f"{path}: {error.strerror or error}; {hint}")
        return EXIT_ERROR
    if not answer.get("ok"):
        reason = answer.get("error", "the router gave no reason")
        complain(f"waggle router {action}", reason)
        return EXIT_USAGE
    if action in ("peers", "collectors"):
        print(json.dumps(answer[action], indent=2))
    return 0
