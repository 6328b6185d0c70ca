"""The loop of one feed: list, watch from there, list again when a watch cannot go on.

What goes wrong is a status and a pause; what was known stays known meanwhile. It only ends by being
cancelled.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import aiohttp

from resources.kubernetes import wire
from resources.kubernetes.backoff import Backoff
from resources.kubernetes.connection import Connection, body_of
from resources.kubernetes.errors import (
    Expired,
    KubernetesError,
    NotUnderstood,
    Refused,
    Silent,
    Unconfirmed,
    Unreachable,
)
from resources.kubernetes.feed import Feed, Listing
from resources.kubernetes.feed_status import FeedStatus, Phase
from resources.kubernetes.lines import Lines
from resources.kubernetes.selection import Selection
from resources.kubernetes.timeouts import Timeouts
from resources.source import Event

ERROR_BODY = 64 << 10
"""Octets read of an answer that is an error."""
TURN = 200
"""Objects decoded before others have their turn: some milliseconds."""
POISONED = 3
"""Watches from one version that break before it is given up: an event in it may be why."""


class Reflector:
    """Keeps one feed as the API server says."""

    def __init__(
        self,
        feed: Feed[Any],
        connection: Connection,
        selection: Selection,
        timeouts: Timeouts,
        rng: random.Random,
        *,
        on_list: Callable[[], None],
        on_event: Callable[[Event], None],
        on_status: Callable[[], None],
    ) -> None:
        self.feed = feed
        self._connection = connection
        self._selection = selection
        self._timeouts = timeouts
        self._rng = rng
        self._on_list = on_list
        self._on_event = on_event
        self._on_status = on_status
        self._backoff = Backoff(
            rng,
            first=timeouts.first_retry,
            longest=timeouts.longest_retry,
            longest_retry_after=timeouts.longest_retry_after,
        )
        self._version = ""
        """The API version that the server has of the kind."""
        self._forbidden_since: float | None = None
        self._doubtful = False
        """Whether the server was away, so that it may have come back as an older one."""
        self._absent = False
        """Whether the server has said that it has no such kind, when it was asked last."""
        self._broken: tuple[str, int] = ("", 0)
        self._phase = Phase.WAITING
        self._message = ""
        self._cause = ""
        self.lists = 0
        """Complete lists, for the metrics."""
        self.watches = 0
        self.failures = 0

    @property
    def status(self) -> FeedStatus:
        """How it is."""
        feed = self.feed
        return FeedStatus(
            feed.kind.name,
            feed.namespace,
            self._phase,
            self._message,
            len(feed.rows),
            self._cause,
        )

    async def run(self) -> None:
        """List and watch, until cancelled."""
        while True:
            try:
                if not self.feed.version:
                    await self._list()
                elif self._doubtful:
                    await self._compare()
                self._doubtful = False
                await self._watch()
            except KubernetesError as error:
                pause = await self._failed(error)
                await asyncio.sleep(pause)

    def resume(self) -> None:
        """Let what was known before the start count: no list has come."""
        self._settle()

    # Listing

    async def _list(self) -> None:
        """Read a complete list and tell it."""
        try:
            listing = await self._read_list(paged=True)
        except Expired:
            # The pages took too long, and the server has compacted what they were of.
            listing = await self._read_list(paged=False)
        self.feed.finish(listing)
        self.lists += 1
        self._forbidden_since = None
        self._absent = False
        self._set(Phase.FOLLOWING, "")
        self._on_list()

    async def _read_list(self, *, paged: bool) -> Listing[Any]:
        listing = Listing(self.feed)
        token = ""
        while True:
            parameters = [("limit", str(self._timeouts.page_size))] if paged else []
            if token:
                parameters.append(("continue", token))
            page = await self._page(parameters)
            listing.begin(page.metadata.resource_version)
            items = page.items or []
            for start in range(0, len(items), TURN):
                listing.add(items[start : start + TURN])
                await asyncio.sleep(0)
            token = page.metadata.continue_
            if not token:
                if page.metadata.remaining_item_count > 0:
                    raise NotUnderstood("says that there is more, and not where")
                return listing

    async def _page(self, parameters: list[tuple[str, str]]) -> wire.List:
        """Get one page in the API version that the server has."""
        kind = self.feed.kind
        versions = (self._version,) if self._version else kind.versions
        for version in versions:
            try:
                page = await self._page_of(version, parameters)
            except Refused as error:
                if error.status == 404 and kind.custom:
                    self._version = ""
                    if version != versions[-1]:
                        continue
                raise
            self._version = version
            return page
        raise AssertionError("a kind has a version")

    async def _page_of(self, version: str, parameters: list[tuple[str, str]]) -> wire.List:
        path = self.feed.kind.path(version, self.feed.namespace)
        asked = [*parameters, *self._selection.parameters]
        async with self._connection.get(
            path, asked, silence=self._timeouts.list_silence
        ) as response:
            await _check(response)
            body = await response.read()
        page = wire.decode(body, wire.List, "a list")
        if not page.kind.endswith("List"):
            raise NotUnderstood(f"sends {page.kind[:64] or 'something'} in place of a list")
        return page

    async def _compare(self) -> None:
        """Find out whether a server that was away is now one of an older state."""
        page = await self._page([("limit", "1")])
        self.feed.doubt(page.metadata.resource_version)

    # Watching

    async def _watch(self) -> None:
        """Follow from the version on until the server ends it. Raises for every other end."""
        t = self._timeouts
        seconds = self._rng.uniform(t.watch_shortest, t.watch_longest)
        asked = [
            ("watch", "1"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", self.feed.version),
            ("timeoutSeconds", str(max(1, round(seconds)))),
            *self._selection.parameters,
        ]
        path = self.feed.kind.path(self._version, self.feed.namespace)
        loop = asyncio.get_running_loop()
        async with self._connection.get(path, asked, silence=t.watch_silence) as response:
            await _check(response)
            self.watches += 1
            self._set(Phase.FOLLOWING, "")
            began = loop.time()
            try:
                await self._read_events(response.content)
            finally:
                if lasted := loop.time() - began >= t.stable_watch:
                    self._backoff.reset()
        if not lasted:
            await asyncio.sleep(self._backoff.next())

    async def _read_events(self, content: aiohttp.StreamReader) -> None:
        lines = Lines()
        async for octets in content.iter_any():
            for count, line in enumerate(lines.feed(octets), 1):
                self._take(line)
                if count % TURN == 0:
                    await asyncio.sleep(0)

    def _take(self, line: bytes) -> None:
        problems = self.feed.problems.copy() if self.feed.problems else {}
        event = self.feed.take(line)
        if event is not None:
            self._on_event(event)
        if problems != self.feed.problems:
            self._on_status()

    # What goes wrong

    async def _failed(self, error: KubernetesError) -> float:
        """Note a failure; how long to wait, in seconds."""
        t = self._timeouts
        self.failures += 1
        match error:
            case Unconfirmed():
                self._set(Phase.FAILING, str(error))
                return t.confirm_list * (0.5 + self._rng.random())
            case Silent() if self.feed.version:
                # Perhaps nothing happens, and the server sends no bookmarks; it is asked to be sure.
                self._doubtful = True
                self._suspect()
                return self._backoff.next()
            case Expired():
                self.feed.relist()
                return self._backoff.next()
            case Refused(status=404) if self.feed.kind.custom:
                return self._missing()
            case Refused(status=403):
                return self._forbidden(error)
            case Refused(status=401):
                await self._connection.renew()
            case Refused(status=429 | 503 | 504):
                pass
            case Refused():
                self.feed.relist()
            case NotUnderstood():
                self._suspect()
            case Unreachable() | Silent():
                self._doubtful = True
                await self._connection.renew()
        cause = self._explain(error)
        kept = f"; the {len(self.feed.rows)} known before still count"
        self._set(Phase.FAILING, cause + kept * bool(self.feed.rows), cause)
        wait = error.retry_after if isinstance(error, Refused) else 0.0
        return self._backoff.next(wait)

    def _suspect(self) -> None:
        """Count watches that broke at one version: what comes after it may never be understood."""
        version, count = self._broken
        count = count + 1 if version == self.feed.version else 1
        self._broken = (self.feed.version, count)
        if count >= POISONED:
            self.feed.relist()

    def _missing(self) -> float:
        kind = self.feed.kind
        name = f"{kind.plural}.{kind.group}"
        self.feed.relist()
        if self.feed.recalled and self._absent:
            # Twice, half a minute apart: it was taken away while nobody watched its objects go.
            self.feed.forget()
            if self.feed.settled:
                self._on_list()
        self._absent = True
        if self.feed.rows:
            kept = f"; the {len(self.feed.rows)} known before still count"
            self._set(Phase.FAILING, f"the API server has no {name} any more{kept}")
        else:
            self._settle()
            self._set(Phase.MISSING, f"the API server has no {name} (is its CRD installed?)")
        return self._timeouts.missing_kind * (0.75 + self._rng.random() / 2)

    def _forbidden(self, error: Refused) -> float:
        now = asyncio.get_running_loop().time()
        verb = "watch" if self.feed.version else "list"
        since = self._forbidden_since
        if since is None:
            since = self._forbidden_since = now
        if not self.feed.rows and now - since >= self._timeouts.forbidden_grace:
            self._settle()
        kept = f"; the {len(self.feed.rows)} known before still count" if self.feed.rows else ""
        where = f" in namespace {self.feed.namespace}" if self.feed.namespace else ""
        resource = self.feed.kind.plural
        if self.feed.kind.group:
            resource = f"{resource}.{self.feed.kind.group}"
        self._set(Phase.FORBIDDEN, f"may not {verb} {resource}{where}: {error.message}{kept}")
        return self._backoff.next(error.retry_after)

    def _settle(self) -> None:
        """Let the others begin without this kind."""
        if not self.feed.settled:
            self.feed.settle()
            self._on_list()

    def _explain(self, error: KubernetesError) -> str:
        text = str(error)
        if isinstance(error, NotUnderstood | Refused):
            text = f"{self._connection.server} {'answers ' if isinstance(error, Refused) else ''}{text}"
        return text

    def _set(self, phase: Phase, message: str, cause: str = "") -> None:
        told = (phase, message, cause)
        if told != (self._phase, self._message, self._cause):
            self._phase, self._message, self._cause = told
            self._on_status()


async def _check(response: aiohttp.ClientResponse) -> None:
    """Raise for an answer that is an error, or not JSON."""
    if response.status != 200:
        body = await body_of(response, ERROR_BODY)
        raise wire.error_of(response.status, body, response.headers.get("Retry-After"))
    if response.content_type != "application/json":
        raise NotUnderstood(f"answers {response.content_type} instead of JSON")
