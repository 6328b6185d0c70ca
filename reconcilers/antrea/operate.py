"""The operator's part: it annotates nodes with a router ID, as Antrea's agents do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from reconcilers.antrea.in_effect import choose
from reconcilers.antrea.node_facts import annotated, node_facts, router_id
from reconcilers.dialect import ClusterContext, ClusterIntent, Operation
from reconcilers.model import ObjectAnnotations
from resources.antrea import BGPPolicy
from resources.antrea.kinds import BGP_POLICY
from resources.core import Node
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.antrea.dialect import AntreaDialect


def operate(dialect: AntreaDialect, snapshot: Snapshot, context: ClusterContext) -> ClusterIntent:
    """Annotate Nodes with an effective BGPPolicy and no router ID, as the operator's part.

    Nothing is written where nothing is stored: `compile_node` shows the annotation of the one node.
    """
    if not context.stored:
        return ClusterIntent()
    policies = tuple(dialect.tables.of(BGP_POLICY).all(snapshot))
    next_fields = dialect.options.next_fields
    return ClusterIntent(
        annotations=tuple(
            annotation
            for node in dialect.tables.nodes.all(snapshot)
            if (annotation := _annotation(node, policies, next_fields=next_fields)) is not None
        )
    )


def _annotation(
    node: Node, policies: Sequence[BGPPolicy], *, next_fields: bool
) -> ObjectAnnotations | None:
    identifier = router_id(node, node_facts(node))
    if identifier.annotated:
        return None
    choice = choose(policies, node.metadata.labels, next_fields=next_fields)
    return None if choice.policy is None else annotated(node, identifier.text)


OPERATION: Final = Operation(operate)
