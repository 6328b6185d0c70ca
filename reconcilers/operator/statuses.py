"""The conditions of objects: what is written of them, and when that is due.

A condition's time moves only when its status does. What an object's status says is read once, before
the first write, and remembered from then on: no row has it. Nothing here asks a clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, final

from reconcilers.intent.cilium.operator import (
    API_VERSION,
    CONFLICTING,
    MISSING_AUTH_SECRET,
    MISSING_PEER_CONFIGS,
    NO_MATCHING_NODE,
)
from reconcilers.model import Condition, ObjectRef
from reconcilers.operator.writes import Apply, JsonObject

MANAGED: Final = frozenset(
    {CONFLICTING, MISSING_PEER_CONFIGS, NO_MATCHING_NODE, MISSING_AUTH_SECRET}
)
"""The conditions that the operator writes."""


def read_conditions(content: Mapping[str, Any] | None) -> dict[str, JsonObject]:
    """Return the conditions that an object of the API has, by type; what is odd is left out."""
    status = content.get("status") if content else None
    found = status.get("conditions") if isinstance(status, dict) else None
    if not isinstance(found, list):
        return {}
    return {
        condition["type"]: condition
        for condition in found
        if isinstance(condition, dict) and isinstance(condition.get("type"), str)
    }


@final
class Statuses:
    """The conditions that are there, as far as they are known."""

    def __init__(self) -> None:
        self._known: dict[ObjectRef, dict[str, JsonObject]] = {}

    def knows(self, ref: ObjectRef) -> bool:
        """Tell whether an object's conditions have been read."""
        return ref in self._known

    def learn(self, ref: ObjectRef, conditions: Mapping[str, JsonObject]) -> None:
        """Take what was read, or what has been written."""
        self._known[ref] = dict(conditions)

    def forget(self, ref: ObjectRef) -> None:
        """Read an object's conditions again before the next write."""
        self._known.pop(ref, None)

    def keep_only(self, refs: Iterable[ObjectRef]) -> None:
        """Forget objects that are gone."""
        kept = frozenset(refs)
        self._known = {ref: known for ref, known in self._known.items() if ref in kept}

    def due(self, ref: ObjectRef, wanted: Iterable[Condition], time: str) -> Apply | None:
        """Return what has to be written so that an object has these conditions; None is nothing.

        ``time`` (RFC 3339) is that of conditions whose status changes.
        """
        known = self._known.get(ref, {})
        conditions: dict[str, JsonObject] = {}
        for condition in sorted(wanted, key=lambda one: one.type):
            made = _spell(condition)
            before = known.get(condition.type, {})
            same = before.get("status") == made["status"]
            made["lastTransitionTime"] = before.get("lastTransitionTime", time) if same else time
            conditions[condition.type] = made
        stale = MANAGED & known.keys() - conditions.keys()
        if not stale and all(known.get(name) == made for name, made in conditions.items()):
            return None
        content = {
            "apiVersion": API_VERSION,
            "kind": ref.kind,
            "metadata": {"name": ref.name},
            "status": {"conditions": list(conditions.values())},
        }
        return Apply(ref, content, status=True)


def _spell(condition: Condition) -> JsonObject:
    spelt: JsonObject = {
        "type": condition.type,
        "status": "True" if condition.status else "False",
        "reason": condition.reason,
        "message": condition.message,
    }
    if condition.observed_generation is not None:
        spelt["observedGeneration"] = condition.observed_generation
    return spelt
