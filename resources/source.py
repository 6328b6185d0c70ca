"""The interface of a source of objects: events per kind, and problems.

A directory of manifests is one source, a Kubernetes API server another. Events carry rows; one
subscriber commits them to the tables (`resources.ingest`).
"""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec
from reactivex import Observable

from resources.enumeration import MAX_MESSAGE_CHARACTERS, bounded
from resources.errors import ObjectName
from resources.kind import Kind
from resources.meta import ObjectKey, Resource

T = TypeVar("T", bound=Resource)


class Replace(msgspec.Struct, Generic[T], frozen=True):
    """All objects of a kind, from a complete list: all others are deleted."""

    objects: tuple[T, ...]


class Upsert(msgspec.Struct, Generic[T], frozen=True):
    """An object that is new or changed."""

    object: T


class Delete(msgspec.Struct, frozen=True):
    """An object that was deleted."""

    key: ObjectKey


Event: TypeAlias = Replace[Any] | Upsert[Any] | Delete


class SourceProblem(msgspec.Struct, frozen=True, order=True):
    """An error in what a source has read; present until it is corrected."""

    file: str
    document: int
    """Counted from 1; 0 is the file as a whole."""
    line: int
    """Counted from 1; 0 where it is unknown."""
    object: ObjectName | None
    field: str
    message: str
    uid: str = ""
    """Of the object, where an API server has it."""
    ignored: bool = False
    """True for an unknown field: it has no effect, the other fields of the object have."""
    lost: bool = False
    """True if no version of the object, or no complete version of the file, is in use."""

    def __post_init__(self) -> None:
        """Bound the message, wherever it comes from."""
        if len(self.message) > MAX_MESSAGE_CHARACTERS:
            msgspec.structs.force_setattr(self, "message", bounded(self.message))

    @property
    def where(self) -> str:
        """The place of a problem in a source: ``file:line``, or the file and its document."""
        if self.line:
            return f"{self.file}:{self.line}"
        return f"{self.file} (document {self.document})" if self.document > 1 else self.file

    def __str__(self) -> str:
        """Return place, object, field and message, joined with colons."""
        parts = [self.where]
        if self.object is not None:
            parts.append(str(self.object))
        if self.field:
            parts.append(self.field)
        return ": ".join((*parts, self.message))


class Source(Protocol):
    """Reads objects and emits events."""

    name: str
    """Name in messages, and of the tables' initializers."""
    kinds: tuple[Kind[Any], ...]
    """The kinds that it reads."""

    def events(self, kind: Kind[T]) -> Observable[Event]:
        """Return the events of one kind of any source; subscribers are isolated from each other.

        `resources.ingest` subscribes before `run`, other subscribers at any time.
        """
        ...

    @property
    def problems(self) -> Observable[tuple[SourceProblem, ...]]:
        """Emit all problems of the source, whatever it is, whenever they change."""
        ...

    async def run(self) -> None:
        """Read all objects of a source, whatever it is, then follow changes, until cancelled."""
        ...
