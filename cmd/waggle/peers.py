"""``waggle peers``: the BGP sessions of a running agent, one line each."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from waggle import ask_agent, output
from waggle.tables import NONE, Column

ESTABLISHED = "Established"


def state_style(state: str) -> str:
    """Return the style of a session's state in a table."""
    if state == ESTABLISHED:
        return "green"
    return "dim" if state == "Disabled" else "red" if state == "Idle" else "yellow"


COLUMNS = (
    Column("NODE", minor=3),
    Column("PEER"),
    Column("ADDRESS", minor=6, beneath=True),
    Column("LOCAL-AS", right=True, minor=5),
    Column("PEER-AS", right=True, minor=7, beneath=True),
    Column("STATE", style=state_style),
    Column("SINCE", right=True),
    Column("FAMILIES", minor=4),
    Column("RECV", right=True, minor=8, beneath=True),
    Column("SENT", right=True, minor=9, beneath=True),
    Column("INSTANCE", wide=True),
    Column("ROUTER-ID", wide=True),
    Column("HOLD/KA", wide=True),
    Column("MSG-IN/OUT", wide=True),
    Column("FLAPS", wide=True, right=True),
    Column("AUTH", wide=True),
    Column("GR", wide=True),
    Column("NEXT-RETRY", wide=True, right=True),
    Column("LAST-ERROR", wide=True, minor=2, beneath=True),
    Column("REASON", minor=2, beneath=True),
    Column("LIKELY-CAUSE", wide=True, minor=1, beneath=True),
)


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the arguments of ``waggle peers``."""
    parser = subparsers.add_parser(
        "peers",
        help="list the BGP sessions of the agent",
        description="List the BGP sessions of a running agent. REASON is why a session is not "
        "Established; it has no route counts then.",
        epilog=output.exit_statuses(
            {
                output.EXIT_OK: "success, also without peers",
                output.EXIT_ERROR: output.NO_AGENT,
                output.EXIT_USAGE: output.USAGE,
                output.EXIT_NOT_FOUND: "no such peer or instance",
            }
        ),
    )
    parser.add_argument("--peer", metavar="P", help="only this peer, by name, address or object")
    parser.add_argument("--instance", metavar="I", help="only peers of this instance")
    ask_agent.add_socket_flag(parser)
    output.add_output_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Print the sessions; returns the exit status."""
    query = {"peer": args.peer, "instance": args.instance}
    answer = ask_agent.read("peers", "PeerList", args, "/v1/peers", query)
    if answer is None:
        return output.EXIT_ERROR
    answer["items"].sort(key=output.peer_order)
    named = args.peer or args.instance
    if args.output not in ("table", "wide"):
        is_missing = named and not answer["items"]
        if is_missing:
            answer["errors"] = [{"code": "NotFound", "message": _not_found(named)}]
        output.dump(answer, args.output)
        return output.EXIT_NOT_FOUND if is_missing else output.EXIT_OK
    if not answer["items"]:
        return _explain_absence(answer, named)
    now = output.read_time(answer["generatedAt"])
    rows = [row(item, now) for item in answer["items"]]
    output.table(COLUMNS, rows, args)
    for sentence in (*left_out(answer["items"]), *malformed(answer["items"])):
        output.complain("waggle peers", sentence)
    for problem in answer.get("problems", []):
        output.complain("waggle peers", problem)
    return output.EXIT_OK


def _not_found(name: str) -> str:
    return f"no peer or instance of that name: {name}"


def _explain_absence(answer: dict[str, Any], named: str | None) -> int:
    """Print why there are no peers, or none of a name; returns the exit status."""
    problems = answer.get("problems", [])
    if named:
        text = _not_found(named)
    elif problems:
        text = "no peers, for the problems of the configuration:"
    else:
        text = (
            "no peers: no configuration selects this node, or the configuration has not been read "
            "yet; waggle render -f PATH --node NAME shows the peers of manifests"
        )
    output.complain("waggle peers", text)
    for reason in (*problems, *(() if named else answer.get("notes", []))):
        output.complain("waggle peers", reason)
    return output.EXIT_NOT_FOUND if named else output.EXIT_OK


def left_out(items: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each family in which a peer does not get all routes."""
    for item in items:
        for family in item.get("advertised", ()):
            if count := family.get("leftOut", 0):
                what = f"{count} {family['family']} prefixes are not advertised"
                yield f"{item['name']}: {what}: {family.get('reason', 'unknown')}"


def malformed(items: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each peer some of whose UPDATEs cannot be used."""
    for item in items:
        for text in malformed_updates(item):
            yield f"{item['name']}: {text}"


def malformed_updates(item: dict[str, Any]) -> Iterator[str]:
    """Yield how many UPDATEs of a session are malformed, and why; nothing without any."""
    count = item.get("malformedUpdates", 0)
    if count:
        yield f"{count} malformed UPDATE{'s' if count > 1 else ''}: {item.get('malformed', '')}"


def row(item: dict[str, Any], now: datetime) -> list[str]:
    """Return the cells of one session, in the order of `COLUMNS`."""
    since = output.read_time(item["sinceTime"]) if "sinceTime" in item else None
    hold, keepalive = item.get("holdSeconds"), item.get("keepaliveSeconds")
    messages = item.get("messagesReceived"), item.get("messagesSent")
    retry, restart = item.get("retrySeconds"), item.get("gracefulRestartSeconds")
    return [
        item["node"],
        item["name"],
        item.get("address") or item.get("interface") or NONE,
        _text(item.get("localASN")),
        _text(item.get("peerASN"), item.get("peerType", "any")),
        item["state"],
        output.age(since, now),
        ",".join(output.short_family(family) for family in item["families"]) or NONE,
        _count(item.get("received")),
        _count(item.get("advertised")),
        item["instance"],
        _text(item.get("peerRouterID")),
        NONE if hold is None else f"{hold:g}/{keepalive or 0:g}",
        NONE if messages[0] is None else f"{messages[0]}/{messages[1]}",
        _text(item.get("flaps")),
        _text(item.get("authentication"), "none"),
        NONE if restart is None else f"{restart}s",
        NONE if retry is None else _countdown(retry) or "now",
        _text(item.get("lastError")),
        reason(item),
        _text(item.get("likelyCause")),
    ]


def reason(item: dict[str, Any]) -> str:
    """Return why a session is not Established, with the time to the next attempt; else empty."""
    if item["state"] == ESTABLISHED:
        return ""
    text, retry = item.get("reason") or "unknown", item.get("retrySeconds")
    if retry is None:
        return text
    countdown = _countdown(retry)
    return f"{text} ({f'retry in {countdown}' if countdown else 'retry now'})"


def _countdown(seconds: float) -> str:
    """Return the time to an attempt, begun seconds as whole ones; empty if it is due."""
    return output.duration(math.ceil(seconds)) if seconds > 0 else ""


def _text(value: object, missing: str = NONE) -> str:
    return missing if value is None else str(value)


def _count(counts: list[dict[str, Any]] | None) -> str:
    if counts is None:
        return NONE
    if len(counts) < 2:
        return str(sum(count["routes"] for count in counts))
    return ",".join(str(count["routes"]) for count in counts)
