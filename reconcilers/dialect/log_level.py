"""The log level of the programs, where an object sets it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from reconcilers.dialect.extension import Extension
from resources.kind import Kind
from statedb import Snapshot

LogLevel: TypeAlias = Literal["debug", "info", "warning", "error", "none"]
"""The least level that is logged; none is nothing at all."""


class LogLevelObject(Extension, frozen=True):
    """An object that sets the log level of agents and operators."""

    kind: Kind[Any]
    level: Callable[[Any, Snapshot], LogLevel | None]
    """Returns the level of the object, or None; called with the dialect after changes of the kind."""
