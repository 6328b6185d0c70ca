"""The entry of FRR-k8s's BGP API in the programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reconcilers.dialect_entry import DialectEntry
from reconcilers.frrk8s.options import Frrk8sClusterOptions, Frrk8sOptions

if TYPE_CHECKING:
    from reconcilers.dialect import Dialect
    from resources.kind import Kind


def load() -> type[Dialect]:
    """Import the dialect."""
    from reconcilers.frrk8s.dialect import Frrk8sDialect

    return Frrk8sDialect


def kinds() -> tuple[Kind[Any], ...]:
    """Import the kinds that configure BGP."""
    from resources.frrk8s.kinds import FRR_CONFIGURATION

    return (FRR_CONFIGURATION,)


DIALECT = DialectEntry(
    name="frrk8s",
    title="FRR-k8s",
    load=load,
    kinds=kinds,
    options=Frrk8sOptions,
    operator_options=Frrk8sClusterOptions,
    installs_routes=True,
)
