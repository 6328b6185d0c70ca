"""The conditions of objects: what is written of them, and when that is due.

What an object's status says is read once, before the first write, and remembered from then on: no
row has it. Nothing here asks a clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import final

import msgspec

from reconcilers import conditions
from reconcilers.model import Condition, ObjectRef
from reconcilers.operator.writes import Apply
from resources import conditions as metav1
from resources.kind import Kinds


@final
class Statuses:
    """The conditions that objects have, as far as they are known."""

    def __init__(self, kinds: Kinds, managed: frozenset[str]) -> None:
        """``managed`` are the types of the conditions that the operator writes and removes."""
        self._kinds = kinds
        self._managed = managed
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
        stale = self._managed & known.keys() - made.keys()
        if not stale and all(known.get(name) == one for name, one in made.items()):
            return None
        kind = self._kinds.named(ref.kind)
        if kind is None:
            raise LookupError(f"no table has {ref}")
        namespace = {"namespace": ref.namespace} if ref.namespace else {}
        content = {
            "apiVersion": kind.api_versions[0],
            "kind": ref.kind,
            "metadata": {"name": ref.name, **namespace},
            "status": {"conditions": msgspec.to_builtins(list(made.values()))},
        }
        return Apply(ref, content, status=True)
