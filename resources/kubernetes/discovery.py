"""The kinds that an API server serves, and their versions: discovery, shared by all feeds of a source.

A custom kind that is not installed is looked up here and not by lists of its own: one request in some
minutes covers all of them. Source: the Kubernetes API, ``/apis`` (APIGroupList) and
``/apis/GROUP/VERSION`` (APIResourceList).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from resources.kubernetes import responses
from resources.kubernetes.connection import Connection
from resources.kubernetes.errors import StatusError

if TYPE_CHECKING:
    from resources.kind import Kind

T = TypeVar("T")


class Discovery:
    """The groups, versions and kinds of one API server, as of one moment."""

    def __init__(self, connection: Connection, silence: float) -> None:
        """``silence`` is the timeout of a response, in seconds."""
        self._connection = connection
        self._silence = silence
        self._lock = asyncio.Lock()
        self._read_at = float("-inf")
        self._read = asyncio.Event()
        """Set, and replaced, when the groups have been read."""
        self._served: frozenset[str] = frozenset()
        """``group/version`` of all groups."""
        self._kinds: dict[str, frozenset[str]] = {}
        """The plural names of kinds by ``group/version``, as far as they have been requested."""

    async def version_of(self, kind: Kind[Any], *, max_age: float) -> str | None:
        """Return the version in which the API server serves a kind, or None: discovery.

        ``max_age`` limits the age of the answer, in seconds. Raises `KubernetesError`; `StatusError`
        with 403 if discovery is not allowed.
        """
        async with self._lock:
            now = asyncio.get_running_loop().time()
            if now - self._read_at >= max_age:
                groups = await self._get("/apis", responses.GroupList, "API groups")
                versions = (v.group_version for group in groups.groups for v in group.versions)
                self._served = frozenset(versions)
                self._kinds = {}
                self._read_at = now
                self._read.set()
                self._read = asyncio.Event()
            for version in kind.versions:
                name = kind.api_version(version)
                if name in self._served and kind.plural in await self._plurals(name):
                    return version
        return None

    async def wait(self, seconds: float) -> None:
        """Wait until discovery has read the API groups again, or for ``seconds``."""
        try:
            async with asyncio.timeout(seconds):
                await self._read.wait()
        except TimeoutError:
            pass

    async def _plurals(self, name: str) -> frozenset[str]:
        if name not in self._kinds:
            try:
                resources = await self._get(
                    f"/apis/{name}", responses.ResourceList, "API resources"
                )
            except StatusError as error:
                if error.status != 404:
                    raise
                resources = responses.ResourceList()
            self._kinds[name] = frozenset(resource.name for resource in resources.resources)
        return self._kinds[name]

    async def _get(self, path: str, shape: type[T], what: str) -> T:
        async with self._connection.get(path, (), silence=self._silence) as response:
            await responses.check(response)
            return responses.decode(await response.read(), shape, what)
