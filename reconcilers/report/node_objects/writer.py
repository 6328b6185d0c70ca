"""Writes the objects of one node: when a request is sent, and what a failure delays.

The objects are listed at the start, every `LIST_SECONDS`, and after an answer that does not fit the
list. A change is written after `SETTLE_SECONDS`, in which further changes join it, and an object at
most once in `INTERVAL_SECONDS`; a change that is not prompt waits for up to a minute. An error that
concerns one object delays that object, every other one its kind. A kind that the API server does not
have is requested again with the next list.
"""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Protocol, final

import msgspec

from reconcilers import conditions
from reconcilers.dialect import NodeObject, NodeObjectKey
from reconcilers.report.node_objects.changes import (
    Accepted,
    Change,
    Create,
    JsonObject,
    Remove,
    SetMetadata,
    SetStatus,
    Stored,
    Wanted,
    canonical,
    key_of,
    next_change,
    replaced,
    stored,
)
from reconcilers.report.node_objects.place import Place
from reconcilers.report.node_objects.request_rate import RequestRate
from reconcilers.report.write_spread import COUNT_INTERVAL_SECONDS, WriteSpread
from resources.kubernetes import Backoff, KubernetesError, StatusError

SETTLE_SECONDS: Final = 1.0
"""Between a change and its write, so that a session that passes its states is one write."""
INTERVAL_SECONDS: Final = 5.0
"""Between two writes of one object, at the least."""
LIST_SECONDS: Final = 300.0
"""Between two lists of a kind; longer in a large cluster."""
LISTS_PER_SECOND: Final = 5.0
"""Lists of one kind by all agents of a cluster, at the most."""
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 1.0, 300.0
"""Bounds of the pause after a failure."""
SLICE_SECONDS: Final = 0.002
"""Spent at once on objects that need no request."""
OF_ONE_OBJECT: Final = (400, 409, 422)
"""HTTP statuses that concern the object, and not its kind."""


class NodeObjectClient(Protocol):
    """Requests to an API server; `resources.kubernetes.Writer` implements them."""

    def pages(
        self, path: str, parameters: Sequence[tuple[str, str]]
    ) -> AsyncIterator[list[JsonObject]]:
        """Yield the pages of a list."""

    async def create(self, path: str, content: Mapping[str, Any]) -> JsonObject:
        """Create an object in a collection."""

    async def merge(self, path: str, content: Mapping[str, Any]) -> JsonObject:
        """Send a JSON merge patch (RFC 7386)."""

    async def delete(self, path: str, uid: str) -> None:
        """Delete the object with this UID, if it exists."""


class NodeObjectOutcome(msgspec.Struct, frozen=True):
    """A request, or a failure."""

    kind: str
    name: str = ""
    """Empty for a list, and for an object that the API server has not named yet."""
    error: str = ""
    repeated: bool = False
    """True if the failure before had the same error."""


@final
class KindWriter:
    """Writes the objects of one kind."""

    def __init__(
        self,
        client: NodeObjectClient,
        place: Place,
        rng: random.Random,
        *,
        enabled: bool,
        report: Callable[[NodeObjectOutcome], None],
        now: Callable[[], float],
        wall: Callable[[], float],
        nodes: Callable[[], int] = lambda: 1,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """If ``enabled`` is false, all objects of the node are deleted.

        ``report`` receives each request; ``now`` is a monotonic clock, ``wall`` Unix time, ``clock``
        measures work, all in seconds; ``nodes`` returns the number of nodes of the cluster.
        """
        self.place = place
        self.kind = place.kind.kind.name
        self._client = client
        self._rng = rng
        self._enabled = enabled
        self._report = report
        self._now = now
        self._wall = wall
        self._clock = clock
        self._nodes = nodes
        self._rate = RequestRate(nodes)
        self._spread = WriteSpread(rng.random, nodes)
        self._backoff = self._new_backoff()
        self._wanted: dict[NodeObjectKey, NodeObject] = {}
        self._stored: dict[NodeObjectKey, list[Stored]] | None = None
        """None before the first list, and while the API server does not have the kind."""
        self._accepted: dict[NodeObjectKey, Accepted] = {}
        self._due: dict[NodeObjectKey, float] = {}
        self._queue: list[tuple[float, NodeObjectKey]] = []
        """A heap of `_due`; an entry that differs from it is void."""
        self._written: dict[NodeObjectKey, tuple[float, Hashable]] = {}
        """Time and prompt part of the last write."""
        self._failing: dict[NodeObjectKey, tuple[str, Backoff]] = {}
        """Objects that are rejected."""
        self._blocked_until = 0.0
        self._list_due = 0.0
        self._error = ""
        self.missing = False
        """True if the API server does not have the kind."""

    @property
    def count(self) -> int:
        """The number of objects that there shall be."""
        return len(self._wanted) if self._enabled else 0

    @property
    def failure(self) -> str:
        """The present failure, for health; empty without one."""
        if self._error:
            return f"{self._error}; it is retried"
        first = min(self._failing, default=None)
        return "" if first is None else f"{self._failing[first][0]}; it is retried"

    def want(self, key: NodeObjectKey, row: NodeObject | None) -> None:
        """Note an object that shall be so; None: there shall be none."""
        if row is None:
            self._wanted.pop(key, None)
        else:
            self._wanted[key] = row
        if self._stored is None:
            # The list compares all.
            return
        now = self._now()
        written_at, prompt = self._written.get(key, (float("-inf"), None))
        if row is None or row.prompt is None or row.prompt != prompt:
            due = max(now + SETTLE_SECONDS, written_at + INTERVAL_SECONDS)
        else:
            due = self._spread.due(now, max(written_at, now - COUNT_INTERVAL_SECONDS))
        self._schedule(key, min(due, self._due.get(key, due)))

    async def step(self) -> float:
        """List or write what is due; the seconds until the next step, 0.0 where more is due."""
        now = self._now()
        if now < self._blocked_until:
            return self._blocked_until - now
        try:
            if now >= self._list_due:
                await self._list()
                self._recover()
                return 0.0
            return await self._write_next()
        except KubernetesError as error:
            return self._fail(error)

    async def _write_next(self) -> float:
        """Write the object that is due first; objects that need no request are passed over."""
        end = self._clock() + SLICE_SECONDS
        while self._clock() < end:
            now = self._now()
            key = self._first_due()
            if self._stored is None or key is None:
                return max(0.0, self._list_due - now)
            due = self._due[key]
            if due > now:
                return max(0.0, min(due, self._list_due) - now)
            wait = self._rate.wait(now)
            if wait > 0.0:
                return wait
            del self._due[key]
            if await self._write(key, self._stored):
                return 0.0
        return 0.0

    def _first_due(self) -> NodeObjectKey | None:
        while self._queue:
            due, key = self._queue[0]
            if self._due.get(key) == due:
                return key
            heapq.heappop(self._queue)
        return None

    def _schedule(self, key: NodeObjectKey, due: float) -> None:
        if self._due.get(key) != due:
            self._due[key] = due
            heapq.heappush(self._queue, (due, key))

    async def _write(self, key: NodeObjectKey, present: dict[NodeObjectKey, list[Stored]]) -> bool:
        """Send what one object needs; returns False if that is nothing."""
        row = self._wanted.get(key) if self._enabled else None
        sent = False
        name = ""
        try:
            while True:
                objects = present.get(key, [])
                wanted = None if row is None else self._content(row, objects)
                change = next_change(wanted, objects, self._accepted.get(key))
                if change is None:
                    break
                name = getattr(change, "name", "")
                sent = True
                self._rate.take()
                present[key] = await self._send(key, change, wanted, objects)
                self._report(NodeObjectOutcome(self.kind, name))
        except StatusError as error:
            if not self._is_of_object(key, name, error):
                self._schedule(key, self._now())
                raise
            return True
        self._failing.pop(key, None)
        if row is None:
            for known in (present, self._accepted, self._written):
                known.pop(key, None)
        else:
            self._written[key] = (self._now() if sent else self._last_write(key), row.prompt)
        if sent:
            self._recover()
        return sent

    def _last_write(self, key: NodeObjectKey) -> float:
        return self._written.get(key, (float("-inf"), None))[0]

    def _content(self, row: NodeObject, objects: Sequence[Stored]) -> Wanted:
        status = row.status
        if hasattr(status, "conditions"):
            before = min(objects, key=lambda one: (one.created, one.name), default=None)
            known = {} if before is None else {"status": msgspec.json.decode(before.status)}
            now = datetime.fromtimestamp(self._wall(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            status = msgspec.structs.replace(
                status,
                conditions=tuple(
                    msgspec.structs.replace(one, last_transition_time=now)
                    for one in status.conditions
                ),
            )
            status = conditions.with_times(status, conditions.decode(known))
        label = self.place.kind.node_label
        labels = {label: self.place.label} if label else {}
        content: JsonObject = msgspec.json.decode(msgspec.json.encode(status))
        return Wanted({**labels, **row.labels}, self.place.owners(), content)

    async def _send(
        self, key: NodeObjectKey, change: Change, wanted: Wanted | None, objects: list[Stored]
    ) -> list[Stored]:
        path = self.place.path
        match change:
            case Remove(name, uid):
                await self._client.delete(f"{path}/{name}", uid)
                return replaced(objects, name, None)
            case SetMetadata(name, content):
                answer = await self._client.merge(f"{path}/{name}", content)
            case SetStatus(name, content):
                answer = await self._client.merge(f"{path}/{name}/status", content)
            case Create():
                if wanted is None:
                    raise TypeError("an object that shall not be is created")
                answer = await self._client.create(path, self.place.content(wanted))
        made = stored(answer)
        if isinstance(change, SetStatus) and wanted is not None:
            self._accepted[key] = Accepted(canonical(wanted.status), made.status)
        return replaced(objects, made.name, made)

    async def _list(self) -> None:
        found: dict[NodeObjectKey, list[Stored]] = {}
        try:
            pages = self._client.pages(self.place.path, [self.place.selector])
            async for page in pages:
                for content in page:
                    one = stored(content)
                    found.setdefault(key_of(self.place.kind, one.labels), []).append(one)
        except StatusError as error:
            if error.status != 404:
                raise
            self._stored, self.missing = None, True
        else:
            self._stored, self.missing = found, False
        now = self._now()
        least = self._nodes() / LISTS_PER_SECOND
        self._list_due = now + max(LIST_SECONDS, least) * (0.75 + 0.5 * self._rng.random())
        if self._stored is not None:
            for key in self._wanted.keys() | found.keys():
                if key not in self._due:
                    self._schedule(key, now)

    def _is_of_object(self, key: NodeObjectKey, name: str, error: StatusError) -> bool:
        """Delay one object, if an error concerns no other one."""
        now = self._now()
        if error.status == 404 and not self.missing:
            # The object, or its kind, is gone: the list says which.
            self._list_due = min(self._list_due, now + FIRST_RETRY_SECONDS)
        elif error.status not in OF_ONE_OBJECT:
            return False
        elif error.status == 409:
            self._list_due = min(self._list_due, now + FIRST_RETRY_SECONDS)
        before, backoff = self._failing.get(key, ("", self._new_backoff()))
        text = f"{self.kind} {name}".rstrip() + f": {error}"
        self._failing[key] = (text, backoff)
        self._schedule(key, now + backoff.next(error.retry_after))
        self._report(NodeObjectOutcome(self.kind, name, str(error), repeated=text == before))
        return True

    def _recover(self) -> None:
        self._error = ""
        self._backoff.reset()

    def _fail(self, error: KubernetesError) -> float:
        retry_after = error.retry_after if isinstance(error, StatusError) else 0.0
        pause = self._backoff.next(retry_after)
        now = self._now()
        self._blocked_until = now + pause
        # A request without an answer may have been carried out.
        self._list_due = min(self._list_due, self._blocked_until)
        text = f"{self.kind}: {error}"
        self._report(NodeObjectOutcome(self.kind, "", str(error), repeated=text == self._error))
        self._error = text
        return pause

    def _new_backoff(self) -> Backoff:
        return Backoff(self._rng, first=FIRST_RETRY_SECONDS, longest=LONGEST_RETRY_SECONDS)
