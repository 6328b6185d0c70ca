"""The entry of MetalLB's BGP kinds in the programs; with it FRR-k8s's are on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reconcilers.dialect_entry import DialectEntry
from reconcilers.metallb.options import MetalLBOperatorOptions, MetalLBOptions

if TYPE_CHECKING:
    from reconcilers.dialect import Dialect
    from resources.kind import Kind


def load() -> type[Dialect]:
    """Import the dialect."""
    from reconcilers.metallb.dialect import MetalLBDialect

    return MetalLBDialect


def kinds() -> tuple[Kind[Any], ...]:
    """Import the kinds that configure BGP."""
    from resources.metallb.kinds import BGP_PEER

    return (BGP_PEER,)


DIALECT = DialectEntry(
    name="metallb",
    title="MetalLB",
    load=load,
    kinds=kinds,
    feeds="frrk8s",
    options=MetalLBOptions,
    operator_options=MetalLBOperatorOptions,
)
