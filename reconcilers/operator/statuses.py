"""The conditions of objects: what is written of them, and when that is due.

What an object's status says is read once, before the first write, and remembered from then on: no
row has it. Nothing here asks a clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, final

import msgspec

from reconcilers import conditions
from reconcilers.intent.cilium.operator import API_VERSION
from reconcilers.model import Condition, ObjectRef
from reconcilers.operator.writes import Apply
from resources import conditions as metav1
from resources.cilium.conditions import (
    CONFLICTING_CLUSTER_CONFIG,
    MISSING_AUTH_SECRET,
    MISSING_PEER_CONFIGS,
    NO_MATCHING_NODE,
)

MANAGED: Final = frozenset(
    {CONFLICTING_CLUSTER_CONFIG, MISSING_PEER_CONFIGS, NO_MATCHING_NODE, MISSING_AUTH_SECRET}
)
"""The conditions that the operator writes."""


@final
class Statuses:
    """The conditions that are there, as far as they are known."""

    def __init__(self) -> None:
        self._known: dict[ObjectRef, dict[str, metav1.Condition]] = {}

    def knows(self, ref: ObjectRef) -> bool:
        """Tell whether an object's conditions have been read."""
        return ref in self._known

    def learn(self, ref: ObjectRef, conditions: Mapping[str, metav1.Condition]) -> None:
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
        made = {
            one.type: conditions.written(one, known.get(one.type), time)
            for one in sorted(wanted, key=lambda one: one.type)
        }
        stale = MANAGED & known.keys() - made.keys()
        if not stale and all(known.get(name) == one for name, one in made.items()):
            return None
        content = {
            "apiVersion": API_VERSION,
            "kind": ref.kind,
            "metadata": {"name": ref.name},
            "status": {"conditions": msgspec.to_builtins(list(made.values()))},
        }
        return Apply(ref, content, status=True)
