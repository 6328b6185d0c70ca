"""The loop of one feed: list, watch from its resource version, list again when the watch expires.

An error sets the status and is retried after a pause; the rows are kept. The loop ends only by
cancellation.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import aiohttp

from resources.enumeration import counted
from resources.kubernetes import responses
from resources.kubernetes.backoff import Backoff
from resources.kubernetes.connection import JSON, Connection
from resources.kubernetes.discovery import Discovery
from resources.kubernetes.errors import (
    Expired,
    InvalidResponse,
    KubernetesError,
    NotServed,
    ReadTimeout,
    StatusError,
    UnconfirmedList,
    Unreachable,
)
from resources.kubernetes.feed import LAST_SECONDS, Feed
from resources.kubernetes.feed_status import FeedStatus, Phase
from resources.kubernetes.lines import process_lines
from resources.kubernetes.recovery import Recovery
from resources.kubernetes.selection import Selection
from resources.kubernetes.served_kind import ServedKind
from resources.kubernetes.timeouts import Timeouts
from resources.source import Event

MAX_BROKEN_WATCHES = 3
"""Failed watches from one version before a new list: an event after it may be the cause."""


REASONS_OF_ENDS: Final = ("closed", "relist", "expired", "silent", "unreachable", "rejected")
"""The API server has closed it, as it does after some minutes; a list is due; 410 Gone; no data for
too long; no connection; any other response."""


class Reflector:
    """Keeps the rows of one feed equal to the API server's objects."""

    def __init__(
        self,
        feed: Feed[Any],
        connection: Connection,
        discovery: Discovery,
        recovery: Recovery,
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
        self._discovery = discovery
        self._served = ServedKind(feed, connection, discovery, selection, timeouts)
        self._recovery = recovery
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
        self._list_again = Backoff(rng, first=timeouts.confirm_list, longest=timeouts.longest_retry)
        """Pauses between the lists that confirm one in which many objects are missing."""
        self._rechecks = 0
        """Lists that remain after a mass of objects was deleted: it may have been wrong."""
        self._list_at: float | None = None
        """When the watch ends for another list, by the loop's clock."""
        self._limit: asyncio.Timeout | None = None
        """Of the present watch."""
        self._missing_pause = timeouts.missing_kind
        """Pause between two checks whether the kind is served."""
        self._was_served = False
        self._forbidden_since: float | None = None
        self._failing_since: float | None = None
        """Of a single object, or a kind that fails alone, without a list."""
        self._check_version = False
        """True after an outage: the API server may have been restored from an older state."""
        self._broken: tuple[str, int] = ("", 0)
        self._phase = Phase.WAITING
        self._message = ""
        self._cause = ""
        self.lists = 0
        """Complete lists."""
        self.watches = 0
        self.watch_ends: Counter[str] = Counter()
        """Watches that ended and were started again, by `REASONS_OF_ENDS`."""
        self.failures = 0

    @property
    def status(self) -> FeedStatus:
        """The present state of the loop that lists and watches."""
        feed = self.feed
        return FeedStatus(
            feed.kind.name,
            feed.namespace,
            self._phase,
            self._message,
            len(feed.rows),
            self._cause,
            feed.object_name,
            self._phase in (Phase.WAITING, Phase.FORBIDDEN)
            or (self._phase is Phase.FAILING and not self.lists),
        )

    async def run(self) -> None:
        """List, watch, and list again when the watch expires, until cancelled."""
        while True:
            try:
                if not self.feed.version:
                    await self._list()
                elif self._check_version:
                    await self._compare()
                self._check_version = False
                await self._watch()
            except KubernetesError as error:
                pause = await self._failed(error)
                if isinstance(error, NotServed):
                    await self._discovery.wait(pause)
                elif self._cause:
                    await self._recovery.pause(pause)
                else:
                    await asyncio.sleep(pause)

    def use_restored(self) -> None:
        """Use the restored rows in the list-and-watch loop, as no list was completed."""
        self._mark_synced()

    def set_labels(self, labels: Mapping[str, str]) -> None:
        """Take the labels of the node into the list-and-watch loop, where they matter."""
        feed = self.feed
        dropped = feed.set_labels(labels)
        if not feed.version and self._limit is not None:
            self._limit.reschedule(asyncio.get_running_loop().time())
        if dropped and feed.synced:
            self._on_list()

    # Listing

    async def _list(self) -> None:
        """Read a complete list and report it."""
        try:
            listing = await self._served.read_list(paged=True)
        except Expired:
            # The pages took too long: the API server has compacted their resource version.
            listing = await self._served.read_list(paged=False)
        now = asyncio.get_running_loop().time()
        deleted = self.feed.replace(listing, now)
        self.lists += 1
        self._forbidden_since = self._failing_since = None
        self._was_served = True
        self._missing_pause = self._timeouts.missing_kind
        self._schedule_list(deleted, now)
        self._set_following()
        self._on_list()

    def _schedule_list(self, deleted: int, now: float) -> None:
        """Determine when the next list is due: many objects are held, or were deleted a while ago.

        ``deleted`` is the number of held objects that the present list deletes.
        """
        timeouts = self._timeouts
        self._list_at = None
        if deleted:
            self._rechecks = timeouts.rechecks
        if self.feed.held:
            pause = max(self.feed.disappearance.rest, timeouts.confirm_list)
            if pause > LAST_SECONDS:
                pause = min(pause, self._list_again.next())
            self._list_at = now + pause
            return
        self._list_again.reset()
        if self._rechecks:
            self._rechecks -= 1
            self._list_at = now + timeouts.recheck_list * (0.75 + self._rng.random() / 2)

    def _set_following(self) -> None:
        held = len(self.feed.held)
        if not held:
            self._set(Phase.FOLLOWING, "")
            return
        hold = self.feed.disappearance.required
        missing = f"{held} of {counted(len(self.feed.rows), 'object')}"
        if hold < self._timeouts.mass_withdraw_hold:
            missing += (
                f" is missing from the list; it is kept until a list {hold:g} s later confirms it"
            )
        else:
            missing += (
                " are missing from the list; they are kept until lists have confirmed it "
                f"for {hold:g} s (--mass-withdraw-hold)"
            )
        self._set(Phase.HOLDING, missing)

    async def _compare(self) -> None:
        """Check that the API server's state is not older than the known one."""
        page = await self._served.page([("limit", "1")])
        self.feed.check_version(page.metadata.resource_version)

    # Watching

    async def _watch(self) -> None:
        """Watch from the feed's version until the server ends it, or a list is due.

        Raises for every other end.
        """
        if not self.feed.version:
            return
        try:
            async with asyncio.timeout_at(self._list_at) as limit:
                self._limit = limit
                await self._watch_on()
            self.watch_ends["closed"] += 1
        except KubernetesError as error:
            self.watch_ends[error.end_of_watch] += 1
            raise
        except TimeoutError:
            if not limit.expired():
                raise
            self.watch_ends["relist"] += 1
            self._list_at = None
            self.feed.request_list()
        finally:
            self._limit = None

    async def _watch_on(self) -> None:
        t = self._timeouts
        seconds = self._rng.uniform(t.watch_shortest, t.watch_longest)
        query = [
            ("watch", "1"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", self.feed.version),
            ("timeoutSeconds", str(max(1, round(seconds)))),
            *self._selection.parameters,
        ]
        loop = asyncio.get_running_loop()
        accept = responses.METADATA if self._served.metadata_only else JSON
        async with self._connection.get(
            self._served.path, query, silence=t.watch_silence, accept=accept
        ) as response:
            await self._check_watch(response)
            self.watches += 1
            self._set_following()
            began = loop.time()
            try:
                await process_lines(response.content.iter_any(), self._process)
            finally:
                if lasted := loop.time() - began >= t.stable_watch:
                    self._backoff.reset()
        if not lasted:
            await asyncio.sleep(self._backoff.next())

    async def _check_watch(self, response: aiohttp.ClientResponse) -> None:
        try:
            await responses.check(response)
        except StatusError as error:
            self._served.check(error)
            raise

    def _process(self, line: bytes) -> None:
        problems = self.feed.problems.copy() if self.feed.problems else {}
        event = self.feed.process_line(line)
        if event is not None:
            self._on_event(event)
        if problems != self.feed.problems:
            self._on_status()

    # Errors

    async def _failed(self, error: KubernetesError) -> float:
        """Process a failure; returns the pause in seconds."""
        self.failures += 1
        self._backoff.bound(self._recovery.first, self._recovery.longest)
        failed_list = not self.feed.version or self._check_version
        if failed_list and not isinstance(error, NotServed):
            # Or an outage goes on: both confirm nothing.
            self.feed.disappearance.interrupt()
        if self.feed.object_name:
            self._release(error)
        match error:
            case UnconfirmedList():
                self._set(Phase.FAILING, str(error))
                return self._timeouts.confirm_list * (0.5 + self._rng.random())
            case ReadTimeout() if self.feed.version:
                # Possibly no object changes, and the server sends no bookmarks: check its version.
                self._check_version = True
                self._count_broken_watch()
                return self._backoff.next()
            case Expired():
                self.feed.request_list()
                return self._backoff.next()
            case NotServed():
                return self._missing()
            case StatusError(status=403):
                return self._forbidden(error)
        await self._recover_from(error)
        cause = self._explain(error)
        kept = f"; the {len(self.feed.rows)} known before are kept"
        self._set(Phase.FAILING, cause + kept * bool(self.feed.rows), cause)
        if not self.feed.object_name:
            self._release_others(error)
        retry_after = error.retry_after if isinstance(error, StatusError) else 0.0
        return self._backoff.next(retry_after)

    def _release(self, error: KubernetesError) -> None:
        """Let the rest not wait for a single object that cannot be read, while others are.

        At once where it may not be read; else after a while, as the next attempt may succeed.
        """
        answered = isinstance(error, StatusError)
        if not answered and (isinstance(error, Unreachable) or not self._recovery.reading):
            return
        now = asyncio.get_running_loop().time()
        if self._failing_since is None:
            self._failing_since = now
        is_over = now - self._failing_since >= self._timeouts.forbidden_grace
        if is_over or (isinstance(error, StatusError) and error.status == 403):
            self._mark_synced()

    def _release_others(self, error: KubernetesError) -> None:
        """Let its dialect not wait for a kind that has never been listed, and fails alone.

        Not for a kind that all dialects share, nor for an error of the whole server: discovery,
        rejected credentials, too many requests.
        """
        of_server = isinstance(error, Unreachable) or (
            isinstance(error, StatusError) and error.status in (401, 429)
        )
        is_alone = bool(self.feed.kind.custom and self._served.version and self._recovery.reading)
        if of_server or not is_alone or self.lists or self.feed.rows:
            self._failing_since = None
            return
        now = asyncio.get_running_loop().time()
        if self._failing_since is None:
            self._failing_since = now
        if now - self._failing_since >= self._timeouts.failing_grace:
            self._mark_synced()

    async def _recover_from(self, error: KubernetesError) -> None:
        """Prepare the next attempt: new credentials, a new list, or a check of the version."""
        match error:
            case StatusError(status=401):
                await self._connection.renew()
            case StatusError(status=429 | 503 | 504):
                pass
            case StatusError():
                self.feed.request_list()
            case InvalidResponse():
                self._count_broken_watch()
            case Unreachable() | ReadTimeout():
                self._check_version = True
                await self._connection.renew()

    def _count_broken_watch(self) -> None:
        """Count the failed watches from one version: an event after it may be undecodable."""
        version, count = self._broken
        count = count + 1 if version == self.feed.version else 1
        self._broken = (self.feed.version, count)
        if count >= MAX_BROKEN_WATCHES:
            self.feed.request_list()

    def _missing(self) -> float:
        kind = self.feed.kind
        name = f"{kind.plural}.{kind.group}"
        deleted, absent = "", ""
        if kind.custom:
            deleted, absent = " (was its CRD deleted?)", " (is its CRD installed?)"
        self.feed.request_list()
        if self.feed.confirm_missing(asyncio.get_running_loop().time()) and self.feed.synced:
            self._on_list()
        if self.feed.rows:
            kept = f"; the {len(self.feed.rows)} known before are kept"
            self._set(Phase.FAILING, f"the API server has no {name} any more{kept}")
        else:
            self._mark_synced()
            if self._was_served:
                self._set(Phase.REMOVED, f"the API server has no {name} any more{deleted}")
            else:
                self._set(Phase.MISSING, f"the API server has no {name}{absent}")
        pause = self._missing_pause
        self._missing_pause = min(2 * pause, self._timeouts.longest_missing)
        return pause * (1 + self._rng.random() / 2)

    def _forbidden(self, error: StatusError) -> float:
        now = asyncio.get_running_loop().time()
        verb = "watch" if self.feed.version else "list"
        since = self._forbidden_since
        if since is None:
            since = self._forbidden_since = now
        if not self.feed.rows and now - since >= self._timeouts.forbidden_grace:
            self._mark_synced()
        kept = f"; the {len(self.feed.rows)} known before are kept" if self.feed.rows else ""
        where = f" in namespace {self.feed.namespace}" if self.feed.namespace else ""
        resource = self.feed.kind.plural
        if self.feed.kind.group:
            resource = f"{resource}.{self.feed.kind.group}"
        self._set(Phase.FORBIDDEN, f"may not {verb} {resource}{where}: {error.message}{kept}")
        return self._backoff.next(error.retry_after)

    def _mark_synced(self) -> None:
        """Report the feed as synced, so that other kinds do not wait for a kind that is refused."""
        if not self.feed.synced:
            self.feed.synced = True
            self._on_list()

    def _explain(self, error: KubernetesError) -> str:
        text = str(error)
        if isinstance(error, InvalidResponse | StatusError):
            verb = "answers " if isinstance(error, StatusError) else ""
            text = f"{self._connection.server} {verb}{text}"
        return text

    def _set(self, phase: Phase, message: str, cause: str = "") -> None:
        state = (phase, message, cause)
        if state != (self._phase, self._message, self._cause):
            if self._cause and phase in (Phase.FOLLOWING, Phase.HOLDING):
                self._recovery.end()
            reading = (Phase.FOLLOWING, Phase.HOLDING)
            if not self.feed.object_name:
                self._recovery.reading += (phase in reading) - (self._phase in reading)
            self._phase, self._message, self._cause = state
            self._on_status()
