"""``waggle status --all-nodes``: a line for each node."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, Final

from cells.api.model import problem_text
from waggle.fleet.view import FleetView, Item, show_fleet
from waggle.output import member
from waggle.sessions import ESTABLISHED
from waggle.tables import Column

OK: Final = "ok"
UNKNOWN: Final = "unknown"
"""Health of a node of which status objects alone are known."""


def _ready(item: Item) -> str:
    return "" if "ready" not in item else "yes" if item["ready"] else "no"


def _established(item: Item) -> str:
    sessions = _sessions(item)
    return f"{_up(sessions)}/{len(sessions)}"


def _message(item: Item) -> str:
    """Return what is wrong, the gravest first, in one line."""
    causes = [f"waits for {text}" for text in item.get("waiting", ())]
    causes += [f"{part['path']}: {part['message']}" for part in item.get("degraded", ())]
    causes += [problem_text(problem) for problem in item.get("problems", ())]
    causes += [f"{s['name']}: {s.get('reason', s['state'])}" for s in _down(_sessions(item))]
    first, others = causes[:1], len(causes) - 1
    return f"{first[0]} (and {others} more)" if others > 0 else "".join(first)


COLUMNS: Final = (
    Column("NODE", member("node")),
    Column("READY", _ready, style=lambda text: "green" if text == "yes" else "red"),
    Column("HEALTH", member("health"), style=lambda text: "green" if text == OK else "yellow"),
    Column("ESTABLISHED", _established, right=True),
    Column("PROBLEMS", lambda item: str(len(item.get("problems", ()))), right=True, minor=2),
    Column("STATUS", member("reporting"), wide=True, minor=3, beneath=True),
    Column("MESSAGE", _message, minor=1, beneath=True),
)


def show_statuses(args: argparse.Namespace) -> int:
    """Ask all agents and print; returns the exit status."""
    view = FleetView(
        kind="StatusList",
        request=lambda client: client.get("/v1/status", {}),
        columns=lambda _: COLUMNS,
        order=lambda items: sorted(items, key=_order),
        sessions=_sessions,
        of_statuses=_of_statuses,
        is_bad=lambda item: item.get("ready") is False or item["health"] not in (OK, UNKNOWN),
    )
    return show_fleet(args, view)


def _order(item: Item) -> tuple[Any, ...]:
    """Sort key: not ready, degraded, most sessions down, most problems."""
    down = len(_down(_sessions(item)))
    is_ready, is_ok = item.get("ready", True), item["health"] == OK
    return bool(is_ready), is_ok, -down, -len(item.get("problems", ())), item["node"]


def _sessions(item: Item) -> Sequence[Item]:
    sessions: Sequence[Item] = item.get("peers", ())
    return sessions


def _up(sessions: Sequence[Item]) -> int:
    return len(sessions) - len(_down(sessions))


def _down(sessions: Sequence[Item]) -> list[Item]:
    return [session for session in sessions if session["state"] != ESTABLISHED]


def _of_statuses(node: str, sessions: list[Item]) -> list[Item]:
    sources = sorted({session["source"] for session in sessions})
    reporting = f"from {sources[0]}" + (f" and {len(sources) - 1} more" if sources[1:] else "")
    return [{"node": node, "health": UNKNOWN, "reporting": reporting, "peers": sessions}]
