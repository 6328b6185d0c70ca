"""The flag ``-f`` of commands that read manifests."""

from __future__ import annotations

import argparse

PATHS = "a file or a directory tree of YAML or JSON, or - for standard input; may be repeated"


def add_manifest_flag(
    parser: argparse._ActionsContainer,
    *,
    required: bool = True,
    description: str = PATHS,
) -> None:
    """Add the flag, which takes several paths and may be repeated."""
    parser.add_argument(
        "-f",
        "--filename",
        action="append",
        required=required,
        metavar="PATH",
        nargs="+",
        help=description,
    )


def manifest_paths(args: argparse.Namespace) -> list[str]:
    """Return the paths in the order in which they are given; none without the flag."""
    return [path for group in args.filename or () for path in group]
