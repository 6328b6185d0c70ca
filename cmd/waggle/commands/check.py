"""`waggle check`: the problems that manifests have on any of their nodes, without agent or cluster."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Iterator
from typing import Any

from cells.safe_text import escape
from resources.enumeration import (
    bounded,
    counted,
    enumerate_nodes,
    enumerate_objects,
    enumerate_some,
    problem_line,
)
from resources.option_declarations import InvalidOption
from waggle import output
from waggle.dialects import Dialects
from waggle.intent_flags import add_intent_flags, offline_settings
from waggle.manifest_flag import add_manifest_flag, complain_of_input, manifest_paths
from waggle.output import EXIT_ERROR, EXIT_NOT_FOUND, EXIT_OK, EXIT_USAGE, complain, exit_statuses
from waggle.tables import Column

NAME = "check"
SHOWN_NODES = 3
COLUMNS = (
    Column("OBJECTS", lambda problem: enumerate_objects(problem["objects"]), minor=4, beneath=True),
    Column("FIELD", output.member("field"), minor=2, beneath=True),
    Column("MESSAGE", output.member("message"), minor=1, beneath=True),
    Column("NODES", lambda p: enumerate_nodes(p["nodes"], SHOWN_NODES), minor=3, beneath=True),
)


def add_parser(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser], dialects: Dialects
) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        NAME,
        help="list the problems of manifests on all of their nodes, offline",
        description="Compile manifests for every Node in them, and print one line for each problem: "
        "objects, field, message, nodes. Objects that select no Node of the manifests are checked with "
        "all objects that they could meet, on nodes that are assumed; so are manifests without a Node.",
        epilog=exit_statuses(
            {
                EXIT_OK: "no problem",
                EXIT_ERROR: "problems",
                EXIT_USAGE: "wrong usage, or unreadable input",
                EXIT_NOT_FOUND: "no Node of that name",
            }
        ),
    )
    add_manifest_flag(parser)
    parser.add_argument(
        "--node",
        action="append",
        default=[],
        metavar="NAME",
        help="check this node only; may be repeated (default: all nodes of the manifests)",
    )
    output.add_output_flags(parser, ("text", "table", "json", "yaml"), "text")
    add_intent_flags(parser, dialects)
    parser.set_defaults(dialects=dialects)


def run(args: argparse.Namespace) -> int:
    """Check and print; returns the exit status."""
    from reconcilers.check_manifests import check
    from reconcilers.compile_manifests import UnknownNodeError
    from resources.manifests.load import UnreadablePathError

    paths = manifest_paths(args)
    # All objects are kept until the end: garbage collection would take a fifth of the time.
    gc.disable()
    nodes, args.node = args.node, ""
    try:
        settings = offline_settings(args, args.dialects)
        document = check(paths, args.dialects.load(), settings, nodes, sys.stdin.buffer)
    except UnknownNodeError as error:
        complain_of_input(args, str(error), "NotFound")
        return EXIT_NOT_FOUND
    except (UnreadablePathError, InvalidOption) as error:
        complain_of_input(args, str(error))
        return EXIT_USAGE
    if args.output not in ("text", "table"):
        output.dump_value(document, args.output)
    else:
        if args.output == "table" and document["problems"]:
            output.table(COLUMNS, document["problems"], args)
        elif args.output == "text":
            for problem in document["problems"]:
                print(escape(_line(problem, len(document["nodes"]))))
        count = len(document["problems"])
        for note in _notes(document):
            complain("waggle check: note", note)
        nodes_text = f"{len(document['nodes'])} node{'s' * (len(document['nodes']) != 1)}"
        counted = f"{count or 'no'} problem{'s' * (count != 1)}"
        print(f"{counted} on {nodes_text}", file=sys.stderr)
    return EXIT_ERROR if document["problems"] else EXIT_OK


def _notes(document: dict[str, Any]) -> Iterator[str]:
    """Yield what is assumed beside the manifests, and what is not checked."""
    labels = [_assumed(node["name"], node["labels"]) for node in document["assumedNodes"]]
    if labels:
        assumed = f"{counted(len(labels), 'node')} assumed: {enumerate_some(labels, SHOWN_NODES)}"
        yield f"no Node of the manifests has these labels, {assumed}"
    if document["uncheckedObjects"]:
        shown = enumerate_some(document["uncheckedObjects"], SHOWN_NODES)
        yield f"not checked, since they select neither a Node nor an assumed one: {shown}"


def _assumed(name: str, labels: dict[str, str]) -> str:
    """Return the labels of an assumed node, with its name where the name does not have them."""
    text = ",".join(f"{key}={value}" for key, value in labels.items())
    if not text:
        return "no labels"
    return text if text in name else f"{text} ({name})"


def _line(problem: dict[str, Any], nodes: int) -> str:
    """Return a problem in one line; nodes are named where it is not a problem of all."""
    text = problem_line(problem["objects"], problem["field"], problem["message"])
    names = problem["nodes"]
    if len(names) == nodes:
        return text
    return bounded(text, f" ({enumerate_nodes(names, SHOWN_NODES)})")
