"""Objects of a node as the API server has them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

JsonObject: TypeAlias = dict[str, Any]


class Stored(NamedTuple):
    """The compared parts of an object in the API server."""

    name: str
    uid: str
    created: str
    labels: Mapping[str, str]
    owners: tuple[JsonObject, ...]
    status: bytes
    """As canonical JSON: a tenth of the memory of the decoded object."""


class Accepted(NamedTuple):
    """A status as the API server returned it: a definition without some fields drops them."""

    wanted: bytes
    answered: bytes


def canonical(value: object) -> bytes:
    """Encode a JSON value of a stored object; equal values have equal octets."""
    return msgspec.json.encode(value, order="sorted")


def stored(content: Mapping[str, Any]) -> Stored:
    """Return what is compared of a node's stored object, as the API server sends it."""
    metadata = content.get("metadata") or {}
    return Stored(
        name=metadata.get("name", ""),
        uid=metadata.get("uid", ""),
        created=metadata.get("creationTimestamp") or "",
        labels=metadata.get("labels") or {},
        owners=tuple(metadata.get("ownerReferences") or ()),
        status=canonical(content.get("status") or {}),
    )


def kept(present: Sequence[Stored]) -> Stored:
    """Return the stored object that is kept of some with the same labels: the oldest."""
    return min(present, key=lambda row: (row.created, row.name))


def replaced(present: Sequence[Stored], name: str, by: Stored | None) -> list[Stored]:
    """Return the stored objects with the object of a name replaced, or removed."""
    rest = [row for row in present if row.name != name]
    return rest if by is None else [*rest, by]
