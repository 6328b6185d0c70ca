"""The entry of Antrea's BGPPolicy in the programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from reconcilers.antrea.options import AntreaOperatorOptions, AntreaOptions
from reconcilers.dialect_entry import DialectEntry, Subcommand

if TYPE_CHECKING:
    from reconcilers.dialect import Command, Dialect
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


def command() -> Command:
    """Import the subcommand."""
    from reconcilers.antrea.command import COMMAND

    return COMMAND


DIALECT = DialectEntry(
    name="antrea",
    title="Antrea BGP",
    load=load,
    kinds=kinds,
    options=AntreaOptions,
    operator_options=AntreaOperatorOptions,
    subcommands=(
        Subcommand(
            "antrea",
            "show the effective BGPPolicy of this node, its peers and routes, as antctl does",
            command,
        ),
    ),
    paths_while_off=tuple(
        (path, NOT_ENABLED) for path in ("/bgppolicy", "/bgppeers", "/bgproutes")
    ),
)
