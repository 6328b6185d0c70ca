"""The actions on a running router: one request over its socket, the answer on standard output."""

from __future__ import annotations

import argparse
import json
import socket
import sys
from pathlib import Path
from typing import Any

TIMEOUT = 30.0


def ask(path: Path, request: dict[str, Any]) -> dict[str, Any]:
    """Send one request and return the answer. Raises OSError."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(TIMEOUT)
        sock.connect(str(path))
        sock.sendall(json.dumps(request).encode() + b"\n")
        with sock.makefile("rb") as file:
            line = file.readline()
    if not line:
        raise ConnectionError("the router closed the connection")
    answer: dict[str, Any] = json.loads(line)
    return answer


def run(action: str, path: Path, args: argparse.Namespace) -> int:
    """Do one action; the exit status."""
    request: dict[str, Any] = {"op": action}
    if action in ("announce", "withdraw"):
        request["prefixes"] = args.prefixes
    if action == "announce":
        request["nextHop"] = args.next_hop
        request["med"] = args.med
        request["localPreference"] = args.local_preference
        request["communities"] = args.communities
        request["largeCommunities"] = args.large_communities
    if action in ("refresh", "reset", "shutdown", "enable"):
        request["peer"] = args.peer
    if action in ("reset", "shutdown"):
        request["message"] = args.message
    if action == "refresh":
        request["family"] = args.family
    if action == "routes":
        request["table"] = args.table
        request["peer"] = args.peer
    try:
        answer = ask(path, request)
    except OSError as error:
        print(f"{path}: {error.strerror or error}", file=sys.stderr)
        return 1
    if not answer.get("ok"):
        print(answer.get("error", "the router gave no reason"), file=sys.stderr)
        return 2
    if action in ("peers", "collectors", "routes"):
        print(json.dumps(answer[action], indent=2))
    return 0
