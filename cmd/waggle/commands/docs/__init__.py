"""`waggle docs`: prints a page of the documentation, as Markdown, or lists the pages."""

from __future__ import annotations

import argparse
from pathlib import Path

from waggle import output, pages
from waggle.output import (
    EXIT_ERROR,
    EXIT_NOT_FOUND,
    EXIT_OK,
    EXIT_USAGE,
    TABLES,
    USAGE,
    complain,
    exit_statuses,
    member,
    reason_of,
)
from waggle.tables import Column

NAME = "docs"
COLUMNS = (Column("PAGE", member("name")), Column("TITLE", member("title"), minor=1, beneath=True))


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        NAME,
        help="print a page of the documentation",
        description="Print a page of the documentation as Markdown, or list the pages.",
        epilog=exit_statuses(
            {
                EXIT_OK: "success",
                EXIT_ERROR: "the pages are not installed, or DIR cannot be written",
                EXIT_USAGE: USAGE,
                EXIT_NOT_FOUND: "no page of that name",
            },
            "example:\n  waggle docs operations",
        ),
    )
    parser.add_argument(
        "page", nargs="?", metavar="NAME", help="such as router (default: list the pages)"
    )
    parser.add_argument(
        "--man",
        metavar="DIR",
        help="write the man pages of waggle and its commands, such as into "
        "/usr/local/share/man/man1",
    )
    output.add_output_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Print the page or the list; returns the exit status."""
    if args.man is not None:
        return _write_man_pages(args)
    try:
        directory = pages.folder()
        names = pages.names(directory)
        name = (args.page or "").removeprefix("docs/").removesuffix(".md")
        items = [
            {"name": page, "title": _title(directory / f"{page}.md")}
            for page in names
            if args.page in (None, page) or name == page
        ]
        if args.page is not None and items:
            items[0]["text"] = (directory / f"{name}.md").read_text()
    except OSError as error:
        complain("waggle docs", reason_of(error))
        return EXIT_ERROR
    if items:
        if args.output not in TABLES:
            output.dump(output.document("PageList", items), args.output)
        elif args.page is None:
            output.table(COLUMNS, items, args)
        else:
            print(items[0]["text"], end="")
        return EXIT_OK
    from resources.schema import did_you_mean

    hint = did_you_mean(name, names) or "; waggle docs lists the pages"
    output.fail(args, "PageList", "NotFound", f"there is no page {args.page!r}{hint}")
    return EXIT_NOT_FOUND


def _write_man_pages(args: argparse.Namespace) -> int:
    """Write the man pages; returns the exit status."""
    import importlib.metadata

    from waggle.__main__ import whole_parser
    from waggle.commands.docs.man import pages as man_pages

    if args.page is not None:
        complain("waggle docs", "--man writes all man pages: no NAME goes with it")
        return EXIT_USAGE
    directory = Path(args.man)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in man_pages(whole_parser(), importlib.metadata.version("waggle-bgp")):
            (directory / name).write_text(text)
    except OSError as error:
        complain("waggle docs", reason_of(error))
        return EXIT_ERROR
    return EXIT_OK


def _title(path: Path) -> str:
    with path.open() as page:
        return next((line.lstrip("# ").rstrip() for line in page if line.startswith("# ")), "")
