"""Replays the recording, prints the selected state, and reports differences from the recording."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from cells.serve.items import peer_item, route_item
from resources.enumeration import counted
from resources.given_file import open_given
from speaker.api import BestPathChange, BestPathItem, PeerStatus
from speaker.engine import Engine
from speaker.message import HEADER_SIZE
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST
from speaker.peer.actions import (
    Action,
    Close,
    Connect,
    EndBestPaths,
    ReportEvent,
    SendBestPaths,
    SetTtl,
    Write,
)
from speaker.recording import BadRecording, Player, Step
from waggle import output, route_columns, sessions
from waggle.ask_agent import unknown_peer_among
from waggle.manifest_flag import complain_of_input
from waggle.output import member
from waggle.tables import Column

Json = dict[str, Any]

KINDS: Final = {"state": "PeerList", "routes": "RouteList", "actions": "ActionList"}
"""Of the answer, by ``--show``."""

_MESSAGES = ("?", "OPEN", "UPDATE", "NOTIFICATION", "KEEPALIVE", "ROUTE-REFRESH")


def main(args: argparse.Namespace) -> int:
    """Replay and print; returns the exit status."""
    if args.table is not None and args.show != "routes":
        output.complain("waggle replay", "--table: with --show routes only")
        return output.EXIT_USAGE
    args.table = args.table or "available"
    try:
        with open_given(args.file) as file:
            player = Player(file)
            actions = _actions(player, args.until)
            items = list(actions) if args.show == "actions" else _drain(actions)
    except (OSError, BadRecording) as error:
        text = error.strerror if isinstance(error, OSError) else str(error)
        complain_of_input(args, f"{args.file}: {text}", kind=KINDS[args.show])
        return output.EXIT_USAGE
    match args.show:
        case "state":
            items = _peers(player)
        case "routes":
            items = list(_routes(player.engine, args.table))
    if args.peer is not None:
        names = _names(player.engine, args.peer)
        items = [item for item in items if _peer_of(item) in names]
    is_missing = args.peer is not None and not items
    if is_missing and args.output in output.TABLES and not _is_known(player.engine, args.peer):
        output.complain("waggle replay", unknown_peer_among(args.peer, None, _peers(player)))
    else:
        _print(items, player, args)
    _report(player, args)
    if player.difference is not None:
        return output.EXIT_ERROR
    return output.EXIT_NOT_FOUND if is_missing else output.EXIT_OK


def _drain(actions: Iterator[Json]) -> list[Json]:
    for _ in actions:
        pass
    return []


def _peer_of(item: Json) -> object:
    return item.get("peer", item.get("name"))


def _is_known(engine: Engine, peer: str) -> bool:
    """Return whether a peer has the name or the address at the end of the replay."""
    return any(peer in (status.name, status.address) for status in engine.views.peers(0.0))


def _names(engine: Engine, peer: str) -> set[str]:
    """Return the names of the peers with a name or an address, also of a removed peer."""
    known = {
        status.name for status in engine.views.peers(0.0) if peer in (status.name, status.address)
    }
    return known | {peer}


# ------------------------------------------------------------------------- state


def _statuses(player: Player) -> Iterator[PeerStatus]:
    to_wall = player.header.started - player.header.now
    for status in player.engine.views.peers(player.now):
        yield msgspec.structs.replace(status, since=status.since + to_wall)


def _peers(player: Player) -> list[Json]:
    return [msgspec.to_builtins(peer_item("", status)) for status in _statuses(player)]


def _routes(engine: Engine, table: str) -> Iterator[Json]:
    for instance in engine.views.instances():
        for family in (IPV4_UNICAST, IPV6_UNICAST):
            match table:
                case "available":
                    routes = engine.views.routes_available(instance.name, family)
                case "received":
                    routes = engine.views.routes_received(instance.name, None, family)
                case _:
                    routes = engine.views.routes_advertised(instance.name, None, family)
            for view in routes:
                yield msgspec.to_builtins(route_item("", instance.name, view))


# ----------------------------------------------------------------------- actions


def _actions(player: Player, until: int | None) -> Iterator[Json]:
    connections: dict[int, str] = {}
    for step in player.play(until):
        for action in step.actions:
            yield _action(step, action, player.engine, connections)
        if step.error is not None:
            yield {
                **_when(step),
                "action": "Refused",
                "detail": f"{type(step.error).__name__}: {step.error}",
            }


def _when(step: Step) -> Json:
    return {"seq": step.seq, "timeSeconds": step.now, "input": type(step.item).__name__}


def _action(step: Step, action: Action, engine: Engine, connections: dict[int, str]) -> Json:
    """Return an action; ``connections`` keeps the peer of each, for actions after its end."""
    record = {**_when(step), "action": type(action).__name__}
    if isinstance(action, ReportEvent):
        event = action.event
        record["peer"] = getattr(event, "peer", None)
        record["detail"] = f"{type(event).__name__}: {_event_text(msgspec.to_builtins(event))}"
        return record
    if isinstance(action, SendBestPaths | EndBestPaths):
        record["peer"] = None
        record["reader"] = action.reader
        record["detail"] = f"reader {action.reader}"
        if isinstance(action, SendBestPaths):
            record["detail"] += f": {', '.join(_items(action.items))}"
        return record
    if isinstance(action, Connect):
        connections[action.connection] = action.peer
    described = engine.describe_connection(action.connection)
    if described is not None:
        connections[action.connection] = described[1]
    record["peer"] = connections.get(action.connection)
    record["connection"] = action.connection
    match action:
        case Write(parts=parts):
            octets = b"".join(parts)
            record["hex"] = octets.hex()
            record["detail"] = ", ".join(_messages(octets))
        case Connect(address=address, port=port, password=password):
            protected = "" if password is None else ", with a password"
            record["detail"] = f"to {address} port {port}{protected}"
        case SetTtl(ttl=ttl, min_ttl=min_ttl):
            record["detail"] = f"TTL {ttl}, at least {min_ttl}"
        case Close(abort=abort):
            record["detail"] = "immediately" if abort else "after pending writes"
    return record


def _items(items: Sequence[BestPathItem]) -> Iterator[str]:
    """Yield the names of the items of a stream; changes with the number of their prefixes."""
    for is_change, some in itertools.groupby(items, lambda i: isinstance(i, BestPathChange)):
        if is_change:
            prefixes = sum(len(i.prefixes) for i in some if isinstance(i, BestPathChange))
            yield f"changes of {counted(prefixes, 'prefix', 'prefixes')}"
        else:
            yield from (type(item).__name__ for item in some)


def _event_text(event: Json) -> str:
    named = {"instance", "peer", "address"}
    return ", ".join(f"{key} {value}" for key, value in event.items() if key not in named)


def _messages(octets: bytes) -> Iterator[str]:
    """Yield the names of the messages; equal successive ones with their number."""
    at, before, count = 0, "", 0
    while at + HEADER_SIZE <= len(octets):
        kind = octets[at + 18]
        name = _MESSAGES[kind] if kind < len(_MESSAGES) else _MESSAGES[0]
        if name != before and count:
            yield before if count == 1 else f"{count} {before}"
            count = 0
        before, count = name, count + 1
        at += max(HEADER_SIZE, int.from_bytes(octets[at + 16 : at + 18], "big"))
    if count:
        yield before if count == 1 else f"{count} {before}"


# ---------------------------------------------------------------------- printing


def _print(items: list[Json], player: Player, args: argparse.Namespace) -> None:
    if args.output not in output.TABLES:
        errors = []
        if player.difference is not None:
            errors.append({"code": "Difference", "message": str(player.difference)})
        output.dump(output.document(KINDS[args.show], items, errors), args.output)
        return
    if not items:
        output.complain("waggle replay", f"nothing to show: no {args.show}")
        return
    output.table(_columns(player, args), items, args)


def _columns(player: Player, args: argparse.Namespace) -> Sequence[Column]:
    began = player.header.now
    if args.show == "actions":
        return actions(began)
    if args.show == "routes":
        return route_columns.COLUMNS[args.table]
    return sessions.columns(datetime.fromtimestamp(player.header.started + player.now - began, UTC))


def actions(began: float) -> tuple[Column, ...]:
    """Return the columns of actions; ``began`` is the time at which the recording begins."""
    return (
        Column("SEQ", member("seq"), right=True),
        Column("TIME", lambda item: f"{item['timeSeconds'] - began:.3f}", right=True),
        Column("INPUT", member("input"), minor=2, beneath=True),
        Column("PEER", member("peer")),
        Column("ACTION", member("action")),
        Column("DETAIL", member("detail"), minor=1, beneath=True),
    )


def _report(player: Player, args: argparse.Namespace) -> None:
    """Print the extent of the replay, and its result, on standard error."""
    header = player.header
    seconds = player.now - header.now
    parts = [f"{player.inputs} inputs of {seconds:.1f}s by waggle {header.version}"]
    if args.until is not None and player.inputs == args.until:
        parts.append(f"stopped after input {args.until} (--until)")
    elif player.end is not None:
        parts.append(f"the recording ended: {player.end}")
    else:
        parts.append("the recording has no end: its writer was interrupted")
    if player.truncated:
        parts.append("its last line is truncated and was skipped")
    if player.difference is None:
        parts.append(f"same results as recorded ({player.digests} digests of the state are equal)")
    else:
        parts.append(
            f"OTHER results than recorded, {player.difference}; "
            f"equal up to input {player.difference.since}"
        )
    output.complain("waggle replay", "; ".join(parts))
