"""The output of the demo: sessions and routes of the router, as rich tables or as plain lines.

Pure functions of a snapshot. Texts come from the router and are never parsed as markup.
"""

from __future__ import annotations

import msgspec
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text


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


def _sessions(snapshot: Snapshot) -> Table:
    table = Table(box=box.SIMPLE, title="Sessions of the router", title_justify="left")
    for column in ("PEER", "AS", "STATE", "REASON"):
        table.add_column(column, no_wrap=column != "REASON")
    for session in snapshot.sessions:
        style = "green" if session.state == "Established" else "yellow"
        asn = "-" if session.peer_asn is None else str(session.peer_asn)
        table.add_row(
            Text(session.address),
            asn,
            Text(session.state, style=style),
            Text(session.reason),
        )
    return table


def _routes(snapshot: Snapshot) -> Table:
    table = Table(box=box.SIMPLE, title="Routes received by the router", title_justify="left")
    for column in ("PREFIX", "NEXT-HOP", "AS-PATH", "COMMUNITIES", "ORIGIN-OBJECT"):
        table.add_column(column, no_wrap=column == "PREFIX")
    for route in snapshot.routes:
        communities = " ".join((*route.communities, *route.large_communities)) or "-"
        table.add_row(
            Text(route.prefix),
            Text(route.next_hop),
            Text(route.as_path or "-"),
            Text(communities),
            Text(route.origin or "-"),
        )
    return table


def screen(snapshot: Snapshot, hint: str) -> RenderableType:
    """Return both tables, the problems of the manifests, and a hint."""
    parts: list[RenderableType] = [_sessions(snapshot), _routes(snapshot)]
    parts += [Text(f" ! {problem}", style="red") for problem in snapshot.problems]
    parts.append(Text(hint, style="dim"))
    return Group(*parts)


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
