"""Annotations of objects that belong to others: planned, written by themselves, shown by render."""

from __future__ import annotations

from typing import Any, ClassVar

from reconcilers.dialect import (
    ClusterContext,
    ClusterIntent,
    Dialect,
    NodeContext,
    NodeIntent,
    Operation,
)
from reconcilers.model import ObjectAnnotations, ObjectRef, ref_to
from reconcilers.operator import Annotate, Plan, Planner
from reconcilers.sliced_work import finish
from resources.core.kinds import NODE
from resources.kind import Kinds
from resources.kubernetes import StatusError
from statedb import Snapshot
from tests.reconcilers.build import NODE as NAME
from tests.reconcilers.build import Cluster
from tests.reconcilers.operator.plan_run import Run, run

KEY = "test.waggle.dev/number"


class Numbered(Dialect):
    """Numbers nodes by an annotation."""

    name: ClassVar = "numbered"
    title: ClassVar = "numbers"
    kinds: ClassVar = (NODE,)
    cluster_kinds: ClassVar = (NODE,)
    extensions: ClassVar = (Operation(lambda dialect, *context: dialect.operate(*context)),)

    def _annotations(self, snapshot: Snapshot) -> tuple[ObjectAnnotations, ...]:
        rows = self.tables.nodes.all(snapshot)
        return tuple(
            ObjectAnnotations(ref_to(NODE, row), {KEY: "7"}, row.metadata.uid)
            for row in rows
            if KEY not in row.metadata.annotations
        )

    def compile(self, snapshot: Snapshot, context: NodeContext) -> NodeIntent:
        del context
        return NodeIntent(annotations=self._annotations(snapshot))

    def operate(self, snapshot: Snapshot, context: ClusterContext) -> ClusterIntent:
        # Nothing is written where nothing is stored: the node's own part shows it.
        return ClusterIntent(annotations=self._annotations(snapshot) if context.stored else ())


def node(**annotations: str) -> dict[str, Any]:
    return {"metadata": {"name": NAME, "uid": "u1", "annotations": annotations}}


def test_the_annotation_alone_is_planned_for_the_object_that_was_read() -> None:
    cluster = Cluster(also=[Numbered])
    cluster.put(NODE, node())
    planner = Planner(cluster.db, [Numbered(cluster.resources, Numbered.options_type())], "")
    plan = finish(planner.plan())
    assert plan is not None
    metadata = {"name": NAME, "uid": "u1", "annotations": {KEY: "7"}}
    content = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
    assert plan.objects == (Annotate(ObjectRef("Node", "", NAME), content, "numbered"),)
    cluster.put(NODE, node(**{KEY: "8"}))
    plan = finish(planner.plan())
    assert plan is not None
    assert plan.objects == ()


def test_render_shows_it() -> None:
    cluster = Cluster(also=[Numbered])
    cluster.put(NODE, node())
    cluster.run()
    assert cluster.render()["annotations"] == [
        {"kind": "Node", "namespace": None, "name": NAME, "set": {KEY: "7"}}
    ]


def test_a_value_that_another_manager_has_set_is_kept() -> None:
    """The write fails with 409, and is retried until the plan changes."""
    write = Annotate(ObjectRef("Node", "", "n1"), {"metadata": {"name": "n1"}}, "numbered")

    async def scenario(_: Run) -> None:
        job = Run(kinds=Kinds((NODE,)))
        job.plan = Plan((write,), {}, ())
        await job.until(2)
        assert [verb for _, verb, _ in job.api.calls] == ["annotate"]
        job.api.fails["n1"] = StatusError(409, "owned by kubectl")
        job.plan = Plan((Annotate(write.object, {"metadata": {}}, "numbered"),), {}, ())
        await job.until(4)
        assert "owned by kubectl" in job.failure
        assert {verb for _, verb, _ in job.api.calls} == {"annotate"}

    run(scenario)
