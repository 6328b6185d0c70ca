"""An API server, and the reconcilers of an operator's plan over virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from cells.hive.rounds import in_slices
from reconcilers.model import ObjectRef
from reconcilers.operator import Plan
from reconcilers.operator.planned_conditions import PlannedConditions
from reconcilers.operator.planned_objects import (
    PlannedObjects,
)
from reconcilers.target import ReconcileOutcome, Runner
from resources.kind import Kinds
from resources.kubernetes import KubernetesError, StatusError
from statedb import Database
from tests.support import looptime
from tests.support.kinds import KINDS

MANAGED = frozenset({"cilium.io/NoMatchingNode"})
N1, N2 = (ObjectRef("CiliumBGPNodeConfig", "", name) for name in ("n1", "n2"))
CLUSTER = ObjectRef("CiliumBGPClusterConfig", "", "c")


class Api:
    """An API server whose requests fail as the test decides; answers are what was applied."""

    def __init__(self) -> None:
        self.fails: dict[str, KubernetesError] = {}
        """By the name of the object."""
        self.calls: list[tuple[float, str, str]] = []
        self.applied: list[Mapping[str, Any]] = []
        """The contents of server-side apply."""
        self.stored: dict[str, Any] = {}
        self.foreign = False
        """Whether another manager owns fields of the objects."""
        self.drops = self.undeclared = self.no_status = False
        """Whether the definitions have a status of unknown fields, of others, or no status."""

    def _called(self, verb: str, path: str) -> None:
        self.calls.append((asyncio.get_running_loop().time(), verb, path.rpartition("v2/")[2]))
        for name, error in self.fails.items():
            if f"/{name}" in path:
                raise error

    async def get(self, path: str) -> dict[str, Any] | None:
        self._called("get", path)
        return self.stored

    async def apply(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        self._called("apply", path)
        self.applied.append(content)
        if self.no_status and path.endswith("/status"):
            raise StatusError(404, "not found")
        if self.undeclared and path.endswith("/status"):
            raise StatusError(500, "typed patch: .status.conditions: field not declared in schema")
        answer = {k: v for k, v in content.items() if k != "status" or not self.drops}
        if self.foreign:
            answer["metadata"] = {**content["metadata"], "ownerReferences": [{"uid": "other"}]}
        return answer

    async def adopt(self, path: str) -> bool:
        self._called("adopt", path)
        adopted, self.foreign = self.foreign, False
        return adopted

    async def delete(self, path: str, uid: str) -> None:
        assert uid
        self._called("delete", path)

    async def annotate(
        self, path: str, content: Mapping[str, Any], dialect: str, *, take_over: bool
    ) -> dict[str, Any]:
        del take_over
        assert dialect
        self._called("annotate", path)
        return dict(content)

    def times(self, verb: str, name: str = "") -> list[float]:
        return [at for at, called, path in self.calls if called == verb and name in path]


class Run:
    """The reconcilers of a plan over some virtual time; the plan is changed by the test."""

    def __init__(self, api: Api | None = None, kinds: Kinds = KINDS) -> None:
        self.api = api or Api()
        self.wall = 1_767_225_600.0
        """Unix time: 2026-01-01."""
        self.outcomes: list[ReconcileOutcome] = []
        self.adopted: list[ObjectRef] = []
        self.allowed = True
        self.plan = Plan((), {}, ())
        now = asyncio.get_running_loop().time
        allowed = lambda: self.allowed  # noqa: E731
        self.objects = PlannedObjects(
            self.api, kinds, (), allowed=allowed, on_adopted=self.adopted.append, now=now
        )
        self.conditions = PlannedConditions(
            self.api, kinds, MANAGED, (), allowed=allowed, now=now, wall=lambda: self.wall
        )
        self.runner = Runner(
            Database(),
            None,
            [self.objects, self.conditions],
            random.Random(1),  # noqa: S311
            report=self.outcomes.append,
        )

    @property
    def failure(self) -> str:
        failures = [report.failure for report in self.runner.reports() if report.failure]
        return "" if not failures else f"{ObjectRef(*failures[0][0])}: {failures[0][1]}"

    async def until(self, end: float) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < end:
            self.objects.plan(self.plan)
            self.conditions.plan(self.plan)
            due = (await in_slices(self.runner.slices(loop.time))).retry_at
            await asyncio.sleep((end if due is None else min(due, end)) - loop.time())


def run(scenario: Callable[[Run], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario(Run())

    looptime.run(main())
