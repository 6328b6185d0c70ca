"""Extensions: values that a dialect adds to the programs beside its intent, found by their type."""

from __future__ import annotations

import msgspec


class Extension(msgspec.Struct, frozen=True):
    """A member of `Dialect.extensions`; `Dialect.each` returns the extensions of a type.

    A function of an extension takes the dialect first, as a method does: its tables and options.
    """
