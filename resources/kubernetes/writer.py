"""Writes single objects to an API server, under one field manager.

Server-side apply keeps the fields of other managers, and removes fields that this manager
applied before and does not apply any more. Errors are raised; retries are the caller's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, final

import msgspec

from resources.kubernetes import responses
from resources.kubernetes.connection import JSON, Connection, read_limited_body
from resources.kubernetes.errors import StatusError
from resources.kubernetes.field_managers import adopted, annotations_of

JsonObject: TypeAlias = dict[str, Any]

SILENCE: Final = 15.0
"""Timeout of a response, in seconds."""
LARGEST: Final = 4 * 1024 * 1024
"""Octets read of a response."""
PAGE: Final = 500
"""Objects of a page of a list of names."""
OBJECTS_PAGE: Final = 100
"""Objects of a page of a list of objects."""
_APPLY: Final = "application/apply-patch+yaml"
_MERGE: Final = "application/merge-patch+json"


@final
class Writer:
    """Reads and writes single objects; ``manager`` is the name of the field manager."""

    def __init__(self, connection: Connection, manager: str, *, silence: float = SILENCE) -> None:
        self._connection = connection
        self._manager = manager
        self._silence = silence

    async def get(self, path: str, parameters: Sequence[tuple[str, str]] = ()) -> JsonObject | None:
        """Return an object or a list, or None if it does not exist. Raises `KubernetesError`."""
        try:
            return await self._send("GET", path, parameters=parameters)
        except StatusError as error:
            if error.status == 404:
                return None
            raise

    async def names(self, path: str) -> list[str]:
        """Return the names of all objects of a cluster-scoped list. Raises `KubernetesError`."""
        names: list[str] = []
        async for items in self._items(path, PAGE, accept=responses.METADATA_LIST):
            heads = (responses.decode(item, responses.Head, "an object") for item in items)
            names.extend(head.metadata.name for head in heads)
        return names

    async def pages(
        self, path: str, parameters: Sequence[tuple[str, str]]
    ) -> AsyncIterator[list[JsonObject]]:
        """Yield the pages of a list, as objects in full. Raises `KubernetesError`."""
        async for items in self._items(path, OBJECTS_PAGE, parameters):
            yield [responses.decode(item, dict[str, Any], "an object") for item in items]

    async def metadata(self, path: str) -> AsyncIterator[list[Mapping[str, Any]]]:
        """Yield the metadata of the objects of a list, page by page. Raises `KubernetesError`."""
        async for items in self._items(path, PAGE, accept=responses.METADATA_LIST):
            objects = (responses.decode(item, dict[str, Any], "an object") for item in items)
            yield [content.get("metadata") or {} for content in objects]

    async def _items(
        self,
        path: str,
        limit: int,
        parameters: Sequence[tuple[str, str]] = (),
        accept: str = JSON,
    ) -> AsyncIterator[Sequence[msgspec.Raw]]:
        """Yield the encoded objects of a list, in pages of at most ``limit``."""
        page: Sequence[tuple[str, str]] = ()
        while True:
            query = [*parameters, ("limit", str(limit)), *page]
            octets = await self._request("GET", path, parameters=query, accept=accept)
            answer = responses.decode(octets, responses.List, "a list")
            yield answer.items or ()
            if not answer.metadata.continue_:
                return
            page = [("continue", answer.metadata.continue_)]

    async def count(self, path: str) -> int:
        """Return the number of objects in a list, of which one is read. Raises `KubernetesError`."""
        octets = await self._request(
            "GET", path, parameters=[("limit", "1")], accept=responses.METADATA_LIST
        )
        page = responses.decode(octets, responses.List, "a list")
        return len(page.items or ()) + page.metadata.remaining_item_count

    async def served_versions(self) -> frozenset[str]:
        """Return the ``group/version`` of all named API groups. Raises `KubernetesError`."""
        groups = responses.decode(
            await self._request("GET", "/apis"), responses.GroupList, "API groups"
        )
        return frozenset(v.group_version for group in groups.groups for v in group.versions)

    async def create(self, path: str, content: Mapping[str, Any]) -> JsonObject:
        """Write a new object to a collection. Raises `KubernetesError`; 409 if it exists."""
        return await self._send("POST", path, content, [("fieldManager", self._manager)])

    async def replace(self, path: str, content: Mapping[str, Any]) -> JsonObject:
        """Write an object in place of one, with its resource version. Raises `KubernetesError`.

        A write of another client since that version is a `StatusError` with status 409.
        """
        return await self._send("PUT", path, content, [("fieldManager", self._manager)])

    async def apply(self, path: str, content: Mapping[str, Any]) -> JsonObject:
        """Apply fields of an object or a status subresource. Raises `KubernetesError`.

        Forced: conflicting values of other managers are overwritten.
        """
        parameters = [("fieldManager", self._manager), ("force", "true")]
        return await self._send("PATCH", path, content, parameters, content_type=_APPLY)

    async def annotate(
        self, path: str, content: Mapping[str, Any], dialect: str, *, take_over: bool = False
    ) -> JsonObject:
        """Write annotations of an object of another writer. Raises `KubernetesError`.

        The field manager is ``<manager>-<dialect>``. A value of another manager is kept, unless
        ``take_over``, and an object that has changed since it was read is not written: both are a
        `StatusError` with status 409.
        """
        manager = f"{self._manager}-{dialect}"
        stored = await self.get(path)
        if stored is None:
            raise StatusError(404, "there is no such object")
        metadata = stored.get("metadata") or {}
        wanted = content["metadata"]
        owned = annotations_of(metadata.get("managedFields") or (), manager)
        present = metadata.get("annotations") or {}
        for key, value in wanted["annotations"].items():
            if present.get(key, value) != value and key not in owned and not take_over:
                raise StatusError(409, f"another manager has set the annotation {key}")
        # Forced, as a manager may own the annotations as a whole: an empty map is one field.
        version = {"resourceVersion": metadata.get("resourceVersion", "")}
        parameters = [("fieldManager", manager), ("force", "true")]
        body = {**content, "metadata": {**wanted, **version}}
        return await self._send("PATCH", path, body, parameters, content_type=_APPLY)

    async def merge(self, path: str, content: Mapping[str, Any]) -> JsonObject:
        """Write an object by a JSON merge patch (RFC 7386). Raises `KubernetesError`.

        An empty patch makes the API server store the object in the storage version.
        """
        parameters = [("fieldManager", self._manager)]
        return await self._send("PATCH", path, content, parameters, content_type=_MERGE)

    async def adopt(self, path: str) -> bool:
        """Transfer other managers' fields in spec and owners to the writer. Raises `KubernetesError`.

        No value changes; the next `apply` removes fields that it does not contain. Returns false if
        there are no such fields, or no object. A concurrent write of another client is a
        `StatusError` with status 409.
        """
        stored = await self.get(path)
        metadata = (stored or {}).get("metadata") or {}
        entries = metadata.get("managedFields") or []
        transferred = adopted(entries, self._manager, str((stored or {}).get("apiVersion", "")))
        if transferred is None:
            return False
        version = metadata.get("resourceVersion", "")
        await self.merge(
            path, {"metadata": {"managedFields": transferred, "resourceVersion": version}}
        )
        return True

    async def delete(self, path: str, uid: str) -> None:
        """Delete the object with this UID, if it exists. Raises `KubernetesError`."""
        preconditions = {"uid": uid} if uid else {}
        content = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": preconditions,
            "propagationPolicy": "Background",
        }
        try:
            await self._send("DELETE", path, content)
        except StatusError as error:
            if error.status != 404:
                raise

    async def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        parameters: Sequence[tuple[str, str]] = (),
        *,
        content_type: str = JSON,
    ) -> JsonObject:
        octets = await self._request(method, path, body, parameters, content_type=content_type)
        return responses.decode(octets, dict[str, Any], "an object")

    async def _request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        parameters: Sequence[tuple[str, str]] = (),
        *,
        content_type: str = JSON,
        accept: str = JSON,
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
            octets = await read_limited_body(response, LARGEST)
            if not 200 <= response.status < 300:
                if response.status == 401:
                    # The token may have been renewed since the configuration was read.
                    await self._connection.renew()
                retry_after = response.headers.get("Retry-After")
                raise responses.error_of(response.status, octets, retry_after)
        return octets
