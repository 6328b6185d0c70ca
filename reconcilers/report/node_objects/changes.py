"""Compares an object of a node with what the API server has of it. Pure.

Of two objects with the same labels the older one is kept. Labels and owners of other writers are
replaced where they are ours to set; other labels are left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from reconcilers.dialect import NodeObjectKey, NodeObjectKind

JsonObject: TypeAlias = dict[str, Any]


class Wanted(NamedTuple):
    """An object as it shall be."""

    labels: Mapping[str, str]
    """All that are set, the one with the node's name included."""
    owners: tuple[JsonObject, ...]
    """Owner references (metav1.OwnerReference)."""
    status: JsonObject


class Stored(NamedTuple):
    """What counts of an object in the API server."""

    name: str
    uid: str
    created: str
    labels: Mapping[str, str]
    owners: tuple[JsonObject, ...]
    status: bytes
    """As canonical JSON: a tenth of the memory of the decoded object."""


class Create(NamedTuple):
    """Create the object; its status is written after that."""


class SetMetadata(NamedTuple):
    """Set labels and owners of an object."""

    name: str
    content: JsonObject
    """A JSON merge patch."""


class SetStatus(NamedTuple):
    """Replace the status of an object."""

    name: str
    content: JsonObject
    """A JSON merge patch."""


class Remove(NamedTuple):
    """Delete an object."""

    name: str
    uid: str


Change: TypeAlias = Create | SetMetadata | SetStatus | Remove


class Accepted(NamedTuple):
    """What the API server made of a status: a definition without some fields drops them."""

    wanted: bytes
    answered: bytes


def canonical(value: object) -> bytes:
    """Encode a JSON value; equal values have equal octets."""
    return msgspec.json.encode(value, order="deterministic")


def stored(content: Mapping[str, Any]) -> Stored:
    """Return what counts of an object as the API server sends it."""
    metadata = content.get("metadata") or {}
    return Stored(
        name=metadata.get("name", ""),
        uid=metadata.get("uid", ""),
        created=metadata.get("creationTimestamp") or "",
        labels=metadata.get("labels") or {},
        owners=tuple(metadata.get("ownerReferences") or ()),
        status=canonical(content.get("status") or {}),
    )


def key_of(kind: NodeObjectKind, labels: Mapping[str, str]) -> NodeObjectKey:
    """Return the key of a stored object."""
    return NodeObjectKey(kind.kind.name, tuple(labels.get(name, "") for name in kind.identity))


def next_change(
    wanted: Wanted | None, present: Sequence[Stored], accepted: Accepted | None
) -> Change | None:
    """Return the next change that is necessary, None where nothing differs.

    ``accepted`` is the last status that was written, with the API server's answer.
    """
    if wanted is None:
        return next((Remove(one.name, one.uid) for one in present), None)
    if not present:
        return Create()
    kept, *duplicates = sorted(present, key=lambda one: (one.created, one.name))
    if duplicates:
        return Remove(duplicates[0].name, duplicates[0].uid)
    metadata: JsonObject = {}
    if any(kept.labels.get(name) != value for name, value in wanted.labels.items()):
        metadata["labels"] = dict(wanted.labels)
    if kept.owners != wanted.owners:
        metadata["ownerReferences"] = list(wanted.owners)
    if metadata:
        return SetMetadata(kept.name, {"metadata": metadata})
    octets = canonical(wanted.status)
    if octets != kept.status and accepted != Accepted(octets, kept.status):
        # A merge patch removes a field by null.
        before: JsonObject = msgspec.json.decode(kept.status)
        status = dict.fromkeys(before.keys() - wanted.status.keys()) | wanted.status
        return SetStatus(kept.name, {"status": status})
    return None


def replaced(present: Sequence[Stored], name: str, by: Stored | None) -> list[Stored]:
    """Return the stored objects with another one, or none, in place of the one with a name."""
    rest = [one for one in present if one.name != name]
    return rest if by is None else [*rest, by]
