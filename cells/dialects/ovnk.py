"""The entry of OVN-Kubernetes' RouteAdvertisements in the programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reconcilers.dialect_entry import DialectEntry
from reconcilers.ovnk.options import OvnkOptions

if TYPE_CHECKING:
    from reconcilers.dialect import Dialect
    from resources.kind import Kind


def load() -> type[Dialect]:
    """Import the dialect."""
    from reconcilers.ovnk.dialect import OvnkDialect

    return OvnkDialect


def kinds() -> tuple[Kind[Any], ...]:
    """Import the kind that configures BGP."""
    from resources.ovnk.kinds import ROUTE_ADVERTISEMENTS

    return (ROUTE_ADVERTISEMENTS,)


DIALECT = DialectEntry(
    name="ovnk",
    title="OVN-Kubernetes",
    load=load,
    kinds=kinds,
    options=OvnkOptions,
    operator_options=OvnkOptions,
    feeds="frrk8s",
    installs_routes=True,
)
