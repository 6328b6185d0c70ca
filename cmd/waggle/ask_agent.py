"""Requests of the sub-commands to a running agent; `cells.api.client` sends them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from cells.api.client import (
    SOCKET_ENV,
    AgentError,
    default_socket,
    get,
    get_list,
    post,
    stream,
)
from cells.api.streamed_list import StreamedList
from waggle import output

__all__ = [
    "AgentError",
    "add_socket_flag",
    "answer",
    "default_socket",
    "post",
    "read",
    "read_list",
    "stream",
]


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


def read_list(
    program: str, kind: str, args: argparse.Namespace, path: str, query: dict[str, str | None]
) -> StreamedList | None:
    """Return the agent's answer to a GET, whose items are read as they arrive; an error as by `answer`.

    Reading the items raises `AgentError`.
    """
    socket = args.socket or default_socket()
    return answer(program, kind, args, lambda: get_list(socket, path, query))


T = TypeVar("T")


def answer(program: str, kind: str, args: argparse.Namespace, request: Callable[[], T]) -> T | None:
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
