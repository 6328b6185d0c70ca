"""Objects of the cluster in answers: origins, conditions, statuses, problems, Events, changes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from cells.api.model.envelope import Item
from resources.enumeration import problem_line


class ConditionItem(Item, frozen=True, kw_only=True):
    """A condition of an object."""

    kind: str
    namespace: str | None = None
    name: str
    type: str
    status: str
    reason: str
    message: str | None = None


class ObjectStatusItem(Item, frozen=True, kw_only=True):
    """The status that this agent reports on one object, as Kubernetes spells it."""

    kind: str
    namespace: str | None = None
    name: str
    status: dict[str, Any]


class UnusedObjectsItem(Item, frozen=True, kw_only=True):
    """Objects that this agent does not read, as their API dialect is off."""

    dialect: str
    objects: dict[str, int]
    """Their number by kind."""
    flag: str
    """The flag that switches the dialect on."""
    message: str
    """A sentence without its end, for people."""


class ProblemItem(Item, frozen=True, kw_only=True):
    """A conflict or an invalid object."""

    objects: list[str]
    field: str
    message: str
    count: int = 1
    """The number of problems in this row."""
    of_tenant: bool = False
    """True if users of a namespace cause and solve it."""


def problem_text(problem: Mapping[str, Any]) -> str:
    """Return a problem as one line: its first object, the field, the message."""
    return problem_line(problem["objects"][:1], problem["field"], problem["message"])


class OriginItem(Item, frozen=True, kw_only=True):
    """A Kubernetes object that caused a route."""

    kind: str
    namespace: str | None = None
    name: str

    def __str__(self) -> str:
        """Spell it as tables do: ``Service/default/web``, ``Node/a``."""
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


class WatchItem(Item, frozen=True, kw_only=True):
    """One change of one object; a line of the answer of ``/v1/watch``."""

    event_time: datetime
    """When the agent wrote the line."""
    type: str
    """ADDED, MODIFIED or DELETED, as the Kubernetes watch API has them."""
    kind: str
    namespace: str | None = None
    name: str


class EventItem(Item, frozen=True, kw_only=True):
    """An Event that the agent reports on an object, as Kubernetes has them."""

    node: str
    type: str
    """Normal or Warning."""
    reason: str
    object: OriginItem
    message: str
    count: int = 1
    first_time: datetime
    last_time: datetime
