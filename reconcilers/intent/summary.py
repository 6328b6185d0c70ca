"""Summary of a run of the intent compiler: its work, or what it waits for."""

from __future__ import annotations

import msgspec
from opentelemetry.trace import SpanContext


class Summary(msgspec.Struct, frozen=True):
    """The result of one run."""

    ready: bool
    """False until the kinds of a dialect have been read; nothing is compiled before that."""
    waiting_for: tuple[str, ...] = ()
    """The tables that have not been read; empty if every dialect is compiled."""
    retry: float | None = None
    """The seconds after which a run is due, if no table changes before."""
    dialects: tuple[str, ...] = ()
    """The dialects whose configuration was compiled."""
    objects: int = 0
    """The number of objects of route sources that contributed again."""
    routes: int = 0
    """The number of rows of routes that were written or deleted."""
    span: SpanContext | None = None
    """The span of this run, for the reconcilers that follow from it."""
