"""The items of the history; the others are in `model`, whose rules are theirs."""

from __future__ import annotations

from datetime import datetime

from cells.api.model import Item


class FieldChangeItem(Item, frozen=True, kw_only=True):
    """A field before and after a change, as text; absent where it had no value."""

    field: str
    old: str | None = None
    new: str | None = None


class HistoryItem(Item, frozen=True, kw_only=True):
    """One change of an object, a route or a session, or several that are equal."""

    node: str = ""
    sequence: int = 0
    """The order of the agent's entries. With one more equal change an entry gets another number."""
    event_time: datetime
    """Of the last of these changes."""
    first_time: datetime | None = None
    """Of the first one; absent where there is one."""
    type: str
    """ADDED, MODIFIED, DELETED, or OCCURRED for what leaves no object behind."""
    kind: str
    """Of an object as Kubernetes has it, or Route, Session, Peer, Instance, BFD, Problem ..."""
    name: str = ""
    """``NAMESPACE/NAME``, a prefix, or ``INSTANCE/PEER``; empty of changes that are only counted."""
    address: str | None = None
    """Of a session."""
    route_set: str | None = None
    """Of a route: peers with equal rules share a set."""
    changes: tuple[FieldChangeItem, ...] = ()
    message: str | None = None
    """The reason, in words."""
    causes: tuple[str, ...] = ()
    """Objects, as ``KIND/NAMESPACE/NAME``."""
    count: int = 1
