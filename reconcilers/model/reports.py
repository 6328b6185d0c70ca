"""Reports on objects, and writes to them: problems, conditions, generated objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from reconcilers.model.references import ObjectRef
from resources.enumeration import MAX_MESSAGE_CHARACTERS, bounded, enumerate_objects, problem_line


class PendingDialect(msgspec.Struct, frozen=True, order=True):
    """A dialect that is not compiled yet, while others are: kinds of it cannot be read.

    What it has written before a restart stays: objects, claims, routes in the kernel.
    """

    dialect: str
    unread: tuple[str, ...]
    """The tables of these kinds."""


class Condition(msgspec.Struct, frozen=True):
    """One condition of an object's status (metav1.Condition), without its times."""

    object: ObjectRef
    type: str
    status: bool
    reason: str
    message: str = ""
    observed_generation: int | None = None
    by_operator: bool = False
    """True for what the cluster-wide part of a dialect reports."""
    dialect: str = ""
    summary: str = ""
    """The text of ``status.status``, of a kind that has such a field beside its conditions."""

    def __post_init__(self) -> None:
        """Bound the message, wherever it comes from."""
        if len(self.message) > MAX_MESSAGE_CHARACTERS:
            msgspec.structs.force_setattr(self, "message", bounded(self.message))


ProblemCategory: TypeAlias = Literal["invalid", "unresolved", "conflict", "unsupported"]


class Problem(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """A conflict or an invalid object: the objects, the field and the broken rule, for people."""

    objects: tuple[ObjectRef, ...]
    field: str
    message: str
    unconfigured: tuple[str, ...] = ()
    """An instance, or an instance and its peer, that is not configured because of the problem."""
    category: ProblemCategory = "invalid"
    """``unresolved``: a referenced object is missing; ``conflict``: objects contradict each other;
    ``unsupported``: valid, and not implemented."""
    dialect: str = ""
    by_operator: bool = False
    """True for what the cluster-wide part of a dialect reports."""
    count: int = 1
    """The number of problems: problems beyond the limit share this row."""
    of_tenant: bool = False
    """True if users of a namespace cause and solve it: it is apart from problems of administrators."""

    def __post_init__(self) -> None:
        """Bound the message, wherever it comes from."""
        if len(self.message) > MAX_MESSAGE_CHARACTERS:
            msgspec.structs.force_setattr(self, "message", bounded(self.message))

    @property
    def names(self) -> str:
        """The names of the first objects of the problem in a report, and the number of the others."""
        return enumerate_objects(self.objects)

    def __str__(self) -> str:
        """Return the problem as one bounded line."""
        return problem_line(self.objects, self.field, self.message)


class Generated(msgspec.Struct, frozen=True):
    """One object that a dialect generates, whole, and the object that owns it.

    The operator writes it to the API server; without one, and where a dialect feeds another, it is
    read back in the same process.
    """

    object: ObjectRef
    owner: ObjectRef
    content: Any
    """The object as JSON: ``apiVersion``, ``kind``, ``metadata``, ``spec``."""
    by_operator: bool = False
    """True for what the cluster-wide part of a dialect generates, not the part of one node."""
    dialect: str = ""


class Delete(msgspec.Struct, frozen=True):
    """Delete an object that a dialect generated earlier, if it still has this UID."""

    object: ObjectRef
    uid: str
    by_operator: bool = False
    """True for what the cluster-wide part of a dialect deletes."""
    dialect: str = ""


class ObjectAnnotations(msgspec.Struct, frozen=True):
    """Annotations to set on an object that belongs to another writer; others of it are unchanged."""

    object: ObjectRef
    annotations: Mapping[str, str]
    uid: str = ""
    """Of the object: a recreated object of the same name is not annotated."""
    take_over: bool = False
    """Whether values of other managers are replaced: the annotations are the dialect's own, and another
    program has written them before."""
    by_operator: bool = False
    """True for what the cluster-wide part of a dialect sets."""
    dialect: str = ""


class ReconcileStatus(msgspec.Struct, frozen=True):
    """The result of reconciling one object: done, or the last error and the time of the next retry."""

    reconciler: str
    """Name of the reconciler."""
    object: str
    """The object's key, its parts joined with slashes: ``instance/peer``."""
    error: str | None = None
    attempts: int = 0
    """Failed attempts since the last success."""
    retry_at: float | None = None
    """Monotonic seconds, on the clock that the round is given."""
