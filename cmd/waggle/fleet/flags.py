"""The flags of commands that can read from the agents of all nodes."""

from __future__ import annotations

import argparse
import os
from typing import Final

from cells.arguments import positive_seconds

NAMESPACE: Final = "waggle-system"
ANSWER_SECONDS: Final = 10.0


def add_fleet_flags(parser: argparse.ArgumentParser, *, node_flag: bool = True) -> None:
    """Add ``--all-nodes`` and what goes with it; ``node_flag`` False where ``--node`` is there."""
    group = parser.add_argument_group(
        "a whole cluster", "by the API server, with the rights of a kubeconfig (pods/exec)"
    )
    group.add_argument(
        "--all-nodes", action="store_true", help="read from the agents of all nodes, in parallel"
    )
    if node_flag:
        group.add_argument(
            "--node",
            action="append",
            metavar="NAME",
            help="read from the agent of this node; may be repeated",
        )
    group.add_argument(
        "--from-statuses",
        action="store_true",
        help="read from no agent: show the sessions in the status objects of the API server, and the "
        "routes that nodes are to advertise by its other objects",
    )
    group.add_argument(
        "-n",
        "--namespace",
        metavar="NAME",
        default=NAMESPACE,
        help="the namespace of the agents' Pods (default: %(default)s)",
    )
    add_cluster_flags(group)
    group.add_argument(
        "--timeout",
        type=positive_seconds,
        metavar="SECONDS",
        default=ANSWER_SECONDS,
        help="the time that each agent has for its answer (default: %(default)g)",
    )


def add_cluster_flags(parser: argparse._ActionsContainer) -> None:
    """Add the flags that choose an API server."""
    parser.add_argument(
        "--kubeconfig",
        metavar="FILE",
        help="kubeconfig of the cluster [KUBECONFIG; default ~/.kube/config]",
    )
    parser.add_argument(
        "--context", metavar="NAME", help="context of the kubeconfig (default: its current one)"
    )


def asks_cluster(args: argparse.Namespace) -> bool:
    """Return whether the flags, or the name ``kubectl waggle``, select agents of a cluster."""
    if not hasattr(args, "all_nodes"):
        return False  # of waggle router
    is_given = args.all_nodes or args.from_statuses or bool(args.node)
    return is_given or (getattr(args, "plugin", False) and args.socket is None)


def default_kubeconfig() -> str:
    """Return the kubeconfig that kubectl would use."""
    return os.environ.get("KUBECONFIG") or os.path.expanduser("~/.kube/config")  # noqa: PTH111


def usage_error(args: argparse.Namespace) -> str | None:
    """Return what contradicts the flags of a cluster; None if nothing does."""
    if args.socket is not None:
        return (
            "--socket is of one agent on this host: not with --all-nodes, --node, --from-statuses"
        )
    return None
