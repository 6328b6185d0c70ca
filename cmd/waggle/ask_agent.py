"""Requests of the sub-commands to a running agent; `cells.api.client` sends them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cells.api.client import SOCKET_ENV, AgentError, default_socket, get, post, stream
from waggle import output

__all__ = ["AgentError", "add_socket_flag", "answer", "default_socket", "post", "read", "stream"]


def add_socket_flag(parser: argparse.ArgumentParser) -> None:
    """Add ``--socket``."""
    parser.add_argument(
        "--socket",
        metavar="PATH",
        type=Path,
        help=f"the agent's socket [{SOCKET_ENV}; default {default_socket()}]".replace("%", "%%"),
    )


def read(
    program: str, kind: str, args: argparse.Namespace, path: str, query: dict[str, str | None]
) -> dict[str, Any] | None:
    """Return the agent's answer to a GET; an error is printed as by `answer`."""
    socket = args.socket or default_socket()
    return answer(program, kind, args, lambda: get(socket, path, query))


def answer(
    program: str, kind: str, args: argparse.Namespace, request: Callable[[], dict[str, Any]]
) -> dict[str, Any] | None:
    """Return the answer to a request; print an error in the form of ``--output`` and return None."""
    try:
        return request()
    except AgentError as error:
        if args.output in ("table", "wide"):
            output.complain(f"waggle {program}", str(error))
        else:
            failure = {"code": error.code, "message": str(error)}
            output.dump(output.document(kind, [], [failure]), args.output)
        return None
