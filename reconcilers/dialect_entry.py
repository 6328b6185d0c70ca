"""The entry of an API dialect in the lists of the programs: what is known of it before it is imported.

A dialect that is off stays an entry: its options are declared for ``--help``, and its kinds are
imported only where objects of them are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from resources.option_declarations import Options

if TYPE_CHECKING:
    from reconcilers.dialect import Command, Dialect
    from resources.kind import Kind


class Subcommand(msgspec.Struct, frozen=True):
    """A subcommand of ``waggle``, as its help lists it."""

    name: str
    help: str
    load: Callable[[], Command]
    """Imports what it does."""


class DialectEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One dialect. What is a field of the class, too, has the same value there."""

    name: str
    title: str
    load: Callable[[], type[Dialect]]
    """Imports the dialect and returns its class."""
    kinds: Callable[[], tuple[Kind[Any], ...]]
    """Imports and returns the kinds whose objects are counted and named while the dialect is off."""
    options: type[Options] = Options
    """The options of an agent and of ``waggle render``."""
    operator_options: type[Options] = Options
    paths_while_off: tuple[tuple[str, str], ...] = ()
    """Paths of its `reconcilers.dialect.ApiPath`s, and the text of their answer while it is off: with
    status 503."""
    subcommands: tuple[Subcommand, ...] = ()
    feeds: str | None = None
    """The dialect that this one feeds, and switches on."""
    installs_routes: bool = False
    """Whether its API is for routes in the kernel, too."""
    on_by_default: bool = False
    """Whether agents and operators have it on; an upgrade must not open second sessions."""
