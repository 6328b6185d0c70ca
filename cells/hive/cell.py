"""What a cell is: a named container with declared inputs, singletons out, and its own options.

A cell is data. Building, starting and naming what is missing is `cells.hive.hive`.

The container's ``Dependency`` providers are its inputs, matched by name with an output of another
cell, and by type with what that output makes. Six names are given by the hive itself, each made
for this very cell: ``lifecycle``, ``jobs``, ``health``, ``readiness``, ``options`` and ``hive``.
Every other provider whose name does not start with an underscore is an output. ``invokes``, a
``providers.List``, names what has to be constructed even if nobody asks for it.
"""

from __future__ import annotations

import msgspec
from dependency_injector.containers import DeclarativeContainer
from dependency_injector.providers import Dependency

from cells.hive.options import Options

GIVEN = ("lifecycle", "jobs", "health", "readiness", "options", "hive")
"""Inputs that the hive provides to every cell."""

INVOKES = "invokes"


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One switchable part of the agent."""

    name: str
    description: str
    container: type[DeclarativeContainer]
    options: type[Options] = Options
    on_with: str | None = None
    """The option without which the cell is off by default, or None: the cell is on by default."""
    on_beside: str | None = None
    """The cell without which this one is off by default: it has nothing to do then."""

    @property
    def inputs(self) -> dict[str, type]:
        """Names of what the cell needs of other cells, with the types that it accepts."""
        found = {}
        for name, provider in self.container.providers.items():
            if isinstance(provider, Dependency) and name not in GIVEN:
                found[name] = provider.instance_of
        return found

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of what the cell provides to others."""
        return tuple(
            name
            for name, provider in self.container.providers.items()
            if not isinstance(provider, Dependency) and name != INVOKES and not name.startswith("_")
        )
