"""Deletes the objects that agents wrote for API dialects which are off.

No agent changes them any more, and a session would stay Established in them. Another implementation
may run in place of Waggle's: an object that another program has written, too, is left unchanged.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Protocol

import msgspec

from reconcilers.dialect import NodeObjectKind
from resources.kubernetes import StatusError


class LeftoverClient(Protocol):
    """Requests to an API server; `resources.kubernetes.Writer` implements them."""

    def metadata(self, path: str) -> AsyncIterator[list[Mapping[str, Any]]]:
        """Yield the metadata of objects that may be leftovers, page by page."""

    async def delete(self, path: str, uid: str) -> None:
        """Delete the leftover object with this UID, if it exists."""


class Leftover(msgspec.Struct, frozen=True):
    """An object of a dialect that is off."""

    kind: str
    path: str
    uid: str

    @property
    def name(self) -> str:
        """The name of the leftover object."""
        return self.path.rpartition("/")[2]


async def delete_leftovers(
    client: LeftoverClient, kinds: Iterable[NodeObjectKind], manager: str
) -> tuple[Leftover, ...]:
    """Delete the objects of these kinds that ``manager`` alone has written; returns them.

    A kind that may not be listed, or does not exist, has none; nor does a kind that cannot be read
    at present. Raises `KubernetesError` for an API server that does not answer.
    """
    deleted: list[Leftover] = []
    for kind in kinds:
        try:
            for leftover in await _leftovers(client, kind, manager):
                await client.delete(leftover.path, leftover.uid)
                deleted.append(leftover)
        except StatusError:
            continue
    return tuple(deleted)


async def _leftovers(
    client: LeftoverClient, node_kind: NodeObjectKind, manager: str
) -> list[Leftover]:
    kind = node_kind.kind
    version = kind.versions[0]
    leftovers: list[Leftover] = []
    async for page in client.metadata(kind.path(version)):
        for metadata in page:
            entries = metadata.get("managedFields") or ()
            if {str(entry.get("manager")) for entry in entries} == {manager}:
                namespace, name = metadata.get("namespace", ""), metadata["name"]
                path = f"{kind.path(version, namespace)}/{name}"
                leftovers.append(Leftover(kind.name, path, str(metadata.get("uid", ""))))
    return leftovers
