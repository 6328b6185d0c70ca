"""Writes to the API server, as values: whole objects, or their conditions."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from reconcilers.dialect import Delete
from reconcilers.model import ObjectRef

JsonObject: TypeAlias = dict[str, Any]


class Apply(msgspec.Struct, frozen=True):
    """Make an object have these fields (server-side apply: fields of other writers stay)."""

    object: ObjectRef
    content: JsonObject
    status: bool = False
    """Whether it goes to the status subresource."""

    @property
    def key(self) -> tuple[ObjectRef, bool]:
        """What is written: an object or its status."""
        return (self.object, self.status)


class Annotate(msgspec.Struct, frozen=True):
    """Set annotations of another writer's object, and nothing else; values that exist are kept.

    Server-side apply by a field manager of the dialect's own.
    """

    object: ObjectRef
    content: JsonObject
    dialect: str

    @property
    def key(self) -> tuple[ObjectRef, bool]:
        """The object, and that it is not its status."""
        return (self.object, False)


Write = Apply | Delete | Annotate
