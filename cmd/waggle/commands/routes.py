"""``waggle routes``: the routes of a running agent: by table, of BGP or of the kernel."""

from __future__ import annotations

import argparse
from typing import Any

from waggle import ask_agent, kernel_routes, output, route_list
from waggle.fleet.flags import add_fleet_flags
from waggle.route_columns import TABLES

TABLE_NOTES = """\
tables:
  advertised  Adj-RIB-Out: the routes that each peer has received from the agent
  received    Adj-RIB-In: the routes of each peer, accepted or not
  available   Loc-RIB and route sets: all paths that the agent selects from
  kernel      the routes that the agent installs in the kernel (--fib)

examples:
  waggle routes received ipv6 --peer tor-1
  waggle routes 198.51.100.0/24
  waggle routes received 198.51.100.10
  waggle routes received --limit 100
  waggle routes received --within 10.0.0.0/8 --as-path _64512_ --count"""


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the arguments of ``waggle routes``."""
    parser = subparsers.add_parser(
        "routes",
        help="list routes: advertised, received, available, or in the kernel",
        description="List the routes of a running agent: all of a table, or of one prefix, or the "
        "longest match of an address.",
        epilog=output.exit_statuses(
            {
                output.EXIT_OK: "success",
                output.EXIT_ERROR: output.NO_AGENT,
                output.EXIT_USAGE: output.USAGE,
                output.EXIT_INCOMPLETE: output.INCOMPLETE,
                output.EXIT_NOT_FOUND: "no such peer, instance or node, or no route of PREFIX or "
                "ADDRESS",
                output.EXIT_INTERRUPTED: output.WATCH_ENDS,
            },
            TABLE_NOTES,
        ),
    )
    route_list.add_arguments(
        parser,
        "advertised",
        (*TABLES, kernel_routes.TABLE),
        peer_by="name, address or object",
    )
    parser.add_argument("--instance", metavar="I", help="only this instance")
    parser.add_argument(
        "--approve",
        action="store_true",
        help="with kernel: install the routes that were removed as the node did not reach its "
        "cluster with them",
    )
    ask_agent.add_socket_flag(parser)
    add_fleet_flags(parser)
    output.add_output_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Print the routes; returns the exit status."""
    return route_list.run(args)
