"""Writing into an API server: one object at a time, and only the fields that are ours.

Server-side apply under a field manager of our own: what others have set stays, what we set before and
do not set any more goes. An answer with an error is an error, with the verb and the resource that it
was about. Nothing is tried again here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, final

from resources.kubernetes import wire
from resources.kubernetes.connection import Connection, body_of
from resources.kubernetes.errors import Refused
from resources.kubernetes.ownership import adopted

JsonObject: TypeAlias = dict[str, Any]

SILENCE: Final = 15.0
"""Seconds that an answer to a write may take."""
LARGEST: Final = 4 * 1024 * 1024
"""Octets of an answer that are read."""
PAGE: Final = 500
"""Objects of a list that are asked for at a time."""
_APPLY: Final = "application/apply-patch+yaml"
_MERGE: Final = "application/merge-patch+json"
_METADATA: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@final
class Writer:
    """Reads and writes single objects; ``manager`` is the name of the writer of its fields."""

    def __init__(self, connection: Connection, manager: str, *, silence: float = SILENCE) -> None:
        self._connection = connection
        self._manager = manager
        self._silence = silence

    async def get(self, path: str, parameters: Sequence[tuple[str, str]] = ()) -> JsonObject | None:
        """Return an object or a list, or None where it is not there. Raises `KubernetesError`."""
        try:
            return await self._send("GET", path, parameters=parameters)
        except Refused as error:
            if error.status == 404:
                return None
            raise

    async def names(self, path: str) -> list[str]:
        """Return the names in a list of objects without a namespace. Raises `KubernetesError`."""
        found: list[str] = []
        token = ""
        while True:
            parameters = [("limit", str(PAGE)), *([("continue", token)] if token else [])]
            octets = await self._ask("GET", path, parameters=parameters, accept=_METADATA)
            page = wire.decode(octets, wire.List, "a list")
            heads = (wire.decode(item, wire.Head, "an object") for item in page.items or ())
            found.extend(head.metadata.name for head in heads)
            token = page.metadata.continue_
            if not token:
                return found

    async def count(self, path: str) -> int:
        """Return the number of objects in a list, of which one is read. Raises `KubernetesError`."""
        octets = await self._ask("GET", path, parameters=[("limit", "1")], accept=_METADATA)
        page = wire.decode(octets, wire.List, "a list")
        return len(page.items or ()) + page.metadata.remaining_item_count

    async def served_versions(self) -> frozenset[str]:
        """Return the ``group/version`` of all named API groups. Raises `KubernetesError`."""
        groups = wire.decode(await self._ask("GET", "/apis"), wire.GroupList, "API groups")
        return frozenset(v.group_version for group in groups.groups for v in group.versions)

    async def create(self, path: str, content: Mapping[str, Any]) -> JsonObject:
        """Create an object in a list. Raises `KubernetesError`; 409 when it is there."""
        return await self._send("POST", path, content, [("fieldManager", self._manager)])

    async def replace(self, path: str, content: Mapping[str, Any]) -> JsonObject:
        """Replace an object by one with its resource version. Raises `KubernetesError`.

        The error is `Refused` with 409 when somebody else has written it since.
        """
        return await self._send("PUT", path, content, [("fieldManager", self._manager)])

    async def apply(self, path: str, content: Mapping[str, Any]) -> JsonObject:
        """Make an object (or a status subresource) have these fields. Raises `KubernetesError`.

        Forced: of fields that are ours by their meaning no other writer can keep another value.
        """
        parameters = [("fieldManager", self._manager), ("force", "true")]
        return await self._send("PATCH", path, content, parameters, content_type=_APPLY)

    async def merge(self, path: str, content: Mapping[str, Any]) -> JsonObject:
        """Set these fields of an object that is there. Raises `KubernetesError`.

        Without any, it is stored anew as it is, in the version that its kind is stored in now.
        """
        parameters = [("fieldManager", self._manager)]
        return await self._send("PATCH", path, content, parameters, content_type=_MERGE)

    async def adopt(self, path: str) -> bool:
        """Make ours what others set of an object that is ours as a whole. Raises `KubernetesError`.

        Of the values nothing changes: the next `apply` takes away what it does not set. False
        where there is nothing of others, or no object. The error is `Refused` with 409 when somebody
        has written the object meanwhile.
        """
        there = await self.get(path)
        metadata = (there or {}).get("metadata") or {}
        entries = metadata.get("managedFields") or []
        found = adopted(entries, self._manager, str((there or {}).get("apiVersion", "")))
        if found is None:
            return False
        version = metadata.get("resourceVersion", "")
        await self.merge(path, {"metadata": {"managedFields": found, "resourceVersion": version}})
        return True

    async def delete(self, path: str, uid: str) -> None:
        """Delete the object with this UID; one that is gone is fine. Raises `KubernetesError`."""
        preconditions = {"uid": uid} if uid else {}
        content = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": preconditions,
            "propagationPolicy": "Background",
        }
        try:
            await self._send("DELETE", path, content)
        except Refused as error:
            if error.status != 404:
                raise

    async def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        parameters: Sequence[tuple[str, str]] = (),
        *,
        content_type: str = "application/json",
    ) -> JsonObject:
        octets = await self._ask(method, path, body, parameters, content_type=content_type)
        return wire.decode(octets, dict[str, Any], "an object")

    async def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        parameters: Sequence[tuple[str, str]] = (),
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> bytes:
        async with self._connection.request(
            method,
            path,
            parameters,
            silence=self._silence,
            body=body,
            content_type=content_type,
            accept=accept,
        ) as response:
            octets = await body_of(response, LARGEST)
            if not 200 <= response.status < 300:
                if response.status == 401:
                    # The token may have been renewed since the configuration was read.
                    await self._connection.renew()
                retry_after = response.headers.get("Retry-After")
                raise wire.error_of(response.status, octets, retry_after)
        return octets
