"""Compiles the FRRConfigurations that the operator's part has generated to what a node feeds. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from reconcilers.dialect import Feed, NodeContext, NodeIntent, Translated
from reconcilers.model import ObjectRef, ref_to
from reconcilers.ovnk.conditions import without_effect
from resources.frrk8s.frrconfiguration import FRRConfiguration
from resources.frrk8s.kinds import FRR_CONFIGURATION
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.ovnk.dialect import OvnkDialect


def compile_node(dialect: OvnkDialect, snapshot: Snapshot, context: NodeContext) -> NodeIntent:
    """Feed FRR-k8s the FRRConfigurations that OVN-Kubernetes' part has generated for a node."""
    tables = dialect.tables
    node = tables.nodes.get(snapshot, ("", context.node))
    if not dialect.options.generates or not context.operator_in_process or node is None:
        return NodeIntent()
    rows = _selecting(context.generated, node.metadata.labels)
    objects = [
        Translated(ObjectRef(FRR_CONFIGURATION.name, *row.key), row, fields=None, is_quiet=True)
        for row in rows
    ]
    stored = {ref_to(FRR_CONFIGURATION, row) for row in tables.of(FRR_CONFIGURATION).all(snapshot)}
    generated = {ObjectRef(*key) for key in context.generated}
    feed = Feed.of(objects)
    # What is generated is in place of what is stored, and what is deleted has no effect.
    feed.replaced = dict.fromkeys(stored & (generated | context.deleted), "")
    partial = (without_effect(translated.origin, translated.row) for translated in objects)
    return NodeIntent(
        feed=feed, conditions=tuple(condition for condition in partial if condition is not None)
    )


def _selecting(
    generated: Mapping[tuple[str, str, str], Any], labels: Mapping[str, str]
) -> Iterator[FRRConfiguration]:
    """Yield the generated FRRConfigurations that select a node."""
    for (kind, _, _), content in generated.items():
        if kind != FRR_CONFIGURATION.name:
            continue
        wanted = content["spec"]["nodeSelector"].get("matchLabels", {})
        if wanted.items() <= labels.items():
            yield FRR_CONFIGURATION.decode(content)
