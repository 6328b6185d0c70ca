"""The router of the demo at one moment, and the changes between two moments, as items and as lines.

Pure functions of snapshots.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec

from cells.api.model import Item

ADDED, MODIFIED, DELETED, OCCURRED = "ADDED", "MODIFIED", "DELETED", "OCCURRED"


class Session(Item, frozen=True, kw_only=True):
    """One of the router's sessions."""

    address: str
    peer_asn: int | None = msgspec.field(default=None, name="peerASN")
    state: str
    reason: str = ""


class ReceivedRoute(Item, frozen=True, kw_only=True):
    """One route that the router received."""

    prefix: str
    next_hop: str
    as_path: str = ""
    communities: tuple[str, ...] = ()
    large_communities: tuple[str, ...] = ()
    origin_objects: tuple[str, ...] = ()
    """The objects that the route originates from, by `waggle render`."""


class Snapshot(msgspec.Struct, frozen=True):
    """The router at one moment."""

    sessions: tuple[Session, ...] = ()
    routes: tuple[ReceivedRoute, ...] = ()
    problems: tuple[str, ...] = ()
    """The problems of the manifests, one sentence each."""


class DemoItem(Item, frozen=True, kw_only=True):
    """A change of the demo: of a session, of a route, or an occurrence in words."""

    event_time: datetime
    type: str
    session: Session | None = None
    route: ReceivedRoute | None = None
    message: str | None = None


def changes(before: Snapshot, after: Snapshot, now: datetime) -> Iterator[DemoItem]:
    """Yield the changes between two snapshots: sessions, routes, and new problems."""
    sessions = {session.address: session for session in before.sessions}
    for session in after.sessions:
        known = sessions.get(session.address)
        if known is None or known.state != session.state:
            kind = ADDED if known is None else MODIFIED
            yield DemoItem(event_time=now, type=kind, session=session)
    old = {route.prefix: route for route in before.routes}
    new = {route.prefix: route for route in after.routes}
    for prefix, route in old.items():
        if prefix not in new:
            yield DemoItem(event_time=now, type=DELETED, route=route)
    for prefix, route in new.items():
        if prefix not in old:
            yield DemoItem(event_time=now, type=ADDED, route=route)
        elif old[prefix] != route:
            yield DemoItem(event_time=now, type=MODIFIED, route=route)
    for problem in after.problems:
        if problem not in before.problems:
            yield DemoItem(event_time=now, type=OCCURRED, message=problem)


def text(item: DemoItem) -> str:
    """Return a change as one line."""
    if item.session is not None:
        session = item.session
        reason = f" ({session.reason})" if session.reason else ""
        return f"session {session.address}: {session.state}{reason}"
    if item.route is None:
        return f"! {item.message}"
    if item.type == DELETED:
        return f"- {item.route.prefix}"
    return f"{'+' if item.type == ADDED else '~'} {line(item.route)}"


def line(route: ReceivedRoute) -> str:
    """Return one route as one line."""
    communities = (*route.communities, *route.large_communities)
    parts = f"{route.prefix} via {route.next_hop} as-path {route.as_path or '-'}"
    if communities:
        parts += f" communities {','.join(communities)}"
    origins = " ".join(route.origin_objects)
    return f"{parts} origin {origins}" if origins else parts
