"""``waggle api PATH``: the answer of one path of the agent's local API, as it is.

What ``--all-nodes`` runs in the container of each agent, and scripts where there is no curl.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from cells.api.agent_socket import default_socket
from cells.api.transport import AgentError, UnixTransport
from waggle import ask_agent, output

TIMEOUT_SECONDS = 10.0
PIECE_OCTETS = 65536


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the arguments of ``waggle api``."""
    parser = subparsers.add_parser(
        "api",
        help="print the answer of a path of the agent's local API",
        description="Send a GET to a path of the local API of a running agent, and print the answer as "
        "it is. What --all-nodes of other commands runs in each agent's container.",
        epilog=output.exit_statuses(
            {
                output.EXIT_OK: "an answer with a status below 400",
                output.EXIT_ERROR: f"an answer with another status; or {output.NO_AGENT}",
                output.EXIT_USAGE: output.USAGE,
            }
        ),
    )
    parser.add_argument("path", type=_path, metavar="PATH", help="for example /v1/peers?peer=tor-1")
    parser.add_argument(
        "-i", "--include", action="store_true", help="print the status line and the headers, too"
    )
    ask_agent.add_socket_flag(parser)


def _path(text: str) -> str:
    if not text.startswith("/") or not text.isascii() or not text.isprintable() or " " in text:
        raise argparse.ArgumentTypeError(f"not a path with an encoded query: {text!r}")
    return text


def run(args: argparse.Namespace) -> int:
    """Print the answer as it arrives; returns the exit status."""
    stream = sys.stdout.buffer
    transport = UnixTransport(args.socket or default_socket(), args.server)
    try:
        with transport.request("GET", args.path, timeout=TIMEOUT_SECONDS) as response:
            if args.include:
                # The body is not chunked here: it ends with the output.
                kind = response.getheader("Content-Type", "")
                head = (
                    f"HTTP/1.1 {response.status} {response.reason}\r\nContent-Type: {kind}\r\n\r\n"
                )
                stream.write(head.encode())
            while data := response.read1(PIECE_OCTETS):
                stream.write(data)
                stream.flush()
            return output.EXIT_OK if response.status < 400 else output.EXIT_ERROR
    except AgentError as error:
        if error.__cause__ is not None and output.is_of_output(error.__cause__):
            raise error.__cause__ from None
        output.complain(args.prog, str(error))
        return output.EXIT_ERROR
