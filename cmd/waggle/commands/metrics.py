"""``waggle metrics``: the metrics of a running agent on a terminal, as a scrape has them."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable, Iterator
from typing import Any

from resources.pages import reference
from waggle import ask_agent, output
from waggle.output import EXIT_ERROR, EXIT_NOT_FOUND, EXIT_OK, NO_AGENT, exit_statuses
from waggle.tables import Column

Json = dict[str, Any]
OFF = "the agent runs without metrics (--disable-cell metrics)"


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "metrics",
        help="print the metrics of the agent",
        description="Print the metrics of a running agent, as Prometheus scrapes them: a line for "
        f"each sample. {reference('metrics')} describes them. "
        "-o wide and JSON have the buckets of histograms.",
        epilog=exit_statuses(
            {
                EXIT_OK: "success",
                EXIT_ERROR: f"{NO_AGENT}, or it runs without metrics",
                output.EXIT_USAGE: output.USAGE,
                EXIT_NOT_FOUND: "no metric has this in its name",
            }
        ),
    )
    parser.add_argument(
        "name", metavar="NAME", nargs="?", default="", help="a name, or a part of it: session_up"
    )
    ask_agent.add_socket_flag(parser)
    output.add_output_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Print the samples; returns the exit status."""
    answer = ask_agent.answer(args, "MetricList", lambda: _ask(args, args.name))
    if answer is None:
        return EXIT_ERROR
    if args.name and not answer["items"]:
        names = {item["name"] for item in _ask(args, "")["items"]}
        text = f"no metric has {args.name!r} in its name{_nearest(args.name, names)}"
        answer["errors"] = [{"code": "NotFound", "message": text}]
        if args.output in output.TABLES:
            output.complain("waggle metrics", text)
        else:
            output.dump(answer, args.output)
        return EXIT_NOT_FOUND
    if args.output in output.TABLES:
        items = answer["items"] if args.output == "wide" else without_buckets(answer["items"])
        output.table(COLUMNS, items, args)
    else:
        output.dump(answer, args.output)
    return EXIT_OK


def _ask(args: argparse.Namespace, name: str) -> Json:
    query = {"name": name or None}
    return ask_agent.of_cell(args, lambda agent: agent.get("/v1/metrics", query), OFF)


def without_buckets(items: Iterable[Json]) -> Iterator[Json]:
    """Yield the samples but for the buckets of histograms."""
    return (item for item in items if "le" not in item.get("labels", {}))


def _nearest(name: str, names: Iterable[str]) -> str:
    nearest = difflib.get_close_matches(name, sorted(names), n=3, cutoff=0.5)
    return f"; similar: {', '.join(nearest)}" if nearest else ""


def _labels(item: Json) -> str:
    return " ".join(f"{name}={value}" for name, value in item.get("labels", {}).items())


def _value(item: Json) -> str:
    """Return a value without an exponent: timestamps are read by people."""
    return f"{item['value']:.6f}".rstrip("0").rstrip(".")


COLUMNS = (
    Column("NAME", output.member("name")),
    Column("LABELS", _labels, minor=1, beneath=True),
    Column("VALUE", _value, right=True),
    Column("TYPE", output.member("type"), wide=True),
    Column("DESCRIPTION", output.member("description"), wide=True, minor=2, beneath=True),
)
