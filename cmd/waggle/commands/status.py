"""``waggle status``: readiness, health, sessions and conditions of a running agent."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime
from typing import Any

from cells.api.model import problem_text
from waggle import ask_agent, output
from waggle.fleet.flags import add_fleet_flags, asks_cluster
from waggle.output import member
from waggle.sessions import ESTABLISHED, malformed_updates, reason
from waggle.tables import Column
from waggle.watching import add_watch_flag, watched

CONDITIONS = (
    Column("OBJECT", member("object")),
    Column("CONDITION", member("type"), minor=3, beneath=True),
    Column("STATUS", member("status"), minor=2, beneath=True),
    # A message of several lines has a reason in each.
    Column(
        "MESSAGE",
        lambda condition: condition.get("message", "").replace("\n", "; "),
        minor=1,
        beneath=True,
    ),
)
MAX_OF_TENANTS = 5
"""Problems of tenants' objects that are printed."""
ENTRY = "  - "
ENTRY_INDENT, VALUE_INDENT = len(ENTRY), len("instance   ")
"""Columns before the text of an entry of a list, and before a value."""


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the arguments of ``waggle status``."""
    parser = subparsers.add_parser(
        "status",
        help="show readiness, health and conditions of the agent",
        description="Show the state of a running agent: readiness, health, sessions, and the "
        "conditions that it reports.",
        epilog=output.exit_statuses(
            {
                output.EXIT_OK: "ready and healthy",
                output.EXIT_ERROR: "not ready, degraded, or no agent runs",
                output.EXIT_USAGE: output.USAGE,
                output.EXIT_INCOMPLETE: output.INCOMPLETE,
                output.EXIT_NOT_FOUND: "with --node: no such node",
                output.EXIT_INTERRUPTED: output.WATCH_ENDS,
            }
        ),
    )
    ask_agent.add_socket_flag(parser)
    add_fleet_flags(parser)
    add_watch_flag(parser)
    output.add_output_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Print the state; returns the exit status."""
    return watched(args, _show)


def _show(args: argparse.Namespace) -> int:
    if asks_cluster(args):
        from waggle.fleet.status import show_statuses

        return show_statuses(args)
    answer = ask_agent.read(args, "StatusList", "/v1/status", {})
    if answer is None:
        return output.EXIT_ERROR
    item = answer["items"][0]
    if args.output not in output.TABLES:
        output.dump(answer, args.output)
    else:
        for line in lines(item, output.read_time(answer["generatedAt"])):
            output.line(line, ENTRY_INDENT if line.startswith(ENTRY) else VALUE_INDENT)
        reported = conditions(item)
        if reported:
            sys.stdout.write("\n")
            output.table(CONDITIONS, reported, args)
    return output.EXIT_OK if item["ready"] and item["health"] == "ok" else output.EXIT_ERROR


def lines(item: dict[str, Any], now: datetime) -> list[str]:
    """Return the state of an agent as lines of text."""
    waiting = "; ".join(item.get("waiting", []))
    shown = [
        f"node       {item['node']}",
        f"ready      {'yes' if item['ready'] else f'no: waits for {waiting}'}",
        f"health     {item['health']}",
    ]
    shown += [
        f"{ENTRY}{part['path']}: {part['message']} "
        f"(for {output.age(output.read_time(part['sinceTime']), now)})"
        for part in _causes(item.get("degraded", []))
    ]
    shown.append(f"status     {item['reporting']}")
    if item.get("prefixTables"):
        shown.append(f"speaker    prefix tables in {item['prefixTables']}")
    problems = item.get("problems", [])
    of_tenants = [problem for problem in problems if problem.get("ofTenant")]
    shown += [f"problem    {problem_text(p)}" for p in problems if not p.get("ofTenant")]
    if of_tenants:
        shown.append("services   problems that users of namespaces cause and solve")
        shown += [f"{ENTRY}{problem_text(p)}" for p in of_tenants[:MAX_OF_TENANTS]]
        hidden = len(of_tenants) - MAX_OF_TENANTS
        if hidden > 0:
            shown.append(f"{ENTRY}and {hidden} more (-o json)")
    shown += [f"unused     {unused['message']}" for unused in item.get("unusedObjects", [])]
    shown += [f"addresses  {text}" for text in item.get("unrestricted", [])]
    instance = None
    for peer in sorted(item.get("peers", []), key=output.peer_order):
        if peer["instance"] != instance:
            instance = peer["instance"]
            shown.append(f"instance   {instance}, AS {peer.get('localASN', '-')}")
        shown.append(f"{ENTRY}{_peer(peer, now)}")
    return shown


def _causes(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Omit the parts that repeat the cause of the part that they belong to."""
    messages = {part["path"]: part["message"] for part in parts}

    def repeats(part: dict[str, Any]) -> bool:
        parent = messages.get(part["path"].rpartition("/")[0], "")
        return bool(parent) and part["message"].partition("; ")[0] in parent

    return [part for part in parts if not repeats(part)]


def conditions(item: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the conditions with their objects, those reported by this node first."""
    own = [
        condition | {"object": output.object_name(reported)}
        for reported in item.get("objects", [])
        for condition in reported["status"].get("conditions", [])
    ]
    others = item.get("conditions", [])
    return own + [other | {"object": output.object_name(other)} for other in others]


def _peer(peer: dict[str, Any], now: datetime) -> str:
    state = peer["state"]
    age = output.age(output.read_time(peer["sinceTime"]), now) if "sinceTime" in peer else None
    if state == ESTABLISHED:
        state += f" for {age}" if age else ""
    else:
        state += f", down for {age}" if age else ""
        state += f": {reason(peer)}" if "reason" in peer else ""
        if "likelyCause" in peer:
            state += f"; likely {peer['likelyCause']}"
    advertised = {count["family"]: count["routes"] for count in peer.get("advertised", [])}
    counts = [
        f"{count['family']} {count['routes']} received, {advertised.get(count['family'], 0)} "
        "advertised"
        for count in peer.get("received", [])
    ]
    asn = f", AS {peer['peerASN']}" if "peerASN" in peer else ""
    where = peer.get("address") or peer.get("interface") or "no address"
    return "; ".join((f"{peer['name']} ({where}{asn}): {state}", *counts, *malformed_updates(peer)))
