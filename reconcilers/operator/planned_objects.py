"""Reconciles the objects of the operator's plan: generated ones, deletions, annotations.

A plan has the objects that differ from the operator's watch, which confirms a write: the object is not
in the next plan. A write that is not confirmed is repeated after `UNCONFIRMED_SECONDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, final

from reconcilers.api_server import key_of, kind_of, path_of, reconcile_error
from reconcilers.model import Delete, ObjectRef
from reconcilers.operator.planner import Plan
from reconcilers.operator.writes import UNCONFIRMED_SECONDS, Annotate, PlannedWrites, Write
from reconcilers.target.reconciler import ObjectKey
from resources.kind import Kinds
from resources.kubernetes import ApplyClient, KubernetesError, apply_owned
from statedb import Snapshot

Verb: TypeAlias = Literal["apply", "delete", "annotate"]


class ObjectClient(ApplyClient, Protocol):
    """Requests to an API server; `resources.kubernetes.Writer` implements them."""

    async def delete(self, path: str, uid: str) -> None:
        """Delete the planned object with this UID."""

    async def annotate(
        self, path: str, content: Mapping[str, Any], dialect: str, *, take_over: bool
    ) -> dict[str, Any]:
        """Apply planned annotations of an object, as a field manager of the dialect's own."""


@final
class PlannedObjects(PlannedWrites[Write]):
    """Objects are ``(kind, namespace, name)``, values writes."""

    def __init__(
        self,
        client: ObjectClient,
        kinds: Kinds,
        tables: Sequence[str],
        *,
        allowed: Callable[[], bool],
        on_adopted: Callable[[ObjectRef], None],
        now: Callable[[], float],
    ) -> None:
        """Write objects of these kinds, in plans made from ``tables``.

        ``allowed`` returns whether this operator leads, ``now`` a monotonic time in seconds;
        ``on_adopted`` is called for an object whose fields other managers had.
        """
        super().__init__(
            "object",
            10,
            "generated objects, deletions and annotations",
            tables,
            kinds,
            compare=UNCONFIRMED_SECONDS,
            retry_changed=True,
            allowed=allowed,
            now=now,
        )
        self._client = client
        self._on_adopted = on_adopted
        self._unconfirmed: dict[ObjectKey, tuple[Write, float]] = {}
        """The last write of each object, and when it was sent."""

    def plan(self, plan: Plan) -> None:
        """Take the objects of a plan in place of the plan before."""
        self.give_all({key_of(write.object): write for write in plan.objects})

    def verb(self, key: ObjectKey) -> Verb:
        """Return how a planned object is written: applied, deleted or annotated."""
        match self.given.get(key):
            case Delete():
                return "delete"
            case Annotate():
                return "annotate"
        return "apply"

    def desired_value(self, snapshot: Snapshot, key: ObjectKey) -> Write:
        """Return the planned write of an object."""
        del snapshot
        return self.given[key]

    def actual_value(self, key: ObjectKey) -> Write | None:
        """Return the last write of a planned object while it may be confirmed."""
        last = self._unconfirmed.get(key)
        if last is None or key not in self.given or self._now() >= last[1] + UNCONFIRMED_SECONDS:
            self._unconfirmed.pop(key, None)
            return None
        return last[0]

    async def set_value(self, key: ObjectKey, value: Write) -> None:
        """Send the planned write of an object."""
        self._unconfirmed.pop(key, None)
        try:
            await self._send(value)
        except KubernetesError as error:
            raise reconcile_error(error, self.verb(key)) from None
        self._unconfirmed[key] = value, self._now()

    async def _send(self, write: Write) -> None:
        ref, client = write.object, self._client
        key = key_of(ref)
        kind, path = kind_of(self._kinds, key), path_of(self._kinds, key)
        match write:
            case Delete():
                await client.delete(path, write.uid)
            case Annotate():
                await client.annotate(path, write.content, write.dialect, take_over=write.take_over)
            case _:
                await apply_owned(
                    client, kind, path, write.content, on_adopted=lambda: self._on_adopted(ref)
                )
