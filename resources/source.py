"""What a way in to the cluster looks like: events per kind, and what is wrong with what it read.

The manifests directory is one source, a Kubernetes API server another; those who read do not know
which. Events carry rows; one subscriber per kind writes them to the table (`resources.ingest`).
"""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec
from reactivex import Observable

from resources.errors import ObjectName
from resources.kind import Kind
from resources.meta import ObjectKey, Resource

T = TypeVar("T", bound=Resource)


class Replace(msgspec.Struct, Generic[T], frozen=True):
    """All objects of a kind: what is not among them is gone. Only ever told from a complete list."""

    objects: tuple[T, ...]


class Upsert(msgspec.Struct, Generic[T], frozen=True):
    """An object that is new or changed."""

    object: T


class Delete(msgspec.Struct, frozen=True):
    """An object that is gone."""

    key: ObjectKey


Event: TypeAlias = Replace[Any] | Upsert[Any] | Delete


class SourceProblem(msgspec.Struct, frozen=True, order=True):
    """One thing that is wrong with what a source read; it stays until it is put right."""

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

    @property
    def where(self) -> str:
        """``file:line``, or the file and its document."""
        if self.line:
            return f"{self.file}:{self.line}"
        return f"{self.file} (document {self.document})" if self.document > 1 else self.file

    def __str__(self) -> str:
        """Spell it for people."""
        parts = [self.where]
        if self.object is not None:
            parts.append(str(self.object))
        if self.field:
            parts.append(self.field)
        return ": ".join((*parts, self.message))


class Source(Protocol):
    """A way in."""

    name: str
    """Names its initializers, and it in messages."""
    kinds: tuple[Kind[Any], ...]
    """The kinds that it reads."""

    def events(self, kind: Kind[T]) -> Observable[Event]:
        """Return the events of one of its kinds; subscribers are isolated from each other.

        `resources.ingest` subscribes before `run`, other subscribers at any time.
        """
        ...

    @property
    def problems(self) -> Observable[tuple[SourceProblem, ...]]:
        """Tell all that is wrong, anew whenever that changes."""
        ...

    async def run(self) -> None:
        """Read, and go on reading, until cancelled."""
        ...
