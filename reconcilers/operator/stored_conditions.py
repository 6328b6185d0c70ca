"""The conditions that objects have in the API server, and the patches that change them.

An object's conditions are read once, before the first write, and updated from the answers to writes;
no row has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import final

import msgspec

from reconcilers import conditions
from reconcilers.model import Condition, ObjectRef
from reconcilers.operator.writes import Apply
from resources import metav1
from resources.kind import Kinds


@final
class StoredConditions:
    """The known conditions, by object."""

    def __init__(self, kinds: Kinds, managed: frozenset[str]) -> None:
        """``managed`` are the types of the conditions that the operator writes and removes."""
        self._kinds = kinds
        self._managed = managed
        self._known: dict[ObjectRef, dict[str, metav1.Condition]] = {}

    def __contains__(self, ref: ObjectRef) -> bool:
        """True if an object's conditions have been read."""
        return ref in self._known

    def store(self, ref: ObjectRef, conditions: Mapping[str, metav1.Condition]) -> None:
        """Store the conditions that were read or written."""
        self._known[ref] = dict(conditions)

    def drop(self, ref: ObjectRef) -> None:
        """Drop an object's conditions; they have to be read before the next write."""
        self._known.pop(ref, None)

    def keep_only(self, refs: Iterable[ObjectRef]) -> None:
        """Drop the conditions of all other objects."""
        kept = frozenset(refs)
        self._known = {ref: known for ref, known in self._known.items() if ref in kept}

    def patch(self, ref: ObjectRef, wanted: Iterable[Condition], time: str) -> Apply | None:
        """Return the status patch that gives an object these conditions; None if it has them.

        ``time`` (RFC 3339) becomes the transition time of conditions whose status changes. Managed
        conditions that are not wanted are removed.
        """
        known = self._known.get(ref, {})
        encoded = {
            condition.type: conditions.encode(condition, known.get(condition.type), time)
            for condition in sorted(wanted, key=lambda condition: condition.type)
        }
        stale = self._managed & known.keys() - encoded.keys()
        if not stale and all(known.get(name) == one for name, one in encoded.items()):
            return None
        kind = self._kinds.named(ref.kind)
        if kind is None:
            raise LookupError(f"no table has {ref}")
        namespace = {"namespace": ref.namespace} if ref.namespace else {}
        content = {
            "apiVersion": kind.api_versions[0],
            "kind": ref.kind,
            "metadata": {"name": ref.name, **namespace},
            "status": {"conditions": msgspec.to_builtins(list(encoded.values()))},
        }
        return Apply(ref, content, status=True)
