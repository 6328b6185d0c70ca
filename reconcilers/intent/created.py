"""The creationTimestamp of an object, by which the older one of two is in effect."""

from __future__ import annotations

from reconcilers.intent_tables import IntentTables
from reconcilers.model import ObjectRef
from resources.meta import OwnerReference
from resources.tables import Tables
from statedb import Snapshot


def created(resources: Tables, intent: IntentTables, snapshot: Snapshot, ref: ObjectRef) -> str:
    """Return the creationTimestamp of an object; of a generated one, that of its owner."""
    kind = resources.kinds.named(ref.kind)
    key = (ref.namespace, ref.name)
    row = None if kind is None else resources.of(kind).get(snapshot, key)
    if row is not None:
        owner = next((o for o in row.metadata.owner_references if o.controller), None)
        # An object that a controller writes is as old as the objects that it is made from.
        of_owner = "" if owner is None else _of_owner(resources, snapshot, ref, owner)
        return of_owner or str(row.metadata.creation_timestamp)
    generated = intent.generated.get(snapshot, (ref.kind, *key))
    if generated is None or generated.owner == ref:
        return ""
    return created(resources, intent, snapshot, generated.owner)


def _of_owner(resources: Tables, snapshot: Snapshot, ref: ObjectRef, owner: OwnerReference) -> str:
    kind = resources.kinds.named(owner.kind)
    if kind is None:
        return ""
    namespace = ref.namespace if kind.namespaced else ""
    owner_row = resources.of(kind).get(snapshot, (namespace, owner.name))
    return "" if owner_row is None else str(owner_row.metadata.creation_timestamp)
