"""Deletes the objects that agents wrote about nodes which no longer exist.

The API server collects objects whose owner is the Node or a Pod; others, and earlier programs' objects,
stay. An object is deleted when two passes in a row have found no Node for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, final

from reconcilers.dialect import Dialect, NodeObjectKind, WrittenObjects, extended
from reconcilers.dialect.node_object import NODE
from reconcilers.operator.agent_objects import AgentObject, AgentObjectClient
from resources.kubernetes import StatusError
from resources.label_selectors import label_value

UNREADABLE = (403, 404)
"""HTTP statuses of a kind that may not be listed, or does not exist."""


@final
class AbandonedObjects:
    """Looks for objects of nodes that do not exist, and deletes them."""

    def __init__(self, dialects: Sequence[Dialect]) -> None:
        self._kinds = [
            (kind, "" if kind.option is None else str(getattr(dialect.options, kind.option)))
            for dialect, written in extended(dialects, WrittenObjects)
            for kind in written.kinds
        ]
        self._suspected: frozenset[AgentObject] = frozenset()
        """Found by the last pass."""
        self.failure: StatusError | None = None
        """The first error of the last pass; it delays no other object."""

    @property
    def needed(self) -> bool:
        """True if an enabled dialect has kinds of which agents may abandon objects."""
        return bool(self._kinds)

    async def run(
        self, client: AgentObjectClient, nodes: Collection[str]
    ) -> tuple[AgentObject, ...]:
        """Delete abandoned objects, given the names of all Nodes; returns what was deleted.

        Without any Node nothing is deleted. Raises `KubernetesError` for an API server that does not
        answer.
        """
        if not nodes:
            return ()
        self.failure = None
        abandoned_objects: list[AgentObject] = []
        for kind, namespace in self._kinds:
            try:
                abandoned_objects += await _abandoned(client, kind, namespace, nodes)
            except StatusError as error:
                self.failure = self.failure or error
        before, self._suspected = self._suspected, frozenset(abandoned_objects)
        deleted: list[AgentObject] = []
        for abandoned in abandoned_objects:
            try:
                if abandoned in before:
                    await client.delete(abandoned.path, abandoned.uid)
                    deleted.append(abandoned)
            except StatusError as error:
                self.failure = self.failure or error
        return tuple(deleted)


async def _abandoned(
    client: AgentObjectClient, kind: NodeObjectKind, namespace: str, nodes: Collection[str]
) -> list[AgentObject]:
    path = kind.kind.path(kind.kind.versions[0], namespace)
    names = frozenset(nodes if kind.name else map(label_value, nodes))
    abandoned: list[AgentObject] = []
    try:
        async for page in client.metadata(path):
            for metadata in page:
                node = node_of(kind, metadata)
                if node and node not in names:
                    name, uid = str(metadata.get("name", "")), str(metadata.get("uid", ""))
                    abandoned.append(AgentObject(kind.kind.name, f"{path}/{name}", uid))
    except StatusError as error:
        if error.status not in UNREADABLE:
            raise
        return []
    return abandoned


def node_of(kind: NodeObjectKind, metadata: Mapping[str, Any]) -> str:
    """Return the node of a possibly abandoned object, by label or name; empty without one."""
    if not kind.name:
        return str((metadata.get("labels") or {}).get(kind.node_label, ""))
    before, _, after = kind.name.partition(NODE)
    name = str(metadata.get("name", ""))
    if not name.startswith(before) or not name.endswith(after):
        return ""
    return name[len(before) : len(name) - len(after)]
