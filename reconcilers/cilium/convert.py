"""The conversions of ``waggle convert`` for Cilium's objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from reconcilers.cilium.members import united_nodes
from reconcilers.cilium.v1.translate import Known, as_object, translate
from reconcilers.dialect import Converter
from reconcilers.model import Problem
from resources.cilium.kinds import CILIUM_NODE, LOAD_BALANCER_IP_POOL, PEERING_POLICY
from resources.core.kinds import NODE


def _translate(rows: Mapping[str, Sequence[Any]]) -> tuple[list[dict[str, Any]], list[Problem]]:
    nodes = united_nodes(rows[NODE.name], rows[CILIUM_NODE.name])
    known = Known(tuple(nodes.values()), tuple(rows[LOAD_BALANCER_IP_POOL.name]))
    made = translate(rows[PEERING_POLICY.name], known)
    return [as_object(row) for row in made.objects], made.notes


PEERING_POLICIES: Final = Converter((PEERING_POLICY,), _translate)
"""v1's policies to the objects of v2 that are equivalent."""
