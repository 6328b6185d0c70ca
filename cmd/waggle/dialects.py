"""The API dialects of all programs: a dialect is imported where it is on, or a command uses it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cells.dialects import antrea, cilium, frrk8s, metallb, ovnk
from reconcilers.dialect_entry import DialectEntry, Subcommand
from resources.option_declarations import Options

if TYPE_CHECKING:
    from reconcilers.dialect import Dialect


class Dialects(tuple[DialectEntry, ...]):
    """The dialects of a program; of ``waggle`` all of them are enabled."""

    __slots__ = ()

    @property
    def options(self) -> Mapping[str, type[Options]]:
        """The options of the dialects by name."""
        return {entry.name: entry.options for entry in self}

    @property
    def subcommands(self) -> Mapping[str, Subcommand]:
        """The sub-commands of the dialects by name."""
        return {added.name: added for entry in self for added in entry.subcommands}

    def load(self) -> tuple[type[Dialect], ...]:
        """Import the dialects and return their classes."""
        return tuple(entry.load() for entry in self)


DIALECTS = Dialects((antrea.DIALECT, cilium.DIALECT, frrk8s.DIALECT, metallb.DIALECT, ovnk.DIALECT))
