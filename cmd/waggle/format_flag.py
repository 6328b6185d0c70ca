"""The flag ``-o``, of every command and program that prints documents; imports nothing else."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

JSONPATH = "jsonpath="
"""Before the template of a format that `waggle.jsonpath` renders."""


class Formats(tuple[str, ...]):
    """The values of ``--output``: these, and templates."""

    __slots__ = ()

    def __contains__(self, text: object) -> bool:
        """Return whether it is one of them, or a template."""
        return super().__contains__(text) or (isinstance(text, str) and text.startswith(JSONPATH))


def read_format(text: str) -> str:
    """Check a value of ``--output``, for argparse. Raises ArgumentTypeError for a template."""
    if text.startswith(JSONPATH):
        from waggle.jsonpath import InvalidTemplate, Template

        try:
            Template(text.removeprefix(JSONPATH))
        except InvalidTemplate as error:
            raise argparse.ArgumentTypeError(f"jsonpath: {error}") from None
    return text


def add_format_flag(parser: argparse.ArgumentParser, formats: Sequence[str], default: str) -> None:
    """Add ``-o`` alone."""
    parser.set_defaults(has_wide="wide" in formats)
    names = (f"{name} (all columns)" if name == "wide" else name for name in formats)
    parser.add_argument(
        "-o",
        "--output",
        type=read_format,
        choices=Formats((*formats, JSONPATH)),
        default=default,
        metavar="FORMAT",
        help=f"{', '.join(names)}, or jsonpath=TEMPLATE as of kubectl (default: %(default)s)",
    )
