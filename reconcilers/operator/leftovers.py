"""Deletes the objects that agents wrote for API dialects which are off.

No agent changes them any more, and a session would stay Established in them. Another implementation
may run in place of Waggle's: an object that another program has written, too, is left unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable

from reconcilers.dialect import NodeObjectKind
from reconcilers.operator.agent_objects import AgentObject, AgentObjectClient
from resources.kubernetes import StatusError


async def delete_leftovers(
    client: AgentObjectClient, kinds: Iterable[NodeObjectKind], manager: str
) -> tuple[AgentObject, ...]:
    """Delete the objects of these kinds that ``manager`` alone has written; returns them.

    A kind that may not be listed, or does not exist, has none; nor does a kind that cannot be read
    at present. Raises `KubernetesError` for an API server that does not answer.
    """
    deleted: list[AgentObject] = []
    for kind in kinds:
        try:
            for leftover in await _leftovers(client, kind, manager):
                await client.delete(leftover.path, leftover.uid)
                deleted.append(leftover)
        except StatusError:
            continue
    return tuple(deleted)


async def _leftovers(
    client: AgentObjectClient, node_kind: NodeObjectKind, manager: str
) -> list[AgentObject]:
    kind = node_kind.kind
    version = kind.versions[0]
    leftovers: list[AgentObject] = []
    async for page in client.metadata(kind.path(version)):
        for metadata in page:
            entries = metadata.get("managedFields") or ()
            if {str(entry.get("manager")) for entry in entries} == {manager}:
                namespace, name = metadata.get("namespace", ""), metadata["name"]
                path = f"{kind.path(version, namespace)}/{name}"
                leftovers.append(AgentObject(kind.name, path, str(metadata.get("uid", ""))))
    return leftovers
