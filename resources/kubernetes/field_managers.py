"""Transfers the ownership of fields between managers in ``metadata.managedFields``. Pure.

Server-side apply keeps the fields of other managers: items of a list, a second controller. An object
that one manager owns as a whole must not have such fields, so they are transferred to it first.
Source: Kubernetes API, metav1.ManagedFieldsEntry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

JsonObject = dict[str, Any]

OWNED_PARTS: Final = (("f:spec",), ("f:metadata", "f:ownerReferences"))
"""The parts of an object that one manager owns as a whole."""


def adopted(
    entries: Sequence[Mapping[str, Any]], manager: str, api_version: str
) -> list[JsonObject] | None:
    """Return managed fields with `OWNED_PARTS` moved to ``manager``; None if they are already."""
    kept: list[JsonObject] = []
    mine: JsonObject = {}
    applied: JsonObject = {}
    is_changed = False
    for entry in entries:
        fields = entry.get("fieldsV1")
        if entry.get("subresource") or not isinstance(fields, dict):
            kept.append(dict(entry))
            continue
        if (entry.get("manager"), entry.get("operation")) == (manager, "Apply"):
            applied = dict(entry)
            mine = _union(mine, fields)
            continue
        part, rest = _split(fields)
        is_changed = is_changed or bool(part)
        mine = _union(mine, part)
        if rest:
            kept.append({**entry, "fieldsV1": rest})
    if not is_changed:
        return None
    ours = {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": api_version,
        "fieldsType": "FieldsV1",
        **applied,
        "fieldsV1": mine,
    }
    return [ours, *kept]


def annotations_of(entries: Sequence[Mapping[str, Any]], manager: str) -> frozenset[str]:
    """Return the keys of the annotations that a field manager has applied."""
    names: set[str] = set()
    for entry in entries:
        if (entry.get("manager"), entry.get("operation")) == (manager, "Apply"):
            metadata = (entry.get("fieldsV1") or {}).get("f:metadata") or {}
            names.update(metadata.get("f:annotations") or ())
    return frozenset(key.removeprefix("f:") for key in names)


def _split(fields: JsonObject) -> tuple[JsonObject, JsonObject]:
    """Return the part of a field set that is within `OWNED_PARTS`, and the rest."""
    part: JsonObject = {}
    rest = fields
    for path in OWNED_PARTS:
        subset, rest = _cut(rest, path)
        part = _union(part, subset)
    return part, rest


def _cut(fields: JsonObject, path: tuple[str, ...]) -> tuple[JsonObject, JsonObject]:
    name, *others = path
    inner = fields.get(name)
    if not isinstance(inner, dict):
        return {}, fields
    without = {key: value for key, value in fields.items() if key != name}
    if not others:
        return {name: inner}, without
    part, left = _cut(inner, tuple(others))
    if not part:
        return {}, fields
    return {name: part}, ({**without, name: left} if left.keys() - {"."} else without)


def _union(one: JsonObject, other: JsonObject) -> JsonObject:
    """Unite two field sets."""
    united = dict(one)
    for name, inner in other.items():
        united[name] = _union(united.get(name, {}), inner)
    return united
