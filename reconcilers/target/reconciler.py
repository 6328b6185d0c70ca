"""A reconciler: a kind of object that a target shall hold, and the operations that keep it so.

After statedb's reconciler (`Operations{Update, Delete, Prune}` of cilium/statedb), with an order
added, and with the actual state read from the target instead of being remembered. A reconciler
decides nothing about time: `reconcilers.target.runner` decides what is due, compares, retries and keeps
the status of each object; `reconcilers.target.verification` compares everything.

A target is the speaker, the API server, a FIB, a directory. What reads or changes it may be a
coroutine (`Answer`): the runner waits for it, and other jobs go on. What is no coroutine is called in
the event loop, so it must be quick and must not block.

An *object* (an instance, a peer, a route set) is created, deleted, retried and reported as one. It has
*parts*, which are compared one by one and updated together: the routes of a route set. Objects without
parts of their own have the single part `WHOLE`.
"""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
)
from collections.abc import Set as AbstractSet
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from reactivex import Observable

from reconcilers.sliced_work import Slices
from statedb import Snapshot

ObjectKey: TypeAlias = tuple[str, ...]
"""Names an object within its reconciler: ``(instance,)``, ``(instance, peer)``."""

Part: TypeAlias = Any
"""Names a part within its object; hashable."""

Parts: TypeAlias = Collection[Part] | None
"""Some parts of an object; None is all of them."""

State: TypeAlias = Mapping[Part, Any]
"""Part -> value, as desired or as the target holds it; a part that does not exist is absent.

In changes, None removes a part."""

WHOLE: Final = ""
"""The only part of an object that is compared as one value."""

T = TypeVar("T")
Answer: TypeAlias = T | Awaitable[T]
"""The answer of a target: at once, or as a coroutine."""


class NotNow(Exception):  # noqa: N818  no error: the object waits
    """Raised by a read or an operation for an object that is not due: it waits, and has not failed."""

    def __init__(self, seconds: float, *, all_objects: bool = False) -> None:
        """``seconds`` until it is due; with ``all_objects`` until any object of the reconciler is."""
        super().__init__(seconds)
        self.seconds = seconds
        self.all_objects = all_objects


class ReconcileError(Exception):
    """Raised by a read or an operation that failed; ``str()`` is for people.

    Any other exception is shown with its type, as an error of the program.
    """

    def __init__(
        self,
        text: str,
        *,
        retry_after: float = 0.0,
        all_objects: bool = False,
        outdated: bool = False,
        final: bool = False,
        parts: Collection[Part] | None = None,
    ) -> None:
        """``retry_after``: seconds that the target requires, added to the pause.

        ``parts``: the failed ones; the others of the call were written. None: any may have failed.

        With ``all_objects`` the error concerns every object of the reconciler: it pauses, and lists its
        objects again. ``outdated``: the listing of the target is to be renewed soon. ``final``: no
        retry can help; the object has no status, and is compared again when it changes.
        """
        super().__init__(text)
        self.reason = text
        """The text, or the part of it without what was tried."""
        self.retry_after = retry_after
        self.all_objects = all_objects
        self.outdated = outdated
        self.final = final
        self.parts = parts


class Pace(msgspec.Struct, frozen=True):
    """When the objects of a reconciler are written. All times are in seconds."""

    settle: float = 0.0
    """Between a change of an object and its write: the changes of that time are one write."""
    interval: float = 0.0
    """Between two writes of one object, at the least."""
    first_retry: float = 0.5
    last_retry: float = 30.0
    """Bounds of the pause after a failure, which doubles with each."""
    jitter: tuple[float, float] = (0.75, 1.25)
    """The least and the greatest factor of such a pause, which is random."""
    retry_changed: bool = True
    """True if an object that failed is written when it changes, and not only after the pause."""
    compare: float | None = None
    """After which an object without a change is compared again; None: by `Verification` alone."""
    list_again: Callable[[], float] = lambda: math.inf
    """Returns the time from one listing of all objects to the next one."""


class Description(msgspec.Struct, frozen=True):
    """The facts about a reconciler that do not change."""

    name: str
    """The kind of its objects, in the singular: statuses, logs and metrics carry it."""
    order: int
    """Objects are created in this order, and deleted in the opposite one."""
    tables: tuple[str, ...]
    """The tables that its desired state is read from: a change of one wakes its runner."""
    target: str
    """The holder of its actual state."""
    summary: str
    """One line for people."""
    pace: Pace = Pace()
    ordered: bool = False
    """True if objects are written in the order of `Reconciler.objects`, and not of their keys."""
    stream: Observable[Any] | None = None
    """Emits when `Reconciler.changes` has changes that are in no table."""


class Reconciler(ABC):
    """Keeps one kind of object of a target as it is desired."""

    description: Description
    """Name, order and needs."""

    @abstractmethod
    def changes(self, snapshot: Snapshot) -> Slices[Mapping[ObjectKey, Parts]]:
        """Return the reconciler's objects whose desired state may differ since the last call, by parts.

        The first call returns all objects. No parts, ``()``, is an object that has to exist, or may
        have to go, and whose parts have not changed. The cost is that of the changes.
        """

    def concerns(self, tables: AbstractSet[str]) -> bool:
        """True if this reconciler's `changes` may have some, where these tables have changed.

        A reconciler whose desired state is not in its tables alone overrides it.
        """
        description = self.description
        return description.stream is not None or not tables.isdisjoint(description.tables)

    @abstractmethod
    def objects(self, snapshot: Snapshot) -> Iterable[ObjectKey]:
        """Return all objects that this reconciler's target shall hold."""

    @abstractmethod
    def actual_objects(self) -> Answer[Iterable[ObjectKey]]:
        """Return all objects of the target that this reconciler owns, also objects to be pruned."""

    @abstractmethod
    def wanted(self, snapshot: Snapshot, key: ObjectKey) -> bool:
        """True if the target shall hold an object of this reconciler."""

    @abstractmethod
    def desired(self, snapshot: Snapshot, key: ObjectKey, parts: Parts) -> State:
        """Return the desired state of an object that the target shall hold, after `actual` was read.

        Raises ValueError for an impossible value.
        """

    @abstractmethod
    def actual(self, key: ObjectKey, parts: Parts) -> Answer[State | None]:
        """Return the state of an object that the target holds; None where it has no such object."""

    @abstractmethod
    def update(self, key: ObjectKey, changes: State) -> Answer[None]:
        """Create an object in the target, or change these parts; None removes a part.

        Of an object with many changed parts it is called for some of them at a time.
        """

    @abstractmethod
    def delete(self, key: ObjectKey) -> Answer[None]:
        """Delete an object of this reconciler from the target."""

    def possible(self, key: ObjectKey) -> bool:
        """True if the target can take an object now: its parent, if it needs one, exists there."""
        del key
        return True

    def still_used(self, keys: Collection[ObjectKey]) -> Collection[ObjectKey]:
        """Return the objects that others in the target still use; they are deleted later."""
        del keys
        return ()

    @contextlib.asynccontextmanager
    async def read_again(self) -> AsyncIterator[None]:
        """Have `actual` return what the target has now, for a verification on request.

        For a target whose state is known by what it has confirmed. Raises `ReconcileError`.
        """
        yield

    def pieces(self, snapshot: Snapshot, key: ObjectKey, size: int) -> Iterator[Collection[Part]]:
        """Iterate over an object's parts, desired or in the target, in pieces of ``size`` lookups.

        A piece may be empty. Parts that come while it is iterated may be missing.
        """
        del snapshot, key, size
        yield (WHOLE,)

    def text(self, part: Part) -> str:
        """Return the name of a part of a reconciler's object, for people."""
        return str(part)
