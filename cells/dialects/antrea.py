"""The entry of Antrea's BGPPolicy in the programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from reconcilers.antrea.options import AntreaOperatorOptions, AntreaOptions
from reconcilers.dialect_entry import DialectEntry

if TYPE_CHECKING:
    from reconcilers.dialect import Dialect
    from resources.kind import Kind

NOT_ENABLED: Final = "bgp is not enabled"
"""Antrea's answer while its feature gate is off."""


def load() -> type[Dialect]:
    """Import the dialect."""
    from reconcilers.antrea.dialect import AntreaDialect

    return AntreaDialect


def kinds() -> tuple[Kind[Any], ...]:
    """Import the kind that configures BGP."""
    from resources.antrea.kinds import BGP_POLICY

    return (BGP_POLICY,)


DIALECT = DialectEntry(
    name="antrea",
    title="Antrea BGP",
    load=load,
    kinds=kinds,
    options=AntreaOptions,
    operator_options=AntreaOperatorOptions,
    paths_while_off=tuple(
        (path, NOT_ENABLED) for path in ("/bgppolicy", "/bgppeers", "/bgproutes")
    ),
)
