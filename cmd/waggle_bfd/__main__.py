"""Runs the BFD sessions of a node, until SIGTERM."""

from __future__ import annotations

import argparse
import gc
import os
import resource
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from cells.arguments import Parser, not_negative, open_standard_streams, positive_seconds
from cells.hangup import ignore_hangups
from cells.hive.capabilities import IPC_LOCK, keep_only
from cells.unix_socket import UnixSocketError, add_listener_flags, listening
from reconcilers.bfd.process import realtime
from reconcilers.bfd.process.service import BfdService, Policy, serve
from reconcilers.process.keeper import keep
from speaker.bfd.echo_socket import open_echo_sockets

EXIT_OK, EXIT_ERROR = 0, 1

DESCRIPTION = """\
Run the BFD sessions of a node (RFC 5880) for an agent. An agent starts it, except in Kubernetes, where
it is a DaemonSet of its own.

It goes on while the agent is restarted or updated. Its sessions are continued by the next process, with
the files of --state-directory, if that starts before the neighbors' detection time has passed.
"""
EPILOG = """\
exit status:
  0  ended by SIGTERM or SIGINT, or after --alone
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
        with listening(args, "waggle-bfd") as listener:
            return _keep(listener, args)
    except (OSError, UnixSocketError) as error:
        print(f"waggle-bfd: {error}", file=sys.stderr)
        return EXIT_ERROR


def _keep(listener: socket.socket, args: argparse.Namespace) -> int:
    """Run the sessions in a child: another child continues them within a detection time."""
    # Each session has a socket of its own.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    gc.freeze()
    return keep(
        lambda: _serve(listener, args),
        "the process with the sessions",
        first_pause=0.0,
        forgotten=1.0,
    )


def _serve(listener: socket.socket, args: argparse.Namespace) -> int:
    given = realtime.enter()
    echo_sockets = open_echo_sockets()
    if os.geteuid() == 0:
        # Memory that is allocated later is locked, too.
        keep_only({IPC_LOCK})
    policy = Policy(
        round(args.least_interval * 1000),
        args.at_end,
        args.alone,
    )
    serve(
        BfdService(
            listener,
            "waggle-bfd",
            given,
            policy,
            directory=args.state_directory,
            echo_sockets=echo_sockets,
        )
    )
    return EXIT_OK


def _parser() -> Parser:
    parser = Parser(prog="waggle-bfd", description=DESCRIPTION, epilog=EPILOG)
    parser.add_version()
    add_listener_flags(parser, "a listening Unix socket that the agent made")
    parser.add_argument(
        "--state-directory",
        metavar="PATH",
        type=Path,
        help="a directory of memory, such as one in /run: the next process continues the sessions",
    )
    parser.add_argument(
        "--least-interval",
        metavar="MILLISECONDS",
        type=not_negative,
        default=300.0,
        help="to which shorter intervals are raised where the kernel gives no real-time scheduling "
        "(default: %(default)g)",
    )
    parser.add_argument(
        "--at-end",
        choices=("keep", "admin-down"),
        default="keep",
        help="keep: the next process comes before neighbors notice; admin-down: it comes later, and "
        "neighbors shall keep their BGP sessions (default: %(default)s)",
    )
    parser.add_argument(
        "--alone",
        metavar="SECONDS",
        type=positive_seconds,
        help="end all sessions and the process after this time without an agent (default: never)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
