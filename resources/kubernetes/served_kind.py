"""Reads lists of one kind, in the version of it that the API server serves."""

from __future__ import annotations

import asyncio
from typing import Any

from resources.kubernetes import responses
from resources.kubernetes.connection import JSON, Connection
from resources.kubernetes.discovery import Discovery
from resources.kubernetes.errors import InvalidResponse, NotServed, StatusError
from resources.kubernetes.feed import Feed
from resources.kubernetes.lines import OBJECTS_PER_TURN
from resources.kubernetes.listing import Listing
from resources.kubernetes.selection import Selection
from resources.kubernetes.timeouts import Timeouts


class ServedKind:
    """The kind of a feed as the API server serves it."""

    def __init__(
        self,
        feed: Feed[Any],
        connection: Connection,
        discovery: Discovery,
        selection: Selection,
        timeouts: Timeouts,
    ) -> None:
        self._feed = feed
        self._connection = connection
        self._discovery = discovery
        self._selection = selection
        self._timeouts = timeouts
        self.version = ""
        """The version that is served; empty before it is known."""
        self._trials = -1
        """Lists that had to try whether the kind is served."""

    @property
    def path(self) -> str:
        """The path of the kind's objects in the version that the API server serves."""
        return self._feed.kind.path(self.version, self._feed.namespace)

    @property
    def metadata_only(self) -> bool:
        """True if the served kind's objects are requested as their metadata."""
        return self._feed.kind.metadata_only or self._selection.metadata_only

    async def read_list(self, *, paged: bool) -> Listing[Any]:
        """Read a complete list of the served kind, page by page or at one go."""
        listing = Listing(self._feed)
        token = ""
        while True:
            parameters = [("limit", str(self._timeouts.page_size))] if paged else []
            if token:
                parameters.append(("continue", token))
            page = await self.page(parameters)
            listing.begin(page.metadata.resource_version)
            items = page.items or []
            for start in range(0, len(items), OBJECTS_PER_TURN):
                listing.add(items[start : start + OBJECTS_PER_TURN])
                await asyncio.sleep(0)
            token = page.metadata.continue_
            if listing.outdated:
                listing, token = Listing(self._feed), ""
                continue
            if not token:
                if page.metadata.remaining_item_count > 0:
                    raise InvalidResponse("announces more objects without a continue token")
                return listing

    async def page(self, parameters: list[tuple[str, str]]) -> responses.List:
        """Return one page of the kind. Raises `NotServed` for a kind that is not served."""
        if not self.version:
            self.version = await self._find_version()
        try:
            return await self._request(parameters)
        except StatusError as error:
            self.check(error)
            raise

    def check(self, error: StatusError) -> None:
        """Forget the served version after an error of a kind without one. Raises `NotServed` then."""
        if error.status == 404 and self._feed.kind.may_be_missing:
            self.version = ""
            raise NotServed from None

    async def _find_version(self) -> str:
        """Return the version of the kind that is served. Raises `NotServed`."""
        kind = self._feed.kind
        if not kind.may_be_missing:
            return kind.versions[0]
        try:
            # One kind's reading of discovery wakes all that wait for it: they have seen older answers.
            max_age = self._timeouts.missing_kind / 2
            version = await self._discovery.version_of(kind, max_age=max_age)
        except StatusError as error:
            if error.status != 403:
                raise
            # Without discovery: one version after the other, a list each.
            self._trials += 1
            return kind.versions[self._trials % len(kind.versions)]
        if version is None:
            raise NotServed
        return version

    async def _request(self, parameters: list[tuple[str, str]]) -> responses.List:
        query = [*parameters, *self._selection.parameters]
        kind = self._feed.kind
        accept = responses.METADATA_LIST if self.metadata_only else JSON
        async with self._connection.get(
            self.path, query, silence=self._timeouts.list_silence, accept=accept
        ) as response:
            await responses.check(response)
            body = await response.read()
        page = responses.decode(body, responses.List, "a list")
        wanted = (kind.api_version(self.version), f"{kind.name}List")
        if self.metadata_only:
            wanted = ("meta.k8s.io/v1", "PartialObjectMetadataList")
        if (page.api_version, page.kind) != wanted:
            sent = " ".join(part[:64] for part in (page.api_version, page.kind) if part)
            raise InvalidResponse(f"sends {sent or 'something'} in place of {' '.join(wanted)}")
        return page
