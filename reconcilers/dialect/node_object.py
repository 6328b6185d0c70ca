"""Objects that an agent writes whole about its own node: it creates, changes and deletes them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from reconcilers.dialect.extension import Extension
from reconcilers.intent_tables import IntentTables
from reconcilers.model import ObjectRef
from resources.kind import Kind
from speaker.api import DynamicPeerConfig, InstanceConfig, PeerConfig, PeerStatus
from statedb import Snapshot

NODE: Final = "{node}"
"""The place of the node's name in the names of a `NodeObjectKind`."""

RunningInstance = tuple[InstanceConfig, Mapping[str, PeerConfig | DynamicPeerConfig]]
"""An instance of the speaker, and its peers by name."""


class NodeObjectKind(msgspec.Struct, frozen=True):
    """A kind whose objects each agent writes for its own node, and where these are.

    One object of a fixed name, or any number of objects with a label that has the node's name. Their
    names are then made by the API server, and labels distinguish them.
    """

    kind: Kind[Any]
    option: str | None = None
    """The field of the dialect's options with their namespace; None for a cluster-scoped kind."""
    name: str = ""
    """The name of the one object, with ``{node}``; empty for objects with labels."""
    generate_name: str = ""
    """The beginning of the names of objects with labels, with ``{node}``."""
    node_label: str = ""
    """The label with the node's name; objects without a fixed name are listed by it. The chart's
    admission policy compares it and the name with the node of the agent."""
    identity: tuple[str, ...] = ()
    """The other labels that distinguish the objects of a node: of two with the same values one is a
    duplicate, which is deleted."""
    owned_by_pod: bool = False
    """True if the agent's Pod owns the objects, as far as it is in their namespace; else the Node."""

    def name_for(self, node: str) -> str:
        """Return the name of the object of a kind that an agent writes about its own node."""
        return self.name.replace(NODE, node)

    def generated_name(self, node: str) -> str:
        """Return how the names begin of the objects that an agent writes about its own node."""
        return self.generate_name.replace(NODE, node)

    def labels_of(self, labels: Mapping[str, str]) -> tuple[str, ...]:
        """Return the labels that distinguish an object of the kind from the node's others."""
        return tuple(labels.get(label, "") for label in self.identity)


class NodeObject(msgspec.Struct, frozen=True):
    """One object as it shall be."""

    kind: str
    """The name of a kind of `WrittenObjects`."""
    status: Any
    """A frozen struct, encoded to the object's ``status``. It has no password."""
    labels: Mapping[str, str] = {}
    """Labels besides the one with the node's name."""
    prompt: Hashable = None
    """A change of this value is written within seconds, any other change within a minute; None: every
    change within seconds."""


class NodeObjectKey(NamedTuple):
    """The labels that distinguish the objects of one node."""

    kind: str
    labels: tuple[str, ...]
    """The values of `NodeObjectKind.identity`."""


def key_of(kind: NodeObjectKind, row: NodeObject) -> NodeObjectKey:
    """Return the key of a node object that an agent writes."""
    return NodeObjectKey(row.kind, kind.labels_of(row.labels))


class NodeObjectContext(msgspec.Struct, frozen=True):
    """The inputs of a node's objects."""

    node: str
    dialect: str
    """The name that the dialect's rows have in the intent."""
    intent: IntentTables
    sessions: Sequence[PeerStatus]
    """The state of all sessions."""
    running: Callable[[], Mapping[str, RunningInstance]]
    """Returns what the speaker holds, by the name of the instance."""


def _none(
    _dialect: Any,  # noqa: ANN401
    _snapshot: Snapshot,
    _context: NodeObjectContext,
    _origin: ObjectRef,
) -> Iterable[NodeObject]:
    return ()


class WrittenObjects(Extension, frozen=True):
    """The objects that an agent writes whole, for its own node; functions take the dialect.

    The chart's admission policy rejects writes to other nodes' objects.
    """

    kinds: tuple[NodeObjectKind, ...]
    of_node: Callable[[Any, Snapshot, NodeObjectContext], Iterable[NodeObject]]
    """Returns the objects of this node, except `of_origin`'s. Called after changes of
    `Dialect.compiled_tables`, of the intent and of sessions, and every few seconds."""
    origins: frozenset[str] = frozenset()
    """The kinds of the objects with routes that `of_origin` is called for."""
    of_origin: Callable[[Any, Snapshot, NodeObjectContext, ObjectRef], Iterable[NodeObject]] = _none
    """Returns the objects about one object with routes. Called after changes of its routes, and for
    every one after changes of peers: for what is large, such as Services."""
