"""Actions on a running router: one request over its socket, the answer on standard output."""

from __future__ import annotations

import argparse
import json
import socket
import sys
from pathlib import Path
from typing import Any

TIMEOUT = 30.0


def request(path: Path, message: dict[str, Any]) -> dict[str, Any]:
    """Send one request and return the answer. Raises OSError."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(TIMEOUT)
        sock.connect(str(path))
        sock.sendall(json.dumps(message).encode() + b"\n")
        with sock.makefile("rb") as file:
            line = file.readline()
    if not line:
        raise ConnectionError("the router closed the connection")
    answer: dict[str, Any] = json.loads(line)
    return answer


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
    if action == "routes":
        message["table"] = args.table
        message["peer"] = args.peer
    try:
        answer = request(path, message)
    except OSError as error:
        print(f"{path}: {error.strerror or error}", file=sys.stderr)
        return 1
    if not answer.get("ok"):
        print(answer.get("error", "the router gave no reason"), file=sys.stderr)
        return 2
    if action in ("peers", "collectors", "routes"):
        print(json.dumps(answer[action], indent=2))
    return 0
