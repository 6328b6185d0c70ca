"""The entry of Cilium's BGP APIs in the programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reconcilers.cilium.options import CiliumOperatorOptions, CiliumOptions
from reconcilers.dialect_entry import DialectEntry

if TYPE_CHECKING:
    from reconcilers.dialect import Dialect
    from resources.kind import Kind


def load() -> type[Dialect]:
    """Import the dialect."""
    from reconcilers.cilium.dialect import CiliumDialect

    return CiliumDialect


def kinds() -> tuple[Kind[Any], ...]:
    """Import the kinds that configure BGP."""
    from resources.cilium.kinds import CLUSTER_CONFIG, PEERING_POLICY

    return CLUSTER_CONFIG, PEERING_POLICY


DIALECT = DialectEntry(
    name="cilium",
    title="Cilium BGP",
    load=load,
    kinds=kinds,
    options=CiliumOptions,
    operator_options=CiliumOperatorOptions,
    on_by_default=True,
)
