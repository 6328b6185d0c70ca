"""Writes of objects to the API server, as values."""

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


class Annotate(msgspec.Struct, frozen=True):
    """Set annotations of another writer's object, and nothing else; values that exist are kept.

    Server-side apply by a field manager of the dialect's own.
    """

    object: ObjectRef
    content: JsonObject
    dialect: str


Write = Apply | Delete | Annotate
