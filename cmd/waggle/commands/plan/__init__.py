"""``waggle plan``: what a change of the manifests does on each node, before it is made."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from waggle import ask_agent, output
from waggle.dialects import Dialects
from waggle.fleet.flags import add_cluster_flags
from waggle.intent_flags import add_intent_flags, add_option_flags
from waggle.manifest_flag import PATHS, add_manifest_flag
from waggle.output import EXIT_NOT_FOUND, EXIT_OK, exit_statuses

if TYPE_CHECKING:
    from reconcilers.plan import MaxWithdraw

FORMATS = ("table", "json", "yaml", "markdown")
EXIT_CHANGES = 1
EXIT_PROBLEMS = 2


def add_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser], dialects: Dialects
) -> None:
    """Declare the command and its arguments."""
    from reconcilers.bfd.options import BfdOptions
    from reconcilers.kernel.options import FibOptions

    parser = subparsers.add_parser(
        "plan",
        help="show what a change of the manifests does on each node",
        description="Compare manifests with others, with a cluster, or with what a running agent does: "
        "the sessions that come, go or are reset, and why; the routes that each peer is sent, or no "
        "longer; the problems of objects. Nodes with the same plan are one.",
        epilog=exit_statuses(
            {
                EXIT_OK: "no change",
                EXIT_CHANGES: "changes",
                EXIT_PROBLEMS: "new problems, a limit is exceeded (--max-withdraw, --no-reset), wrong "
                "usage, unreadable input, or no agent",
                EXIT_NOT_FOUND: "no Node of that name",
            }
        ),
    )
    add_manifest_flag(parser, description=f"the manifests after the change: {PATHS}")
    before = parser.add_mutually_exclusive_group()
    before.add_argument(
        "--from",
        dest="present",
        action="append",
        metavar="PATH",
        nargs="+",
        help="the manifests before the change, as of -f (default: what the agent does now)",
    )
    before.add_argument(
        "--from-cluster",
        action="store_true",
        help="the objects of a cluster before the change, on top of which -f is applied, as kubectl "
        "apply does",
    )
    parser.add_argument(
        "--prune",
        action="store_true",
        help="with --from-cluster: custom resources that -f does not have are deleted",
    )
    parser.add_argument(
        "--add",
        action="store_true",
        help="-f is applied on top of --from, as kubectl apply does; otherwise it is in its place",
    )
    nodes = parser.add_mutually_exclusive_group()
    nodes.add_argument(
        "--node", action="append", default=[], metavar="NAME", help="this node; may be repeated"
    )
    nodes.add_argument("--all-nodes", action="store_true", help="all Nodes (the default)")
    parser.add_argument(
        "--received",
        metavar="FILE",
        nargs="?",
        const="",
        help="the plan has the changes in the kernel, too, if the peers of the one --node announce the "
        "routes of this file (JSON); against a running agent without FILE: the routes that its peers "
        "announce",
    )
    parser.add_argument(
        "--max-withdraw",
        type=_max_withdraw,
        metavar="N|N%",
        help="exit 2 if more routes would be withdrawn, in all or as a part of all".replace(
            "%", "%%"
        ),
    )
    parser.add_argument(
        "--no-reset",
        action="store_true",
        help="exit 2 if a session would end: by a reset, or as its peer is replaced, stopped or "
        "removed",
    )
    ask_agent.add_socket_flag(parser)
    add_cluster_flags(parser)
    output.add_output_flags(parser, FORMATS, headers=False)
    add_intent_flags(parser, dialects)
    add_option_flags(parser, "kernel", FibOptions)
    add_option_flags(parser, "bfd", BfdOptions, ("bfd",))
    parser.set_defaults(dialects=dialects)


def _max_withdraw(text: str) -> MaxWithdraw:
    from reconcilers.plan.fleet_plan import MaxWithdraw

    try:
        return MaxWithdraw.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(args: argparse.Namespace) -> int:
    """Compile and print; returns the exit status."""
    from waggle.commands.plan.program import run_plan

    return run_plan(args)
