"""Server-side apply of objects whose spec and owners belong to one field manager as a whole.

Plain server-side apply keeps the fields of other managers: items of a list, a second controller. Such
fields are transferred to our manager (`Writer.adopt`), and a second apply removes them.

Source: Kubernetes documentation, "Server-Side Apply".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from resources.errors import ResourceError
from resources.kind import Kind
from resources.kubernetes.errors import StatusError


class ApplyClient(Protocol):
    """Requests to an API server; `resources.kubernetes.Writer` implements them."""

    async def apply(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        """Apply fields of an object, server-side."""

    async def adopt(self, path: str) -> bool:
        """Transfer other managers' fields to ours, for a server-side apply; False without any."""


async def apply_owned(
    client: ApplyClient,
    kind: Kind[Any],
    path: str,
    content: Mapping[str, Any],
    *,
    on_adopted: Callable[[], None],
) -> dict[str, Any]:
    """Apply an object server-side, and remove what other managers have in spec and owners.

    Returns the object as the API server answers it; calls ``on_adopted`` when fields have been
    transferred. Raises `KubernetesError`.
    """
    try:
        answer = await client.apply(path, content)
    except StatusError as error:
        # The fields of two managers together may be invalid, such as two controllers.
        if error.status != 422 or not await client.adopt(path):
            raise
    else:
        if _is_as_applied(kind, answer, content) or not await client.adopt(path):
            return answer
    on_adopted()
    return await client.apply(path, content)


def _is_as_applied(kind: Kind[Any], answer: Mapping[str, Any], content: Mapping[str, Any]) -> bool:
    """True if spec and owners are what was applied; other managers' list items may be there too."""
    try:
        stored, wanted = kind.decode(answer), kind.decode(content)
    except ResourceError:
        return False
    same: bool = stored.spec == wanted.spec
    return same and stored.metadata.owner_references == wanted.metadata.owner_references
