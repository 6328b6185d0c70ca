"""Reconciles the objects that a node writes about itself with the API server, kind by kind.

The objects are listed at the start, every `LIST_SECONDS`, and after an answer that does not fit the
list. A change is written after `SETTLE_SECONDS`, in which further changes join it, and an object at
most once in `INTERVAL_SECONDS`; a change that is not prompt waits for up to a minute. An error that
concerns one object delays that object, any other error its kind. A kind that the API server does not
have is requested again with the next list.

Of two objects with the same labels the older one is kept. Labels and owners of other writers are
replaced where they are ours to set; other labels are left.
"""

from __future__ import annotations

import random
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Mapping,
    Sequence,
)
from typing import Any, Final, NamedTuple, Protocol, final

import msgspec
from reactivex import Observable

from reconcilers import conditions
from reconcilers.api_server import reconcile_error
from reconcilers.dialect import NodeObject
from reconcilers.report.node_objects.place import Place
from reconcilers.report.node_objects.stored import (
    Accepted,
    JsonObject,
    Stored,
    canonical,
    kept,
    replaced,
    stored,
)
from reconcilers.target import Description, NotNow, Pace
from reconcilers.target.given import GivenObjects
from reconcilers.target.reconciler import ObjectKey, Part, Parts, State
from reconcilers.target.write_spread import COUNT_INTERVAL_SECONDS, RequestRate, WriteSpread
from resources import metav1
from resources.kubernetes import KubernetesError, StatusError
from statedb import Snapshot

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
OF_ONE_OBJECT: Final = (400, 404, 409, 422)
"""HTTP statuses that concern the object, and not its kind."""
OUTDATED: Final = (404, 409)
"""HTTP statuses of an object, or a kind, that is not as it was listed."""
LABELS, OWNERS, STATUS = "labels", "ownerReferences", "status"
"""Parts of an object."""


class Duplicate(NamedTuple):
    """Another object with the same labels: a part that no desired object has."""

    name: str
    uid: str


class NodeObjectClient(Protocol):
    """Requests to an API server; `resources.kubernetes.Writer` implements them."""

    def pages(
        self, path: str, parameters: Sequence[tuple[str, str]]
    ) -> AsyncIterator[list[JsonObject]]:
        """Yield the pages of a list of the node's objects."""

    async def create(self, path: str, content: Mapping[str, Any]) -> JsonObject:
        """Create an object of the node in a collection."""

    async def merge(self, path: str, content: Mapping[str, Any]) -> JsonObject:
        """Patch an object of the node by a JSON merge patch (RFC 7386)."""

    async def delete(self, path: str, uid: str) -> None:
        """Delete the node's object with this UID, if it exists."""


@final
class ReportedNodeObjects(GivenObjects[NodeObject]):
    """The objects of one kind: ``(label, ...)``, the values of `NodeObjectKind.identity`."""

    def __init__(
        self,
        client: NodeObjectClient,
        place: Place,
        rng: random.Random,
        changed: Observable[Any],
        *,
        enabled: bool,
        on_write: Callable[[], None],
        now: Callable[[], float],
        wall: Callable[[], float],
        nodes: Callable[[], int] = lambda: 1,
    ) -> None:
        """If ``enabled`` is false, all objects of the node are deleted.

        ``changed`` emits after calls of `give`; ``on_write`` is called after each request that changed
        something; ``now`` is a monotonic clock, ``wall`` Unix time, in seconds; ``nodes`` returns the
        number of nodes of the cluster.
        """
        kind = place.kind.kind.name

        def list_again() -> float:
            longest = max(LIST_SECONDS, nodes() / LISTS_PER_SECOND)
            return longest * (0.75 + 0.5 * rng.random())

        super().__init__(
            Description(
                name=kind,
                order=10,
                tables=(),
                # A kind that cannot be listed delays no other kind.
                target=f"API server, {place.path}",
                summary=f"objects of this node of the kind {kind}",
                stream=changed,
                pace=Pace(
                    settle=SETTLE_SECONDS,
                    interval=INTERVAL_SECONDS,
                    first_retry=FIRST_RETRY_SECONDS,
                    last_retry=LONGEST_RETRY_SECONDS,
                    jitter=(0.5, 1.0),
                    list_again=list_again,
                ),
            )
        )
        self.place = place
        self._kind = kind
        self._client = client
        self._enabled = enabled
        self._on_write = on_write
        self._now = now
        self._wall = wall
        self._rate = RequestRate(nodes)
        self._spread = WriteSpread(rng.random, nodes)
        self._stored: dict[ObjectKey, list[Stored]] = {}
        self._accepted: dict[ObjectKey, Accepted] = {}
        self._written: dict[ObjectKey, tuple[float, Any]] = {}
        """Time and prompt part of the last write."""
        self._slow: dict[ObjectKey, float] = {}
        """When changes are written that are not prompt."""
        self.missing = False
        """True if the API server does not have the kind."""

    @property
    def count(self) -> int:
        """The number of objects that the node is to have of the kind."""
        return len(self.given) if self._enabled else 0

    def name_of(self, key: ObjectKey) -> str:
        """Return the name of a node's object in the API server; empty without one yet."""
        present = self._stored.get(key)
        return kept(present).name if present else ""

    async def actual_objects(self) -> Collection[ObjectKey]:
        """List the objects of the node; none if the API server lacks the kind."""
        listed: dict[ObjectKey, list[Stored]] = {}
        self.missing = False
        try:
            async for page in self._client.pages(self.place.path, [self.place.selector]):
                for content in page:
                    row = stored(content)
                    listed.setdefault(self.place.kind.labels_of(row.labels), []).append(row)
        except KubernetesError as error:
            if not isinstance(error, StatusError) or error.status != 404:
                raise reconcile_error(error, self._kind) from None
            listed, self.missing = {}, True
        self._stored = listed
        return listed.keys()

    def wanted(self, snapshot: Snapshot, key: ObjectKey) -> bool:
        """True if the node is to have the object, and the API server has the kind."""
        return self._enabled and not self.missing and super().wanted(snapshot, key)

    def desired(self, snapshot: Snapshot, key: ObjectKey, parts: Parts) -> State:
        """Return the parts of a node's object: labels, owners and status."""
        del snapshot, parts
        return self._parts(key)

    def actual(self, key: ObjectKey, parts: Parts) -> State | None:
        """Return the stored parts of a node's object, and its duplicates."""
        del parts
        present = self._stored.get(key)
        if not present:
            self._forget(key)
            return None
        ours = kept(present)
        stored_parts: dict[Part, Any] = {
            LABELS: ours.labels,
            OWNERS: ours.owners,
            STATUS: ours.status,
        }
        if key in self.given:
            wanted = self._parts(key)
            stored_parts[LABELS] = {name: ours.labels.get(name) for name in wanted[LABELS]}
            if self._accepted.get(key) == Accepted(wanted[STATUS], ours.status):
                stored_parts[STATUS] = wanted[STATUS]
            if wanted == stored_parts:
                self._note(key, self._last_write(key))
        return stored_parts | {
            Duplicate(duplicate.name, duplicate.uid): duplicate
            for duplicate in present
            if duplicate is not ours
        }

    async def update(self, key: ObjectKey, changes: State) -> None:
        """Delete duplicates of a node's object, create it or change it, write its status."""
        row = self.given[key]
        if changes.keys() == {STATUS} and row.prompt is not None:
            self._check_prompt(key, row.prompt)
        self._check_rate()
        await self._delete_duplicates(key, changes)
        wanted = self._parts(key)
        path = self.place.path
        present = self._stored.get(key)
        if not present:
            content = self.place.content(wanted[LABELS], wanted[OWNERS])
            ours = await self._send(key, "", self._client.create(path, content))
        else:
            ours = kept(present)
            metadata: JsonObject = {LABELS: wanted[LABELS]} if LABELS in changes else {}
            if OWNERS in changes:
                metadata[OWNERS] = list(wanted[OWNERS])
            if metadata:
                request = self._client.merge(f"{path}/{ours.name}", {"metadata": metadata})
                ours = await self._send(key, ours.name, request)
        octets: bytes = wanted[STATUS]
        if octets != ours.status and self._accepted.get(key) != Accepted(octets, ours.status):
            # A merge patch removes a field by null.
            status: JsonObject = msgspec.json.decode(octets)
            none = dict.fromkeys(msgspec.json.decode(ours.status).keys() - status.keys())
            request = self._client.merge(f"{path}/{ours.name}/status", {"status": none | status})
            ours = await self._send(key, ours.name, request)
            self._accepted[key] = Accepted(octets, ours.status)
        self._note(key, self._now())

    async def delete(self, key: ObjectKey) -> None:
        """Delete all objects of the node with these labels."""
        self._check_rate()
        for row in list(self._stored.get(key, ())):
            await self._remove(key, row.name, row.uid)
        self._forget(key)

    def text(self, part: Part) -> str:
        """Return the name of a part of a node's object, or of a duplicate."""
        return part.name if isinstance(part, Duplicate) else str(part)

    # Requests

    def _check_rate(self) -> None:
        wait = self._rate.wait(self._now())
        if wait > 0.0:
            raise NotNow(wait, all_objects=True)

    def _check_prompt(self, key: ObjectKey, prompt: Any) -> None:  # noqa: ANN401
        """Raise `NotNow` for a change that can wait."""
        now = self._now()
        written_at, written = self._written.get(key, (float("-inf"), None))
        if prompt != written:
            return
        last = max(written_at, now - COUNT_INTERVAL_SECONDS)
        due = self._slow.setdefault(key, self._spread.due(now, last))
        if now < due:
            raise NotNow(due - now)

    def _note(self, key: ObjectKey, written_at: float) -> None:
        """Note that an object is as it shall be."""
        self._slow.pop(key, None)
        self._written[key] = (written_at, self.given[key].prompt)

    def _last_write(self, key: ObjectKey) -> float:
        return self._written.get(key, (float("-inf"), None))[0]

    def _forget(self, key: ObjectKey) -> None:
        for known in (self._accepted, self._written, self._slow):
            known.pop(key, None)

    async def _delete_duplicates(self, key: ObjectKey, changes: State) -> None:
        for part in changes:
            if isinstance(part, Duplicate):
                await self._remove(key, part.name, part.uid)

    async def _remove(self, key: ObjectKey, name: str, uid: str) -> None:
        await self._send(key, name, self._client.delete(f"{self.place.path}/{name}", uid))

    async def _send(
        self, key: ObjectKey, name: str, request: Awaitable[JsonObject | None]
    ) -> Stored:
        """Send a request and store the answer; for a deletion, that there is nothing any more."""
        self._rate.take()
        try:
            answer = await request
        except KubernetesError as error:
            status = error.status if isinstance(error, StatusError) else 0
            if status in OF_ONE_OBJECT:
                what = f"{self._kind} {name}".rstrip()
                raise reconcile_error(error, what, outdated=status in OUTDATED) from None
            raise reconcile_error(error, self._kind, all_objects=True) from None
        self._on_write()
        made = stored(answer or {})
        present = self._stored.get(key, [])
        self._stored[key] = replaced(present, name or made.name, made if answer else None)
        if not self._stored[key]:
            del self._stored[key]
        return made

    # Content

    def _parts(self, key: ObjectKey) -> dict[str, Any]:
        """Return the parts of an object as they shall be."""
        row, kind = self.given[key], self.place.kind
        labels = {kind.node_label: self.place.label} if kind.node_label else {}
        status = row.status
        if hasattr(status, "conditions"):
            status = self._with_times(key, status)
        return {
            LABELS: {**labels, **row.labels},
            OWNERS: self.place.owners(),
            STATUS: canonical(status),
        }

    def _with_times(self, key: ObjectKey, status: Any) -> Any:  # noqa: ANN401
        """Give conditions the time of their last change, which is now for a changed condition."""
        present = self._stored.get(key)
        known = {"status": msgspec.json.decode(kept(present).status)} if present else {}
        now = metav1.timestamp(self._wall())
        replace = msgspec.structs.replace
        dated = tuple(
            replace(condition, last_transition_time=now) for condition in status.conditions
        )
        return conditions.with_times(replace(status, conditions=dated), conditions.decode(known))
