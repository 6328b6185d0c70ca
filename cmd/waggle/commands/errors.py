"""``waggle errors``: the meaning of a reason word, and what to do about it."""

from __future__ import annotations

import argparse
from typing import Any

from waggle import output
from waggle.output import EXIT_NOT_FOUND, EXIT_OK, EXIT_USAGE, USAGE, member
from waggle.tables import Column

COLUMNS = (
    Column("REASON", member("reason")),
    Column("OF", member("topic"), minor=3),
    Column("MEANING", member("meaning"), minor=2, beneath=True),
    Column("REMEDY", member("remedy"), minor=1, beneath=True),
)


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "errors",
        help="explain a reason word: its meaning, and what to do",
        description="Print what a reason word means, and what to do about it: REASON of waggle "
        "explain and of waggle routes kernel, reasons of conditions and Events, codes of errors. "
        "Without CODE: all of them.",
        epilog=output.exit_statuses(
            {EXIT_OK: "success", EXIT_USAGE: USAGE, EXIT_NOT_FOUND: "no such reason"},
            "example:\n  waggle errors NoLocalEndpoint",
        ),
    )
    parser.add_argument("code", nargs="?", metavar="CODE", help="a reason, in any case")
    output.add_output_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Print the entries; returns the exit status."""
    from waggle.reasons import all_reasons, named

    reasons = all_reasons() if args.code is None else named(args.code)
    items = [
        {"reason": reason.word, "topic": reason.topic, "meaning": reason.meaning}
        | ({"remedy": reason.remedy} if reason.remedy else {})
        for reason in reasons
    ]
    if not items:
        from resources.schema import did_you_mean

        hint = did_you_mean(args.code, {reason.word for reason in all_reasons()})
        text = f"there is no reason {args.code!r}{hint or '; waggle errors lists them'}"
        output.fail(args, "ReasonList", "NotFound", text)
        return EXIT_NOT_FOUND
    output.show(output.document("ReasonList", items), COLUMNS, args)
    return EXIT_OK
