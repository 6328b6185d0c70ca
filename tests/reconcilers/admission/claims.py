"""A dialect for tests of admission: a Claim gives a subject a value on the nodes that it selects.

Two Claims with one subject and two values are a conflict on the nodes that both select. ``python -m
tests.reconcilers.admission.claims`` is ``waggle-operator`` with this dialect, which is off by default,
and with a look at the webhook's certificate every second instead of every minute.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import Any

import msgspec

from reconcilers.dialect import Admission, Dialect, NodeContext, NodeIntent
from reconcilers.model import Problem, ref_to
from resources.core.kinds import NODE
from resources.crds.schema_markers import Definition
from resources.kind import Kind, selecting_nodes
from resources.label_selectors import LabelSelector
from resources.meta import Resource, Struct
from statedb import Snapshot


class ClaimSpec(Struct, frozen=True):
    """What is claimed, and on which nodes."""

    subject: str
    value: int
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    refers_to: str | None = None


class ClaimRow(Resource, frozen=True):
    """An object of kind Claim."""

    spec: ClaimSpec


CLAIM = Kind(
    "Claim",
    ClaimRow,
    group="claims.example",
    versions=("v1",),
    plural="claims",
    namespaced=False,
    table="claims",
    strict=True,
    definition=Definition("A value of a subject on some nodes."),
    of_node=selecting_nodes(lambda row: (LabelSelector(match_labels=row.spec.labels),)),
)


def _group(dialect: ClaimDialect, snapshot: Snapshot, node: str) -> Hashable:
    """Group the nodes that the same Claims select."""
    return tuple(row.metadata.name for row in dialect.selecting(snapshot, node))


def _warnings(_dialect: ClaimDialect, row: ClaimRow, _former: ClaimRow | None) -> Iterable[str]:
    """Warn of a value that is valid and unlikely to be meant."""
    if row.spec.value == 0:
        yield "spec.value: 0 is a value, too"


class ClaimDialect(Dialect):
    """Compiles Claims to their conflicts."""

    name, title = "claims", "Claims"
    kinds = (NODE, CLAIM)
    cluster_kinds = (NODE, CLAIM)
    extensions = (Admission((CLAIM,), _group, _warnings),)
    compiled = 0

    def compile(self, snapshot: Snapshot, context: NodeContext) -> NodeIntent:
        """Report the conflicts on a node."""
        ClaimDialect.compiled += 1
        by_subject = defaultdict(list)
        problems = []
        for row in self.selecting(snapshot, context.node):
            by_subject[row.spec.subject].append(row)
            if row.spec.value < 0:
                raise ValueError("a defect")
            if row.spec.refers_to is not None:
                text = f"{row.spec.refers_to} is not there"
                left_out = (f"of {context.node}",)
                problems.append(
                    Problem(
                        (ref_to(CLAIM, row),),
                        "spec.refersTo",
                        text,
                        left_out,
                        category="unresolved",
                    )
                )
        for subject, rows in by_subject.items():
            if len({row.spec.value for row in rows}) > 1:
                values = " and ".join(str(row.spec.value) for row in rows)
                refs = tuple(ref_to(CLAIM, row) for row in rows)
                problems.append(
                    Problem(refs, "spec.value", f"{subject}: {values}", category="conflict")
                )
        return NodeIntent(problems=tuple(problems))

    def selecting(self, snapshot: Snapshot, node: str) -> list[ClaimRow]:
        """Return the Claims that select a node."""
        row = self.tables.nodes.get(snapshot, ("", node))
        labels = {} if row is None else row.metadata.labels
        claims = sorted(self.tables.of(CLAIM).all(snapshot), key=lambda one: one.metadata.name)
        return [one for one in claims if one.spec.labels.items() <= labels.items()]


def claim(name: str, value: int, subject: str = "port", **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    """Spell a Claim."""
    return {
        "apiVersion": "claims.example/v1",
        "kind": "Claim",
        "metadata": {"name": name},
        "spec": {"subject": subject, "value": value, **spec},
    }


if __name__ == "__main__":
    from cells.operator.cells import operator_cells
    from cells.operator.webhook import certificate
    from tests.support.cells import entry
    from waggle.dialects import DIALECTS
    from waggle_operator.__main__ import main

    vars(certificate)["INTERVAL"] = 1.0
    sys.exit(main(cells=operator_cells(*DIALECTS, entry(ClaimDialect))))
