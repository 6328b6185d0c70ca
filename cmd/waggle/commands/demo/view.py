"""The output of the demo: sessions and routes of the router, as tables or as plain lines.

Pure functions of a snapshot. Texts come from the router: what is not printable is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

import msgspec
from rich.text import Text

from cells.safe_text import escape
from resources.enumeration import counted
from waggle.output import row
from waggle.sessions import state_style
from waggle.tables import Column, Layout, fitted, wrap


class Session(msgspec.Struct, frozen=True):
    """One row of the router's sessions."""

    address: str
    peer_asn: int | None
    state: str
    reason: str


class ReceivedRoute(msgspec.Struct, frozen=True, order=True):
    """One route that the router received."""

    prefix: str
    next_hop: str
    as_path: str
    communities: tuple[str, ...]
    large_communities: tuple[str, ...]
    origin: str = ""
    """The origin of the route, from `waggle render`."""


class Snapshot(msgspec.Struct, frozen=True):
    """The router at one moment."""

    sessions: tuple[Session, ...] = ()
    routes: tuple[ReceivedRoute, ...] = ()
    problems: tuple[str, ...] = ()
    """The problems of the manifests, one sentence each."""


SESSIONS: Final = (
    Column("PEER", lambda session: session.address),
    Column("AS", lambda session: str(session.peer_asn or ""), right=True),
    Column("STATE", lambda session: session.state, style=state_style),
    Column("REASON", lambda session: session.reason, minor=1, beneath=True),
)
ROUTES: Final = (
    Column("PREFIX", lambda route: route.prefix),
    Column("NEXT-HOP", lambda route: route.next_hop, minor=3, beneath=True),
    Column("AS-PATH", lambda route: route.as_path),
    Column(
        "COMMUNITIES",
        lambda route: " ".join((*route.communities, *route.large_communities)),
        minor=2,
        beneath=True,
    ),
    Column("ORIGIN-OBJECT", lambda route: route.origin, minor=1, beneath=True),
)


def screen(snapshot: Snapshot, hint: str, *, width: int, height: int | None = None) -> Text:
    """Return both tables, the problems of the manifests, and a hint, for a terminal.

    Texts that are too long for ``width`` are wrapped. Lines beyond ``height`` are hidden, and the
    last line but the hint has their number.
    """
    lines = [
        *_titled("Sessions of the router", SESSIONS, snapshot.sessions, width),
        "",
        *_titled("Routes received by the router", ROUTES, snapshot.routes, width),
        "",
    ]
    lines += [
        _ansi("31", part)
        for problem in snapshot.problems
        for part in wrap(f"! {escape(problem)}", width)
    ]
    last = [_ansi("2", part) for part in wrap(hint, width)] if hint else []
    if height is not None and len(lines) + len(last) > height:
        room = max(0, height - len(last) - 1)
        more = sum(1 for line in lines[room:] if line)
        note = f"({counted(more, 'more line')}; a higher terminal shows them)"
        lines = [*lines[:room], _ansi("2", note[:width])]
    return Text.from_ansi("\n".join([*lines, *last]), no_wrap=True, overflow="crop")


def _titled(
    title: str, columns: Sequence[Column], items: Iterable[object], width: int
) -> list[str]:
    cells = [row(columns, item) for item in items]
    groups = fitted(columns, [cells], Layout(color=True), width=width, complete=True)
    return [_ansi("1", title[:width]), *chain.from_iterable(groups)]


def _ansi(code: str, text: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m"


def line(route: ReceivedRoute) -> str:
    """Return one route as one line."""
    communities = (*route.communities, *route.large_communities)
    text = f"{route.prefix} via {route.next_hop} as-path {route.as_path or '-'}"
    if communities:
        text += f" communities {','.join(communities)}"
    return f"{text} origin {route.origin}" if route.origin else text


def changes(before: Snapshot, after: Snapshot) -> list[str]:
    """Return the changes between two snapshots as lines, for output without a terminal."""
    lines = []
    states = {session.address: session.state for session in before.sessions}
    lines += [
        f"session {session.address}: {session.state}"
        + (f" ({session.reason})" if session.reason else "")
        for session in after.sessions
        if states.get(session.address) != session.state
    ]
    old = {route.prefix: route for route in before.routes}
    new = {route.prefix: route for route in after.routes}
    lines += [f"- {prefix}" for prefix in old if prefix not in new]
    for prefix, route in new.items():
        if prefix not in old:
            lines.append(f"+ {line(route)}")
        elif old[prefix] != route:
            lines.append(f"~ {line(route)}")
    lines += [f"! {problem}" for problem in after.problems if problem not in before.problems]
    return lines
