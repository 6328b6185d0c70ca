"""Extensions: values that a dialect adds to the programs beside its intent, found by their type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

import msgspec

if TYPE_CHECKING:
    from reconcilers.dialect.protocol import Dialect

D = TypeVar("D", bound="Dialect")
E = TypeVar("E", bound="Extension")


class Extension(msgspec.Struct, frozen=True):
    """A member of `Dialect.extensions`; `Dialect.each` returns the extensions of a type.

    A function of an extension takes the dialect first, as a method does: its tables and options.
    """


def extended(dialects: Iterable[D], extension: type[E]) -> list[tuple[D, E]]:
    """Return the extensions of a type that dialects have, each with its dialect."""
    return [(dialect, own) for dialect in dialects for own in dialect.each(extension)]
