"""The conversions of ``waggle convert`` for Cilium's objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from reconcilers.cilium.cfp_draft import convert_draft
from reconcilers.cilium.node_facts import merged_nodes
from reconcilers.cilium.v1.translate import ClusterView, as_object, translate
from reconcilers.dialect import Converter, DraftConverter
from reconcilers.model import Problem
from resources.cilium.kinds import CILIUM_NODE, LOAD_BALANCER_IP_POOL, PEERING_POLICY
from resources.core.kinds import NODE


def _translate(rows: Mapping[str, Sequence[Any]]) -> tuple[list[dict[str, Any]], list[Problem]]:
    nodes = merged_nodes(rows[NODE.name], rows[CILIUM_NODE.name])
    view = ClusterView(tuple(nodes.values()), tuple(rows[LOAD_BALANCER_IP_POOL.name]))
    translated = translate(rows[PEERING_POLICY.name], view)
    return [as_object(row) for row in translated.objects], translated.notes


PEERING_POLICIES: Final = Converter((PEERING_POLICY,), _translate)
"""From v1's policies to the equivalent objects of v2."""
CFP_DRAFT: Final = DraftConverter(("draft of CFP-28175",), convert_draft)
"""From the draft of v2 to v2."""
