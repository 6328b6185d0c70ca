"""What is to be written into the cluster, as values: objects whole, or their conditions."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

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


class Delete(msgspec.Struct, frozen=True):
    """Delete an object, if it is still the one with this UID."""

    object: ObjectRef
    uid: str

    @property
    def key(self) -> tuple[ObjectRef, bool]:
        """What is written."""
        return (self.object, False)


Write = Apply | Delete
