"""Who owns which field of an object, as server-side apply keeps it in ``metadata.managedFields``.

What another writer set stays when we apply, also where we do not set it: items of a list, a second
controller. For an object that is ours as a whole that is wrong, so its other writers' fields are
made ours first. Pure. Source: Kubernetes API, metav1.ManagedFieldsEntry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

JsonObject = dict[str, Any]

OURS: Final = (("f:spec",), ("f:metadata", "f:ownerReferences"))
"""What of an object is ours as a whole: what it says, and to whom it belongs."""


def adopted(
    entries: Sequence[Mapping[str, Any]], manager: str, api_version: str
) -> list[JsonObject] | None:
    """Return the entries with `OURS` in one entry of ``manager``; None where it is so already."""
    kept: list[JsonObject] = []
    mine: JsonObject = {}
    applied: JsonObject = {}
    taken = False
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
        taken = taken or bool(part)
        mine = _union(mine, part)
        if rest:
            kept.append({**entry, "fieldsV1": rest})
    if not taken:
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


def _split(fields: JsonObject) -> tuple[JsonObject, JsonObject]:
    """Return the part of a field set that is within `OURS`, and the rest."""
    part: JsonObject = {}
    rest = fields
    for path in OURS:
        found, rest = _cut(rest, path)
        part = _union(part, found)
    return part, rest


def _cut(fields: JsonObject, path: tuple[str, ...]) -> tuple[JsonObject, JsonObject]:
    name, *others = path
    inner = fields.get(name)
    if not isinstance(inner, dict):
        return {}, fields
    without = {key: value for key, value in fields.items() if key != name}
    if not others:
        return {name: inner}, without
    found, left = _cut(inner, tuple(others))
    if not found:
        return {}, fields
    return {name: found}, ({**without, name: left} if left.keys() - {"."} else without)


def _union(one: JsonObject, other: JsonObject) -> JsonObject:
    """Unite two field sets."""
    united = dict(one)
    for name, inner in other.items():
        united[name] = _union(united.get(name, {}), inner)
    return united
