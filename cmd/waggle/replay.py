"""`waggle replay`: a recording of a speaker played again, and the state that it ends in.

For finding out what a speaker did, and why, without the network that it did it in. Sends nothing.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from waggle.output import EXIT_ERROR, EXIT_OK, EXIT_USAGE, Column, complain, document, dump, table

if TYPE_CHECKING:
    from speaker.engine import Engine
    from speaker.recording.replay import Replay, Step

NAME = "replay"
SHOW = ("peers", "routes", "events", "actions")


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Declare the command and its flags."""
    parser = subparsers.add_parser(
        NAME,
        help="a recording of the speaker, played again",
        description="Play a recording of the speaker through its core, and show where it ends. A "
        "recording is made by waggle-agent --record-file or waggle router --record.",
        epilog="Exit status 1: the core came to something else than when it was recorded.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the recording")
    parser.add_argument("--until", type=int, metavar="SEQ", help="stop after this input")
    parser.add_argument(
        "--show",
        choices=SHOW,
        default="peers",
        help="sessions, routes in all tables, or what happened on the way (default: %(default)s)",
    )
    parser.add_argument("--peer", metavar="P", help="only this peer, by name")
    parser.add_argument(
        "-o", "--output", choices=("table", "json", "jsonl"), default="table", help="default: table"
    )


def run(args: argparse.Namespace) -> int:
    """Replay; the exit status."""
    from speaker.recording import BadRecording, Replay

    items: list[dict[str, Any]] = []
    try:
        with args.file.open("rb") as file:
            replay = Replay(file)
            for step in replay.steps(args.until):
                if args.show in ("events", "actions"):
                    items += _happened(step, args.show, args.peer)
    except OSError as error:
        complain("waggle replay", f"{args.file}: {error.strerror}")
        return EXIT_USAGE
    except BadRecording as error:
        complain("waggle replay", f"{args.file}: {error}")
        return EXIT_USAGE
    if args.show == "peers":
        items = _peers(replay, args.peer)
    elif args.show == "routes":
        items = _routes(replay.engine, args.peer)
    _print(args, items)
    complain("waggle replay", _summary(replay))
    return EXIT_OK if replay.difference is None else EXIT_ERROR


def _summary(replay: Replay) -> str:
    if replay.difference is not None:
        return f"the state differs {replay.difference}"
    end = f"ended: {replay.end}" if replay.end else "the end is missing"
    return f"{replay.inputs} inputs played, the state is as it was recorded ({end})"


def _print(args: argparse.Namespace, items: list[dict[str, Any]]) -> None:
    if args.output != "table":
        dump(document(f"Replay{args.show.capitalize()}", items), args.output)
        return
    names = list(items[0]) if items else []
    table(
        [Column(name.upper()) for name in names],
        [["" if item[name] is None else str(item[name]) for name in names] for item in items],
    )


def _peers(replay: Replay, peer: str | None) -> list[dict[str, Any]]:
    return [
        {
            "instance": status.instance,
            "peer": status.name,
            "address": status.address,
            "state": status.state,
            "flaps": status.flaps,
            "received": sum(family.received for family in status.families),
            "advertised": sum(family.advertised for family in status.families),
            "reason": status.reason,
        }
        for status in replay.engine.peers(replay.now)
        if peer in (None, status.name)
    ]


def _routes(engine: Engine, peer: str | None) -> list[dict[str, Any]]:
    found = []
    for instance in engine.instances():
        for family, _ in engine.table_sizes(instance.name):
            for name, routes in (
                ("available", engine.routes_available(instance.name, family)),
                ("received", engine.routes_received(instance.name, None, family)),
                ("advertised", engine.routes_advertised(instance.name, None, family)),
            ):
                found += [
                    {
                        "instance": instance.name,
                        "table": name,
                        "peer": route.peer,
                        "prefix": route.prefix,
                        "nexthop": route.next_hop,
                        "aspath": route.as_path,
                        "reason": route.reason,
                    }
                    for route in routes
                    if peer in (None, route.peer)
                ]
    return found


def _happened(step: Step, show: str, peer: str | None) -> list[dict[str, Any]]:
    from speaker.peer.actions import Tell, Write

    found = []
    for action in step.actions:
        if isinstance(action, Tell):
            about = getattr(action.event, "peer", None)
            text = repr(action.event)
        elif show == "events":
            continue
        elif isinstance(action, Write):
            about, octets = None, b"".join(action.parts)
            text = (
                f"Write(connection={action.connection}, {octets[:64].hex()}, {len(octets)} octets)"
            )
        else:
            about, text = None, repr(action)
        if peer in (None, about):
            found.append(
                {
                    "seq": step.sequence,
                    "time": f"{step.now:.3f}",
                    "input": type(step.item).__name__,
                    "what": text,
                }
            )
    return found
