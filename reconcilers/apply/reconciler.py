"""What a reconciler is: a kind of object that a target shall hold, and the operations that keep it so.

After statedb's reconciler (`Operations{Update, Delete, Prune}` of cilium/statedb), with an order
added, and with the actual state read from the target instead of being remembered. A reconciler holds
no state but its change iterators: `reconcilers.apply.runner` decides what is due, compares, retries and
keeps the status of each object; `reconcilers.apply.verification` compares everything.

The target need not be the speaker: a FIB or a BFD process is another target with the same operations.
They are called in the event loop, so they must be quick and must not block.

An *object* (an instance, a peer, a route set) is created, deleted, retried and reported as one. It has
*parts*, which are compared one by one and updated together: the routes of a route set. Objects without
parts of their own have the single part `WHOLE`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from reconcilers.slices import Slices
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


class Description(msgspec.Struct, frozen=True):
    """The facts about a reconciler that do not change."""

    name: str
    """The kind of its objects, in the singular: statuses, logs and metrics carry it."""
    order: int
    """Objects are created in this order, and deleted in the opposite one."""
    tables: tuple[str, ...]
    """The tables that its desired state is read from."""
    target: str
    """What holds its actual state."""
    summary: str
    """One line for people."""


class Reconciler(Protocol):
    """Keeps one kind of object of a target as the intent has it."""

    @property
    def description(self) -> Description:
        """Name, order and needs."""

    def changes(self, snapshot: Snapshot) -> Slices[Mapping[ObjectKey, Parts]]:
        """Return the objects whose desired state may differ since the last call, with those parts.

        The first call returns all objects. No parts, ``()``, is an object that has to exist, or may
        have to go, and whose parts have not changed. The cost is that of the changes.
        """

    def objects(self, snapshot: Snapshot) -> Iterable[ObjectKey]:
        """Return all objects of the desired state."""

    def actual_objects(self) -> Iterable[ObjectKey]:
        """Return all objects of the target that this reconciler owns, those to be pruned included."""

    def wanted(self, snapshot: Snapshot, key: ObjectKey) -> bool:
        """True if an object is part of the desired state."""

    def possible(self, key: ObjectKey) -> bool:
        """True if the target can take an object now: its parent exists there."""

    def still_used(self, keys: Collection[ObjectKey]) -> Collection[ObjectKey]:
        """Return those of some objects that others in the target still use; they are deleted later."""

    def desired(self, snapshot: Snapshot, key: ObjectKey, parts: Parts) -> State:
        """Return the desired state of a wanted object. Raises ValueError for one that cannot be."""

    def actual(self, key: ObjectKey, parts: Parts) -> State | None:
        """Return the state that the target holds; None where it has no such object."""

    def pieces(self, snapshot: Snapshot, key: ObjectKey, size: int) -> Iterator[Collection[Part]]:
        """Iterate over all parts, desired and actual, in pieces that cost ``size`` lookups or less.

        A piece may be empty. Parts that come while it is iterated may be left out.
        """

    def update(self, key: ObjectKey, changes: State) -> None:
        """Create an object, or change these parts; None removes a part.

        Of an object with many changed parts it is called for some of them at a time.
        """

    def delete(self, key: ObjectKey) -> None:
        """Delete an object from the target."""

    def text(self, part: Part) -> str:
        """Return a human-readable name of a part."""
