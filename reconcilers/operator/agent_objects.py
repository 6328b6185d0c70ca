"""Objects that agents wrote, and that the operator deletes in their place."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol

import msgspec


class AgentObjectClient(Protocol):
    """Requests to an API server; `resources.kubernetes.Writer` implements them."""

    def metadata(self, path: str) -> AsyncIterator[list[Mapping[str, Any]]]:
        """Yield the metadata of objects that agents may have written, page by page."""

    async def delete(self, path: str, uid: str) -> None:
        """Delete an agent's object with this UID, if it exists."""


class AgentObject(msgspec.Struct, frozen=True):
    """An object that an agent wrote, of a node that does not exist or a dialect that is off."""

    kind: str
    path: str
    uid: str

    @property
    def name(self) -> str:
        """The name of the agent's object."""
        return self.path.rpartition("/")[2]
