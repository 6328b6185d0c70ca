"""The conversions to Cilium's objects of v2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from reconcilers.cilium.convert.cfp_draft import convert_draft
from reconcilers.cilium.node_facts import merged_nodes
from reconcilers.cilium.v1.translation import ClusterView, as_object, translate
from reconcilers.dialect import Conversion, Notes
from resources.cilium.kinds import CILIUM_NODE, LOAD_BALANCER_IP_POOL, PEERING_POLICY
from resources.core.kinds import NODE


def _translate(rows: Mapping[str, Sequence[Any]], notes: Notes) -> list[dict[str, Any]]:
    nodes = merged_nodes(rows[NODE.name], rows[CILIUM_NODE.name])
    view = ClusterView(tuple(nodes.values()), tuple(rows[LOAD_BALANCER_IP_POOL.name]))
    translated = translate(rows[PEERING_POLICY.name], view)
    notes.problems += translated.notes
    return [as_object(row) for row in translated.objects]


TO_V2: Final = Conversion(
    kinds=(PEERING_POLICY,), rows=_translate, drafts="draft of CFP-28175", draft=convert_draft
)
"""From v1's policies, and from the draft of v2."""
