"""Refuse to start, in one sentence.

The exit status is that of wrong usage, so that nothing restarts it in the hope of better.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Sequence

from cells.arguments import EXIT_USAGE, Parser


def main(argv: Sequence[str] | None = None) -> int:
    """Explain, and return the exit status."""
    parser = Parser(
        prog="waggle-operator",
        description="The cluster-wide part of Waggle; so far it runs inside waggle-agent only.",
    )
    version = importlib.metadata.version("waggle-bgp")
    parser.add_argument("--version", action="version", version=f"waggle-operator {version}")
    parser.parse_args(argv)
    print(
        "waggle-operator: this version cannot run against a cluster; "
        "waggle-agent does the operator's work for a directory of manifests",
        file=sys.stderr,
    )
    return EXIT_USAGE


if __name__ == "__main__":
    sys.exit(main())
