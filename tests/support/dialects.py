"""Dialects with other extensions than their own."""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec.structs import replace

from reconcilers.dialect import Dialect, Extension

E = TypeVar("E", bound=Extension)


def extension(dialect: type[Dialect] | Dialect, kind: type[E]) -> E:
    """Return the one extension of a type that a dialect has."""
    (own,) = dialect.each(kind)
    return own


def changed(dialect: type[Dialect], kind: type[Extension], **fields: Any) -> tuple[Extension, ...]:  # noqa: ANN401
    """Return the extensions of a dialect, of a type with other fields."""
    return tuple(
        replace(own, **fields) if isinstance(own, kind) else own for own in dialect.extensions
    )
