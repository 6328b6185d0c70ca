"""The flag ``-f`` of commands that read manifests, and the error of input that cannot be read."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from waggle import output
from waggle.progress import expect_input

STANDARD_INPUT = "-"
PATHS = "a file or a directory tree of YAML or JSON, or - for standard input; may be repeated"
UNREADABLE = "ErrorList"
"""The kind of the answer of a command whose documents are no lists, where there is none."""


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
    paths = [path for group in args.filename or () for path in group]
    if STANDARD_INPUT in paths:
        expect_input(args)
    return paths


def complain_of_input(
    args: argparse.Namespace,
    message: str,
    code: str = "BadRequest",
    kind: str = UNREADABLE,
    items: Sequence[dict[str, Any]] = (),
) -> None:
    """Print why input has no result: a sentence, and with a format for programs a document.

    The sentence is on standard error either way: kubectl may be the reader of the document, and
    would not show it. ``items``: the part of the result that precedes the error.
    """
    if not output.is_template(args.output):  # with a template `output.dump` prints it
        output.complain(args.prog, message)
    if output.is_document(args.output):
        error = {"code": code, "message": message}
        output.dump(output.document(kind, list(items), [error]), args.output)
