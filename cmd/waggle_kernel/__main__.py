"""Run the writer of kernel routes until SIGTERM, or until its agent has ended."""

from __future__ import annotations

import argparse
import gc
import signal
import socket
import sys
from collections.abc import Sequence

from cells.arguments import Parser, open_standard_streams, positive_seconds
from cells.hangup import ignore_hangups
from cells.unix_socket import UnixSocketError, add_listener_flags, listening
from reconcilers.kernel.writer.service import VERIFY_SECONDS, Service
from reconcilers.process.keeper import keep

EXIT_OK, EXIT_ERROR = 0, 1

DESCRIPTION = """\
Write routes into the kernel for an agent. It is the only program of Waggle that needs the capability
NET_ADMIN. An agent starts it, except in Kubernetes, where it is a container of the agent's Pod.

When it ends routes stay, and the next one adopts them.
"""
EPILOG = """\
exit status:
  0  ended by SIGTERM or SIGINT, or as its agent has ended
  1  cannot start
  2  wrong usage

SIGHUP is ignored: no file is read again.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit status."""
    open_standard_streams()
    ignore_hangups()
    args = _parser().parse_args(argv)
    try:
        with listening(args, "waggle-kernel") as listener:
            if args.listener is None:
                return _serve(listener, args, child=False)
            # What was imported is shared by all writers that it starts.
            gc.freeze()
            return keep(lambda: _serve(listener, args, child=True), "the writer")
    except (OSError, UnixSocketError) as error:
        print(f"waggle-kernel: {error}", file=sys.stderr)
        return EXIT_ERROR


def _serve(listener: socket.socket, args: argparse.Namespace, *, child: bool) -> int:
    service = Service(
        listener,
        "waggle-kernel",
        objects=args.nexthop_objects == "auto",
        lifeline=sys.stdin.fileno() if child else None,
        verify_seconds=args.verify_interval,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: service.end())
    service.run()
    return EXIT_OK


def _parser() -> Parser:
    parser = Parser(prog="waggle-kernel", description=DESCRIPTION, epilog=EPILOG)
    parser.add_version()
    add_listener_flags(
        parser,
        "a listening Unix socket that the agent made; ends when the standard input does",
    )
    parser.add_argument(
        "--nexthop-objects",
        choices=("auto", "never"),
        default="auto",
        help="never: routes carry their next hops, as with kernels before 5.3 (default: auto)",
    )
    parser.add_argument(
        "--verify-interval",
        metavar="SECONDS",
        type=positive_seconds,
        default=VERIFY_SECONDS,
        help="from the reading of one table to that of the next one (default: %(default)g)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
