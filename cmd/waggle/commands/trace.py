"""``waggle trace``: the last change of a prefix or an object, step by step, without a collector."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, Final

from cells.nearest_prefixes import network_of
from waggle import ask_agent, output
from waggle.output import (
    EXIT_ERROR,
    EXIT_NOT_FOUND,
    EXIT_OK,
    EXIT_USAGE,
    NO_AGENT,
    USAGE,
    exit_statuses,
)
from waggle.tables import Column

Json = dict[str, Any]
TIMELINE_WIDTH: Final = 20
OFF = "the agent keeps no spans: start it with --trace-buffer 2000"


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "trace",
        help="show the last change of a prefix or an object, from its event to the UPDATE",
        description="Print the spans of the last change as a tree: the event of the object, the "
        "commit, the compilation, the reconcilers, the UPDATEs. The agent keeps them with "
        "--trace-buffer.",
        epilog=exit_statuses(
            {
                EXIT_OK: "success",
                EXIT_ERROR: f"{NO_AGENT}, or it keeps no spans",
                EXIT_USAGE: USAGE,
                EXIT_NOT_FOUND: "no change of it is among the last spans",
            }
        ),
    )
    parser.add_argument(
        "target", metavar="PREFIX|OBJECT", help="a prefix, or an object as [KIND/][NAMESPACE/]NAME"
    )
    ask_agent.add_socket_flag(parser)
    output.add_output_flags(parser, ("table", "json", "jsonl", "yaml"))


def run(args: argparse.Namespace) -> int:
    """Print the tree; returns the exit status."""
    network = network_of(args.target)
    target = args.target if network is None else str(network)
    answer = ask_agent.read(args, "SpanList", "/v1/spans", {"target": target}, OFF)
    if answer is None:
        return EXIT_ERROR
    if args.output != "table":
        output.dump(answer, args.output)
    elif answer["items"]:
        output.table(COLUMNS, rows(answer["items"]), args)
    else:
        missing = f"no change of {target} is among the last spans"
        output.complain(args.prog, answer["errors"][0]["message"] if answer["errors"] else missing)
    return EXIT_OK if answer["items"] else EXIT_NOT_FOUND


def rows(spans: list[Json]) -> Iterator[Json]:
    """Yield the spans as a tree, each with its place in it and its begin behind the first one's."""
    first = output.read_time(spans[0]["startTime"])
    known = {span["spanID"] for span in spans}
    children: dict[str | None, list[Json]] = {}
    for span in spans:
        parent = span.get("parentSpanID")
        children.setdefault(parent if parent in known else None, []).append(span)

    def below(parent: str | None, depth: int) -> Iterator[Json]:
        for span in children.get(parent, ()):
            after = (output.read_time(span["startTime"]) - first).total_seconds()
            yield {**span, "after": after, "depth": depth, "whole": whole}
            yield from below(span["spanID"], depth + 1)

    ends = (output.read_time(s["startTime"]).timestamp() + s["durationSeconds"] for s in spans)
    whole = max(ends) - first.timestamp()
    yield from below(None, 0)


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.2f}ms"


def _tree(row: Json) -> str:
    branch = f"+{'-' * (2 * row['depth'] - 1)} " if row["depth"] else ""
    linked = f" (of {len(row['links'])} causes)" if row.get("links") else ""
    return f"{branch}{row['name']}{linked}"


def _bar(row: Json) -> str:
    """Draw when the span began and how long it took, in parts of the whole change."""
    scale = TIMELINE_WIDTH / (row["whole"] or 1.0)
    begin = min(int(row["after"] * scale), TIMELINE_WIDTH - 1)
    length = max(1, round(row["durationSeconds"] * scale))
    return f"{'.' * begin}{'=' * min(length, TIMELINE_WIDTH - begin)}"


def _details(row: Json) -> str:
    parts = []
    for name, value in sorted(row.get("attributes", {}).items()):
        if not value:
            continue  # the tree has no room for what did not happen
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        short = name.removeprefix("waggle.").removeprefix("bgp.")
        parts.append(f"{short}={text}")
    return " ".join(parts)


COLUMNS = (
    Column("AFTER", lambda row: _milliseconds(row["after"]), right=True),
    Column("TOOK", lambda row: _milliseconds(row["durationSeconds"]), right=True),
    Column("SPAN", _tree),
    Column("TIMELINE", _bar, minor=2),
    Column("DETAILS", _details, minor=1, beneath=True),
)
