"""The status of an object, as the node reports it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from reconcilers.dialect.extension import Extension
from reconcilers.intent_tables import IntentTables
from reconcilers.model import ObjectRef
from resources.kind import Kind
from speaker.api import InstanceStatus, PeerStatus
from statedb import Snapshot


class ObjectStatus(msgspec.Struct, frozen=True):
    """Row of the table ``object-statuses``: the status that this node reports on one object."""

    object: ObjectRef
    uid: str
    """Of the object in the API server; empty where it is generated in this process only."""
    status: Any
    """A frozen struct, encoded to the object's ``status``, which this node writes as a whole.

    A field ``conditions`` has conditions; if the struct has none, ``conditions`` of the object are left
    to the operator.
    """
    dialect: str = ""
    counts: frozenset[str] = frozenset()
    """Members of the status, at any depth, that are numbers of routes: written after an interval that
    grows with the cluster, where everything else is written at once."""


class ReportContext(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of a node's report."""

    node: str
    dialect: str
    """The name that the dialect's rows have in the intent."""
    intent: IntentTables
    sessions: Sequence[PeerStatus]
    """The state of all sessions."""
    before: Mapping[ObjectRef, ObjectStatus]
    """The last report."""
    now: float
    """Unix time."""
    instances: Sequence[InstanceStatus] = ()
    """The state of all instances."""


def _none(_dialect: Any, _snapshot: Snapshot, _node: str) -> ObjectRef | None:  # noqa: ANN401
    return None


class ReportedStatuses(Extension, frozen=True):
    """The status of objects that an agent writes; functions take the dialect."""

    kinds: tuple[Kind[Any], ...]
    """The kinds of the objects."""
    statuses: Callable[[Any, Snapshot, ReportContext], Iterable[ObjectStatus]]
    """Returns the status of each object that this node reports on. Called after changes of
    `Dialect.compiled_tables`, of the intent and of sessions, and every few seconds."""
    of_node: Callable[[Any, Snapshot, str], ObjectRef | None] = _none
    """Returns the object that Events about a node as a whole are regarding, if it exists. Reads no
    others than `Dialect.compiled_tables`."""
