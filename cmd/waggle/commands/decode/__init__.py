"""`waggle decode`: BGP messages as JSON objects, from hex, a pcap file or JSON lines.

For reading captures, and for independent test vectors. This module declares the command.
"""

from __future__ import annotations

import argparse

from waggle import output
from waggle.output import EXIT_OK, EXIT_USAGE, USAGE, exit_statuses

NAME = "decode"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        NAME,
        help="decode BGP messages to JSON",
        description="Decode BGP messages and print one JSON object for each: its kind, every field, "
        "and, for a malformed message, the error handling of RFC 4271 and RFC 7606. Without HEX and "
        "FILE, hex is read from standard input.",
        epilog=exit_statuses(
            {
                EXIT_OK: "success, also for malformed messages",
                EXIT_USAGE: f"{USAGE}, or unreadable input",
            }
        ),
    )
    parser.add_argument("hex", nargs="*", metavar="HEX", help="messages, markers included")
    parser.add_argument(
        "--pcap",
        metavar="FILE",
        help="a capture file (pcap, pcapng) with BGP over TCP; a connection whose OPENs are in it is "
        "decoded with the capabilities that these negotiate, others with the options",
    )
    parser.add_argument(
        "--jsonl",
        nargs="?",
        const="-",
        metavar="FILE",
        help='lines {"id", "hex", "context"} of FILE, or of standard input; the output has lines '
        '{"id", ...}. waggle docs cli describes the context',
    )
    parser.add_argument(
        "--as4",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="four-octet AS numbers are negotiated (default: yes)",
    )
    side = parser.add_mutually_exclusive_group()
    side.add_argument("--ebgp", dest="ebgp", action="store_true", default=True, help="the default")
    side.add_argument("--ibgp", dest="ebgp", action="store_false", help="the session is iBGP")
    parser.add_argument("--extended", action="store_true", help="extended messages are negotiated")
    parser.add_argument(
        "--add-path",
        action="append",
        default=[],
        metavar="FAMILY",
        help="ADD-PATH is negotiated for a family such as ipv4-unicast; may be repeated",
    )
    parser.add_argument(
        "--family",
        action="append",
        default=[],
        metavar="FAMILY",
        help="a family that is negotiated; may be repeated (default: ipv4-unicast, ipv6-unicast)",
    )
    output.add_output_flags(parser, ("jsonl", "json", "yaml", "table"), "jsonl")


def run(args: argparse.Namespace) -> int:
    """Decode and print; returns the exit status."""
    from waggle.commands.decode.program import main

    return main(args)
