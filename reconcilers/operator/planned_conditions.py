"""Reconciles the conditions that the operator reports with conditions of objects in the API server.

An object's conditions are read once, before the first write, and updated from the answers to writes; no
row has them. A transition time changes only with the condition's status. Kinds whose definition has no
conditions are detected by the answer, and tried again after `DROPPED_SECONDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, final

import msgspec

from reconcilers import conditions
from reconcilers.api_server import GetApplyClient, key_of, kind_of, path_of, reconcile_error
from reconcilers.model import Condition
from reconcilers.operator.planner import Plan
from reconcilers.operator.writes import UNCONFIRMED_SECONDS, PlannedWrites
from reconcilers.target import NotNow
from reconcilers.target.reconciler import ObjectKey
from resources import metav1
from resources.kind import Kinds
from resources.kubernetes import KubernetesError, StatusError
from statedb import Snapshot

DROPPED_SECONDS = 600.0
"""After which conditions of a kind are written again that the API server has dropped."""
UNDECLARED: Final = ".status.conditions: field not declared in schema"
"""In the error of server-side apply (status 500) if the definition has a status without conditions."""

Conditions = dict[str, metav1.Condition]
"""By type."""


@final
class PlannedConditions(PlannedWrites[tuple[Condition, ...]]):
    """Objects are ``(kind, namespace, name)``, values their conditions by type."""

    def __init__(
        self,
        client: GetApplyClient,
        kinds: Kinds,
        managed: frozenset[str],
        tables: Sequence[str],
        *,
        allowed: Callable[[], bool],
        now: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        """Write and remove conditions of the types in ``managed``, in plans made from ``tables``.

        ``allowed`` returns whether this operator leads; ``now`` is a monotonic clock, ``wall`` Unix
        time, in seconds.
        """
        super().__init__(
            "condition",
            20,
            "conditions of objects",
            tables,
            kinds,
            compare=DROPPED_SECONDS,
            retry_changed=False,
            allowed=allowed,
            now=now,
        )
        self._client = client
        self._managed = managed
        self._wall = wall
        self._known: dict[ObjectKey, Conditions] = {}
        """The conditions in the API server, as read or written last."""
        self._not_found: set[ObjectKey] = set()
        """Objects whose status the API server did not find."""
        self._dropped: dict[str, float] = {}
        """Kinds whose conditions the API server drops, and when they are tried again."""

    @property
    def kinds_without_conditions(self) -> tuple[str, ...]:
        """The planned kinds whose definition has no conditions to store."""
        return tuple(sorted(self._dropped))

    def plan(self, plan: Plan) -> None:
        """Take the conditions of a plan in place of the plan before."""
        gone = self.give_all({key_of(ref): wanted for ref, wanted in plan.conditions.items()})
        for key in gone:
            self._known.pop(key, None)
        self._not_found -= gone

    def desired_value(self, snapshot: Snapshot, key: ObjectKey) -> Conditions:
        """Return the planned conditions, with the times of unchanged ones."""
        del snapshot
        known = self._known[key]
        time = metav1.timestamp(self._wall())
        return {
            wanted.type: conditions.encode(wanted, known.get(wanted.type), time)
            for wanted in sorted(self.given[key], key=lambda condition: condition.type)
        }

    async def actual_value(self, key: ObjectKey) -> Conditions | None:
        """Return the stored conditions that the operator manages or plans.

        Raises `NotNow` for an object that is gone, or whose kind has no conditions.
        """
        if key not in self.given:
            return None
        wait = self._dropped.get(key[0], 0.0) - self._now()
        if wait > 0.0:
            raise NotNow(wait)
        if key not in self._known:
            await self._read(key)
        ours = self._managed | {wanted.type for wanted in self.given[key]}
        return {name: known for name, known in self._known[key].items() if name in ours}

    async def _read(self, key: ObjectKey) -> None:
        try:
            stored = await self._client.get(path_of(self._kinds, key))
        except KubernetesError as error:
            raise reconcile_error(error, "status") from None
        if stored is None:
            raise NotNow(UNCONFIRMED_SECONDS)
        if key in self._not_found:
            # The object is there, so that its definition has no status at all.
            self._not_found.discard(key)
            raise self._drop(key)
        self._known[key] = conditions.decode(stored)

    async def set_value(self, key: ObjectKey, value: Conditions) -> None:
        """Apply the planned conditions; other managed conditions are removed."""
        kind, namespace, name = key
        content = {
            "apiVersion": kind_of(self._kinds, key).api_versions[0],
            "kind": kind,
            "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
            "status": {
                "conditions": msgspec.to_builtins(list(value.values())),
                **self._summary(key),
            },
        }
        try:
            answer = await self._client.apply(f"{path_of(self._kinds, key)}/status", content)
        except KubernetesError as error:
            if isinstance(error, StatusError) and UNDECLARED in error.message:
                raise self._drop(key) from None
            if isinstance(error, StatusError) and error.status == 404:
                # The object was deleted, and its conditions with it.
                self._known.pop(key, None)
                self._not_found.add(key)
            raise reconcile_error(error, "status") from None
        stored = conditions.decode(answer)
        if not value or stored.keys() & value.keys():
            self._dropped.pop(kind, None)
        else:
            self._drop(key)
        # Where conditions are removed, other managers' conditions remain.
        self._known[key] = stored if value else {}
        self._not_found.discard(key)

    def _summary(self, key: ObjectKey) -> dict[str, str]:
        """Return the text of the status beside the conditions; it changes with one of these."""
        text = next(
            (condition.summary for condition in self.given.get(key, ()) if condition.summary), ""
        )
        return {"status": text} if text else {}

    def _drop(self, key: ObjectKey) -> NotNow:
        """Note that the API server drops the conditions of a kind."""
        self._dropped[key[0]] = self._now() + DROPPED_SECONDS
        return NotNow(DROPPED_SECONDS)
