"""``waggle status``: whether an agent does what it should, and if not, what it says is wrong.

It shows what the agent says and computes nothing but ages.
"""

from __future__ import annotations

import argparse
import sys
from datetime import datetime
from typing import Any

from cells.text import escape
from waggle import agent, output
from waggle.peers import add_output_flags, ask, read_time

CONDITIONS = (
    output.Column("OBJECT"),
    output.Column("CONDITION"),
    output.Column("STATUS"),
    output.Column("MESSAGE"),
)


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments of ``waggle status``."""
    parser = subparsers.add_parser(
        "status",
        help="whether the agent does what it should",
        description="Say how a running agent is: what it waits for, what fails, what it reports.",
        epilog="Exit status 1 also when the agent is not ready, or something of it fails.",
    )
    agent.add_socket_flag(parser)
    add_output_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Ask and print."""
    answer = ask("status", "StatusList", args, "/v1/status", {})
    if answer is None:
        return output.EXIT_ERROR
    item = answer["items"][0]
    if args.output not in ("table", "wide"):
        output.dump(answer, args.output)
    else:
        for line in lines(item, read_time(answer["generatedAt"])):
            sys.stdout.write(escape(line) + "\n")
        told = conditions(item)
        if told:
            sys.stdout.write("\n")
            output.table(CONDITIONS, told, wide=args.output == "wide", color=args.color)
    return output.EXIT_OK if item["ready"] and item["health"] == "ok" else output.EXIT_ERROR


def lines(item: dict[str, Any], now: datetime) -> list[str]:
    """Say how an agent is, a line for each thing that is to be known."""
    waiting = "; ".join(item.get("waiting", []))
    found = [
        f"node       {item['node']}",
        f"ready      {'yes' if item['ready'] else f'no: waits for {waiting}'}",
        f"health     {item['health']}",
    ]
    found += [
        f"  - {part['path']}: {part['message']} "
        f"(for {output.age(read_time(part['sinceTime']), now)})"
        for part in item.get("degraded", [])
    ]
    found.append(f"status     {item['reporting']}")
    found += [f"unused     {unused['message']}" for unused in item.get("unusedObjects", [])]
    instance = None
    for peer in item.get("peers", []):
        if peer["instance"] != instance:
            instance = peer["instance"]
            found.append(f"instance   {instance}, AS {peer.get('localASN', '-')}")
        found.append(f"  - {_peer(peer, now)}")
    return found


def conditions(item: dict[str, Any]) -> list[list[str]]:
    """Return the rows of the conditions, those that this node reports first."""
    own = [
        (_name(reported), one)
        for reported in item.get("objects", [])
        for one in reported["status"].get("conditions", [])
    ]
    others = [(_name(one), one) for one in item.get("conditions", [])]
    return [
        [name, one["type"], one["status"], one.get("message") or output.NONE]
        for name, one in own + others
    ]


def _name(of: dict[str, Any]) -> str:
    return "/".join(filter(None, (of["kind"], of.get("namespace"), of["name"])))


def _peer(peer: dict[str, Any], now: datetime) -> str:
    state = peer["state"]
    if "sinceTime" in peer:
        state += f" for {output.age(read_time(peer['sinceTime']), now)}"
    advertised = {count["family"]: count["routes"] for count in peer.get("advertised", [])}
    counts = [
        f"{count['family']} {count['routes']} received, {advertised.get(count['family'], 0)} "
        "advertised"
        for count in peer.get("received", [])
    ]
    asn = f", AS {peer['peerASN']}" if "peerASN" in peer else ""
    where = peer.get("address") or peer.get("interface") or "no address"
    return "; ".join((f"{peer['name']} ({where}{asn}): {state}", *counts))
