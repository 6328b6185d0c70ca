"""Optional fields with an empty text, which the Go types of the APIs read as absent ones."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import force_setattr

from resources.secret_value import SecretValue


def empty_is_absent(row: Struct, *fields: str) -> None:
    """Replace empty texts in optional fields of a row by None, in its ``__post_init__``.

    In Go's types of the APIs an empty text of an optional field is an absent one, and templates write
    it. Only for fields whose definition accepts it.
    """
    for field in fields:
        value = getattr(row, field)
        if isinstance(value, SecretValue):
            value = value.reveal() if value.known else None
        if value is not None and not value:
            force_setattr(row, field, None)
