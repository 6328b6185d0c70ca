"""The API dialects of ``waggle``: their options, which flags are declared from, and their classes.

Importing this module is cheap; a dialect's reconcilers are imported when a command uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from reconcilers.cilium.options import CiliumOptions
from resources.option_declarations import Options

if TYPE_CHECKING:
    from reconcilers.dialect import Dialect


class DialectEntry(NamedTuple):
    """One dialect: its name, the options of `Dialect.options_type`, and its import."""

    name: str
    options: type[Options]
    load: Callable[[], type[Dialect]]


class Dialects(tuple[DialectEntry, ...]):
    """The dialects of a program, all of them enabled."""

    __slots__ = ()

    @property
    def options(self) -> Mapping[str, type[Options]]:
        """The options of the dialects by name."""
        return {entry.name: entry.options for entry in self}

    def load(self) -> tuple[type[Dialect], ...]:
        """Import the dialects and return their classes."""
        return tuple(entry.load() for entry in self)


def _cilium() -> type[Dialect]:
    from reconcilers.cilium.dialect import CiliumDialect

    return CiliumDialect


DIALECTS = Dialects((DialectEntry("cilium", CiliumOptions, _cilium),))
