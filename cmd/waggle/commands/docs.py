"""`waggle docs`: prints a page of the documentation, as Markdown, or lists the pages."""

from __future__ import annotations

import argparse
from pathlib import Path

from waggle import pages
from waggle.output import (
    EXIT_ERROR,
    EXIT_NOT_FOUND,
    EXIT_OK,
    EXIT_USAGE,
    USAGE,
    complain,
    exit_statuses,
    reason_of,
)

NAME = "docs"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        NAME,
        help="print a page of the documentation",
        description="Print a page of the documentation as Markdown, or list the pages.",
        epilog=exit_statuses(
            {
                EXIT_OK: "success",
                EXIT_ERROR: "the pages are not installed",
                EXIT_USAGE: USAGE,
                EXIT_NOT_FOUND: "no page of that name",
            },
            "example:\n  waggle docs operations | less",
        ),
    )
    parser.add_argument(
        "page", nargs="?", metavar="NAME", help="such as router (default: list the pages)"
    )


def run(args: argparse.Namespace) -> int:
    """Print the page or the list; returns the exit status."""
    try:
        directory = pages.folder()
        names = pages.names(directory)
        name = (args.page or "").removeprefix("docs/").removesuffix(".md")
        if args.page is None:
            width = max(map(len, names))
            text = "".join(
                f"{name:{width}}  {_title(directory / f'{name}.md')}\n" for name in names
            )
        else:
            text = (directory / f"{name}.md").read_text() if name in names else ""
    except OSError as error:
        complain("waggle docs", reason_of(error))
        return EXIT_ERROR
    if text:
        print(text, end="")
        return EXIT_OK
    from resources.schema import did_you_mean

    hint = did_you_mean(name, names) or "; waggle docs lists the pages"
    complain("waggle docs", f"there is no page {args.page!r}{hint}")
    return EXIT_NOT_FOUND


def _title(path: Path) -> str:
    with path.open() as page:
        return next((line.lstrip("# ").rstrip() for line in page if line.startswith("# ")), "")
