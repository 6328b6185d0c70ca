"""`waggle demo`: an agent and a router on loopback, and what the router learns, live.

Two processes of their own, as in life: `waggle-agent` on a directory of manifests, and
`waggle router` with the peer that those manifests name. This module only declares the command; the
work is in `waggle.demo.program`, so that ``waggle --help`` stays quick.
"""

from __future__ import annotations

import argparse
from pathlib import Path

NAME = "demo"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its flags."""
    parser = subparsers.add_parser(
        NAME,
        help="an agent and a router on loopback, live",
        description="Starts an agent on a directory of manifests and a router on another loopback "
        "address, and shows what the router learns. Ctrl-C ends both.",
    )
    parser.add_argument(
        "--manifests",
        type=Path,
        default=Path("examples/quickstart"),
        metavar="DIR",
        help="the agent's manifests (default: %(default)s)",
    )
    parser.add_argument(
        "--router",
        type=Path,
        default=Path("examples/router.yaml"),
        metavar="FILE",
        help="the router's configuration (default: %(default)s)",
    )
    parser.add_argument(
        "--node", default="node-1", metavar="NAME", help="the agent's node (default: %(default)s)"
    )
    parser.add_argument(
        "--once",
        action="store_true",
        help="exit 0 as soon as the router holds exactly what `waggle render` promises, "
        "1 when it does not in time",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="how long --once waits (default: %(default)g)",
    )
    parser.add_argument(
        "--screenshot",
        type=Path,
        metavar="FILE",
        help="with --once: write the table as an SVG picture",
    )


def run(args: argparse.Namespace) -> int:
    """Run the demo; the exit status."""
    from waggle.demo.program import main

    return main(args)
