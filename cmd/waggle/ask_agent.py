"""Requests of the sub-commands to a running agent or router; a `cells.api.client.Client` sends them."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from cells.api.agent_socket import SOCKET_ENV, default_path, default_socket
from cells.api.client import AgentError, Client, at_socket
from cells.api.streamed_list import StreamedList
from waggle import output
from waggle.progress import progress_of

__all__ = [
    "AgentError",
    "act",
    "add_socket_flag",
    "answer",
    "client",
    "listens_on_socket",
    "of_cell",
    "read",
    "read_list",
]


def add_socket_flag(parser: argparse.ArgumentParser) -> None:
    """Add ``--socket`` of an agent."""
    listens_on_socket(parser, "agent")
    parser.add_argument(
        "--socket",
        metavar="PATH",
        type=Path,
        help=f"the agent's socket [{SOCKET_ENV}; default {default_path()}]".replace("%", "%%"),
    )


def listens_on_socket(parser: argparse.ArgumentParser, program: str) -> None:
    """Note for errors which program listens on the socket, and the name of the command."""
    parser.set_defaults(server=program, prog=parser.prog)


def read(
    args: argparse.Namespace, kind: str, path: str, query: dict[str, str | None], off: str = ""
) -> dict[str, Any] | None:
    """Return the answer to a GET; an error is printed as by `answer`.

    ``off``: the sentence for an agent whose cell with that path is off, as by `of_cell`.
    """

    def request(agent: Client) -> dict[str, Any]:
        return agent.get(path, query)

    return answer(args, kind, lambda: of_cell(args, request, off) if off else request(client(args)))


def read_list(
    args: argparse.Namespace, kind: str, path: str, query: dict[str, str | None]
) -> StreamedList | None:
    """Return the answer to a GET, whose items are read as they arrive; an error as by `answer`.

    Reading the items raises `AgentError`.
    """
    return answer(args, kind, lambda: client(args).get_list(path, query))


def act(
    args: argparse.Namespace, kind: str, path: str, body: dict[str, Any] | None = None
) -> dict[str, Any] | None:
    """Return the answer to a POST; an error is printed as by `answer`."""
    return answer(args, kind, lambda: client(args).post(path, body))


def client(args: argparse.Namespace) -> Client:
    """Return the client of the program that the flags name."""
    args.has_requested = True  # an error of a command may now be that of an answer
    return at_socket(args.socket or default_socket(), args.server)


T = TypeVar("T")


def unknown_peer(args: argparse.Namespace) -> str | None:
    """Return the sentence about the peer or instance of the flags, which has no session.

    None for an instance of the agent that has no peers.
    """

    def is_instance() -> bool:
        with contextlib.suppress(AgentError):
            return has_instance(client(args), args.instance)
        return False

    return unknown_among(args.peer, args.instance, _peers(args), is_instance)


def has_instance(agent: Client, instance: str) -> bool:
    """Return whether an agent or router has an instance, with peers or without. Raises `AgentError`."""
    # Routes of an unknown instance are an error; one of them is enough of the others.
    return not agent.get("/v1/routes", {"instance": instance, "limit": "1"}).get("errors")


def _peers(args: argparse.Namespace) -> list[dict[str, Any]]:
    with contextlib.suppress(AgentError):
        items: list[dict[str, Any]] = client(args).get("/v1/peers", {})["items"]
        return items
    return []


def unknown_among(
    peer: str | None,
    instance: str | None,
    peers: Iterable[Mapping[str, Any]],
    is_instance: Callable[[], bool],
) -> str | None:
    """Return the sentence about a peer or instance that is not among some, with the nearest name.

    ``is_instance``: whether the instance exists, called if none of the peers is of it. None if it
    does, and no peer is named.
    """
    from cells.hive import unknown_name

    items = list(peers)
    instances = {item["instance"] for item in items}
    if instance is not None and instance not in instances and not is_instance():
        return unknown_name("instance", instance, instances)
    return None if peer is None else unknown_peer_among(peer, instance, items)


def unknown_peer_among(peer: str, instance: str | None, items: Sequence[Mapping[str, Any]]) -> str:
    """Return the sentence about a peer that is not among some, with the nearest name."""
    from cells.hive import unknown_name

    own = [item for item in items if instance in (None, item["instance"])]
    names = {item["name"] for item in own} | {item.get("address") for item in own}
    return unknown_name("peer", peer, names, instance)


def nearest(args: argparse.Namespace, name: str) -> str:
    """Return " (did you mean X?)" with a peer or instance of the agent, or an empty text."""
    from cells.hive import suggestion

    known: set[str] = set()
    for item in _peers(args):
        known |= {item["name"], item["instance"], item.get("address") or ""}
    return suggestion(name, filter(None, known))


def of_cell(args: argparse.Namespace, request: Callable[[Client], T], off: str) -> T:
    """Return the answer of a path of one cell. Raises `AgentError`, with ``off`` if the cell is off."""
    agent = client(args)
    try:
        return request(agent)
    except AgentError as error:
        if error.code != "BadAnswer":  # that of an unknown path
            raise
    agent.get("/v1/status", {})  # raises if the program is no agent
    raise AgentError("NotEnabled", off)


def answer(args: argparse.Namespace, kind: str, request: Callable[[], T]) -> T | None:
    """Return the answer to a request; print an error in the form of ``--output`` and return None."""
    progress_of(args).set_step(f"waits for the {args.server}")
    try:
        return request()
    except AgentError as error:
        output.fail(args, kind, error.code, str(error))
        return None
