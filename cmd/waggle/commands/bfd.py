"""``waggle bfd``: the BFD sessions of a running agent, one line each."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias

from waggle import ask_agent, output
from waggle.output import member
from waggle.tables import Column

MISSING: Final = "no BFD session of that peer or instance: {}"
Item: TypeAlias = Mapping[str, Any]
UP = "Up"


def columns(now: datetime) -> tuple[Column, ...]:
    """Return the columns."""
    return (
        Column("NODE", member("node"), minor=3),
        Column("PEER", member("peer")),
        Column("ADDRESS", _address, minor=6, beneath=True),
        Column("STATE", member("state"), style=_style),
        Column("REMOTE", member("remoteState")),
        Column("SINCE", output.age_of("sinceTime", now), right=True),
        Column("INTERVAL", _time("transmitIntervalSeconds"), right=True, minor=5),
        Column("DETECTION", _time("detectionSeconds"), right=True),
        Column("HOPS", lambda item: "multi" if item.get("multihop") else "single", minor=4),
        Column("DIAGNOSTIC", _diagnostic, minor=1, beneath=True),
        Column("INSTANCE", member("instance"), wide=True),
        Column("PROFILE", member("profile"), wide=True),
        Column("LOCAL-INTERVALS", _intervals("localIntervals"), wide=True),
        Column("REMOTE-INTERVALS", _intervals("remoteIntervals"), wide=True),
        Column("PACKETS-IN/OUT", _packets, wide=True, right=True),
        Column("ECHO-IN/OUT", _echoes, wide=True, right=True),
        Column("LONGEST-GAP", _time("longestGapSeconds"), wide=True, right=True),
        Column("LATENESS", _time("latenessSeconds"), wide=True, right=True),
        Column("UPS", member("ups", "0"), wide=True, right=True),
        Column("AUTH", member("authentication", "none"), wide=True),
        Column("DISCRIMINATORS", _discriminators, wide=True),
        Column("PROBLEM", member("problem"), minor=2, beneath=True),
    )


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the arguments of ``waggle bfd``."""
    parser = subparsers.add_parser(
        "bfd",
        help="list the BFD sessions of the agent",
        description="List the BFD sessions of a running agent. REMOTE is the state of the other end, "
        "INTERVAL and DETECTION are the times in use, as both ends have negotiated them; LOCAL- "
        "and REMOTE-INTERVALS are from the packets of an end: transmit and receive interval, and the "
        "detection multiplier. LONGEST-GAP is "
        "the longest time between two received packets while Up, LATENESS the latest that the process "
        "has met a deadline.",
        epilog=output.exit_statuses(
            {
                output.EXIT_OK: "success, also without sessions",
                output.EXIT_ERROR: output.NO_AGENT,
                output.EXIT_USAGE: output.USAGE,
                output.EXIT_NOT_FOUND: "no BFD session of that peer or instance",
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
    answer = ask_agent.read(args, "BfdSessionList", "/v1/bfd", query)
    if answer is None:
        return output.EXIT_ERROR
    items, named = answer["items"], args.peer or args.instance
    items.sort(key=lambda item: output.peer_order({**item, "name": item["peer"]}))
    missing = ""
    if named and not items:
        missing = MISSING.format(named) + ask_agent.nearest(args, named)
    if args.output not in output.TABLES:
        if missing:
            answer["errors"] = [{"code": "NotFound", "message": missing}]
        output.dump(answer, args.output)
    else:
        if items:
            output.table(columns(output.read_time(answer["generatedAt"])), items, args)
        for sentence in _sentences(answer, missing):
            output.complain(args.prog, sentence)
    return output.EXIT_NOT_FOUND if missing else output.EXIT_OK


def _sentences(answer: dict[str, Any], missing: str) -> Iterator[str]:
    """Yield what is wrong with the process, and why there are no sessions."""
    if not answer["items"]:
        why = "; ".join(answer.get("notes", []))
        yield ": ".join(filter(None, (missing or "no BFD sessions", why)))
    yield from answer.get("problems", ())


def _style(state: str) -> str:
    return "green" if state == UP else "yellow" if state == "Init" else "red"


def _address(item: Item) -> str:
    address, device = item.get("address", ""), item.get("device")
    return f"{address}%{device}" if device else address


def _diagnostic(item: Item) -> str:
    """Return the diagnostic of this end, and where it differs that of the other one."""
    own, remote = item.get("diagnostic", ""), item.get("remoteDiagnostic", "")
    return f"{own} (remote: {remote})" if remote and remote != own else own


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:g}ms"


def _time(name: str) -> Any:  # noqa: ANN401  a cell
    def cell(item: Item) -> str:
        seconds = item.get(name)
        return "" if seconds is None else _milliseconds(seconds)

    return cell


def _intervals(name: str) -> Any:  # noqa: ANN401  a cell
    def cell(item: Item) -> str:
        timers = item.get(name)
        if timers is None:
            return ""
        times = (
            f"{_milliseconds(timers['transmitSeconds'])}/{_milliseconds(timers['receiveSeconds'])}"
        )
        return f"{times} x{timers['detectMultiplier']}"

    return cell


def _packets(item: Item) -> str:
    received = item.get("packetsReceived")
    return "" if received is None else f"{received}/{item.get('packetsSent')}"


def _echoes(item: Item) -> str:
    sent = item.get("echoesSent")
    return "" if sent is None else f"{item.get('echoesReceived')}/{sent}"


def _discriminators(item: Item) -> str:
    local = item.get("localDiscriminator")
    return "" if local is None else f"{local}/{item.get('remoteDiscriminator', 0)}"
