"""Actions on a running router, and its monitoring stations: requests over its socket."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

from resources.json_names import json_name
from waggle import ask_agent, output, sessions
from waggle.output import EXIT_ERROR, EXIT_NOT_FOUND, EXIT_OK, EXIT_USAGE, complain, member
from waggle.tables import Column

BODIES = {
    "announce": (
        "prefixes",
        "next_hop",
        "med",
        "local_preference",
        "communities",
        "large_communities",
    ),
    "withdraw": ("prefixes",),
    "clear": ("peer", "soft", "message", "family"),
    "shutdown": ("peer", "message"),
    "enable": ("peer",),
}
"""Action -> the arguments that are members of its body."""
KINDS = {
    "announce": "PrefixChangeList",
    "withdraw": "PrefixChangeList",
    "clear": "ClearedList",
}
"""Action -> the kind of its answer; of an action on a neighbor a PeerList with its session."""


def run(action: str, args: argparse.Namespace) -> int:
    """Perform one action, or list the stations; returns the exit status."""
    if action == "collectors":
        return _collectors(args)
    words = {name: getattr(args, name) for name in BODIES[action]}
    body = {json_name(name): value for name, value in words.items() if value is not None}
    try:
        answer = ask_agent.client(args).post(f"/v1/{action}", body)
    except ask_agent.AgentError as error:
        output.fail(args, KINDS.get(action, "PeerList"), error.code, str(error))
        return EXIT_USAGE if error.code == "BadRequest" else EXIT_ERROR
    texts = [error["message"] for error in answer["errors"]]
    for item in answer["items"]:
        texts += [f"{p}: the router does not originate it" for p in item.get("absent", ())]
    if args.output not in output.TABLES:
        output.dump(answer, args.output)
    else:
        _print(action, answer, args)
        for text in texts:
            complain(args.prog, text)
    if texts:
        return EXIT_NOT_FOUND
    return EXIT_OK if all(item.get("done", True) for item in answer["items"]) else EXIT_ERROR


def _print(action: str, answer: dict[str, Any], args: argparse.Namespace) -> None:
    """Print the number of changed prefixes, what is done, or the session of the neighbor."""
    if action == "clear":
        for item in answer["items"]:
            output.line(f"{item['name']}: {item['message']}", 2)
        return
    if action not in KINDS:
        if answer["items"]:
            now = output.read_time(answer["generatedAt"])
            output.table(sessions.columns(now), answer["items"], args)
        return
    for changed in filter(None, (item.get("changed") for item in answer["items"])):
        done = "announced" if action == "announce" else "withdrawn"
        print(f"{changed} prefix{'es' * (changed != 1)} {done}")


def collector_columns(now: datetime) -> tuple[Column, ...]:
    """Return the columns of BMP monitoring stations."""
    return (
        Column("NODE", member("node"), minor=2),
        Column("COLLECTOR", member("name")),
        Column("ADDRESS", member("address"), minor=3, beneath=True),
        Column("PORT", member("port"), right=True, minor=4),
        Column("STATE", _state, style=lambda text: "red" if text == "down" else "green"),
        Column("SINCE", output.age_of("sinceTime", now), right=True),
        Column("OCTETS", member("octetsSent"), right=True),
        Column("QUEUED", member("queuedOctets"), right=True),
        Column("CONNECTIONS", member("connections"), right=True, wide=True),
        Column("REASON", member("reason"), minor=1, beneath=True),
    )


def _collectors(args: argparse.Namespace) -> int:
    answer = ask_agent.read(args, "CollectorList", "/v1/collectors", {})
    if answer is None:
        return EXIT_ERROR
    columns = collector_columns(output.read_time(answer["generatedAt"]))
    empty = "no monitoring stations: the configuration has no bmp.collectors"
    output.show(answer, columns, args, empty)
    return EXIT_OK


def _state(item: dict[str, Any]) -> str:
    if not item["connected"]:
        return "down"
    return "synchronized" if item["synchronized"] else "table dump"
