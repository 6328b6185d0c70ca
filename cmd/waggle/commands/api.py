"""``waggle api PATH``: the answer of one path of the agent's local API, as it is or in another format.

As it is (``-o raw``) it is what ``--all-nodes`` runs in the container of each agent, and scripts where
there is no curl.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from http.client import HTTPResponse
from typing import Any, Final

from cells.api.agent_socket import default_socket
from cells.api.transport import LINES, AgentError, UnixTransport
from waggle import ask_agent, output
from waggle.endless import print_error, print_item
from waggle.tables import Column

TIMEOUT_SECONDS = 10.0
PIECE_OCTETS = 65536
RAW: Final = "raw"
KIND: Final = "ErrorList"
"""Of the document where there is no answer."""


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the arguments of ``waggle api``."""
    parser = subparsers.add_parser(
        "api",
        help="print the answer of a path of the agent's local API",
        description="Send a GET to a path of the local API of a running agent, and print the answer: "
        "as it is, or with -o in another format. An answer without an end (/v1/watch) is printed an "
        "item at a time: a line of JSON, a document of YAML. As it is the answer is what --all-nodes "
        "of other commands reads in each agent's container.",
        epilog=output.exit_statuses(
            {
                output.EXIT_OK: "an answer with a status below 400",
                output.EXIT_ERROR: f"an answer with another status, or without such a form; or "
                f"{output.NO_AGENT}",
                output.EXIT_USAGE: output.USAGE,
            },
            "examples:\n  waggle api '/v1/peers?peer=tor-1' -o yaml\n"
            "  waggle api /v1/process -o jsonpath='{.items[0].pid}'",
        ),
    )
    parser.add_argument("path", type=_path, metavar="PATH", help="for example /v1/peers?peer=tor-1")
    parser.add_argument(
        "-i", "--include", action="store_true", help="print the status line and the headers, too"
    )
    ask_agent.add_socket_flag(parser)
    output.add_output_flags(parser, (RAW, "table", "json", "jsonl", "yaml"), RAW, ends=False)


def _path(text: str) -> str:
    if not text.startswith("/") or not text.isascii() or not text.isprintable() or " " in text:
        raise argparse.ArgumentTypeError(f"not a path with an encoded query: {text!r}")
    return text


def run(args: argparse.Namespace) -> int:
    """Print the answer as it arrives; returns the exit status."""
    if args.include and args.output != RAW:
        output.complain(args.prog, f"--include: with -o {RAW} only")
        return output.EXIT_USAGE
    transport = UnixTransport(args.socket or default_socket(), args.server)
    args.has_requested = True
    is_endless = False
    try:
        with transport.request("GET", args.path, timeout=TIMEOUT_SECONDS) as response:
            is_endless = _media_type(response) == LINES
            if args.output == RAW:
                _copy(response, include=args.include)
            elif is_endless:
                return _print_lines(response, args)
            else:
                _print(response, args)
            return output.EXIT_OK if response.status < 400 else output.EXIT_ERROR
    except AgentError as error:
        if error.__cause__ is not None and output.is_of_output(error.__cause__):
            raise error.__cause__ from None
        if not output.is_document(args.output):
            output.complain(args.prog, str(error))
        elif is_endless:
            print_error(error.code, str(error), args.output)
        else:
            item = {"code": error.code, "message": str(error)}
            output.dump(output.document(KIND, [], [item]), args.output)
        return output.EXIT_ERROR


def _media_type(response: HTTPResponse) -> str:
    return response.getheader("Content-Type", "").partition(";")[0]


def _copy(response: HTTPResponse, *, include: bool) -> None:
    """Print the octets of an answer as they arrive."""
    stream = sys.stdout.buffer
    if include:
        # The body is not chunked here: it ends with the output.
        kind = response.getheader("Content-Type", "")
        head = f"HTTP/1.1 {response.status} {response.reason}\r\nContent-Type: {kind}\r\n\r\n"
        stream.write(head.encode())
    last = b""
    while data := response.read1(PIECE_OCTETS):
        stream.write(data)
        stream.flush()
        last = data
    if last[-1:] not in (b"", b"\n") and sys.stdout.isatty():
        # The prompt of a shell needs a line of its own.
        stream.write(b"\n")
        stream.flush()


def _print_lines(response: HTTPResponse, args: argparse.Namespace) -> int:
    """Print the items of an answer without an end; returns the exit status. Raises `AgentError`."""
    if args.output == "table":
        raise AgentError("BadAnswer", f"{args.path}: the answer has no end: -o json prints it")
    status = output.EXIT_OK
    while line := response.readline():
        item = json.loads(line)
        print_item(item, args.output)
        if "errors" in item:
            status = output.EXIT_ERROR
    return status


def _print(response: HTTPResponse, args: argparse.Namespace) -> None:
    """Print an answer in the form of ``--output``. Raises `AgentError` for an answer without it."""
    try:
        answer = json.loads(response.read())
    except ValueError:
        raise _without_form(response, args.path) from None
    is_list = isinstance(answer, dict) and isinstance(answer.get("items"), list)
    if args.output == "table":
        _print_table(answer if is_list else {"items": answer}, args)
    elif is_list:
        output.dump(answer, args.output)
    else:
        output.dump_value(answer, args.output)


def _without_form(response: HTTPResponse, path: str) -> AgentError:
    """Return the error of an answer that is not JSON: an unknown path, a page, a file."""
    if response.status == 404:
        return AgentError("NotFound", f"{path}: the agent has no such path")
    kind = _media_type(response) or "not JSON"
    return AgentError("BadAnswer", f"{path}: the answer is {kind}: -o {RAW} prints it")


def _print_table(answer: dict[str, Any], args: argparse.Namespace) -> None:
    items = answer["items"]
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise AgentError("BadAnswer", f"{args.path}: the answer is no list: -o json prints it")
    if items:
        output.table(_columns(items), items, args)
    sentences = [error["message"] for error in answer.get("errors", ())]
    if not items and not sentences:
        sentences = [*answer.get("notes", ())] or ["an empty list"]
    for sentence in sentences:
        output.complain(args.prog, sentence)


def _columns(items: Sequence[dict[str, Any]]) -> list[Column]:
    """Return a column for each member of the items, in the order of the answer."""
    names = list(dict.fromkeys(name for item in items for name in item))
    # The last columns make room first; the first column stays.
    return [
        _column(name, items, minor=len(names) - at if at else 0) for at, name in enumerate(names)
    ]


def _column(name: str, items: Sequence[dict[str, Any]], minor: int) -> Column:
    title = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).upper()
    are_numbers = all(type(item[name]) in (int, float) for item in items if name in item)
    return Column(
        title, lambda item: _cell(item.get(name)), right=are_numbers, minor=minor, beneath=minor > 0
    )


def _cell(value: object) -> str:
    """Return a member of an item as text: lists of texts with commas, other parts as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ",".join(value)
    return output.safe_json(value)
