"""Further errors of an object of which some fields are wrong: it is judged again without these.

Types and limits come before the rules of a kind, and these before the references to other objects. With
its wrong fields removed an object gets to the next step, so that all of its errors are found at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import inspect as shapes

from resources.errors import FieldError
from resources.schema import shape_of

_PART: Final = re.compile(r"[^.\[\]]+|\[\d+\]")


def without_fields(value: Any, row: type, errors: Sequence[FieldError]) -> Any | None:  # noqa: ANN401
    """Return a JSON object without its wrong fields, to find the remaining errors.

    A number gets a valid value. None where that cannot be: an item of a list, or a required object.
    Paths of other fields stay.
    """
    for error in errors:
        parts = [part.strip("[]") for part in _PART.findall(error.path)]
        value = _without(value, shape_of(row), parts)
        if value is None:
            return None
    return value


def _without(value: Any, shape: shapes.Type | None, parts: Sequence[str]) -> Any | None:  # noqa: ANN401
    if not parts:
        return None
    first, rest = parts[0], parts[1:]
    if isinstance(value, list):
        if not first.isdigit() or int(first) >= len(value):
            return None
        index = int(first)
        item = _without(value[index], _item(shape), rest)
        return None if item is None else [*value[:index], item, *value[index + 1 :]]
    if not isinstance(value, dict):
        return None
    field = _field(shape, first)
    within = None
    if rest and first in value:
        within = _without(value[first], None if field is None else field.type, rest)
    if within is None and field is not None:
        # A number too: an instance without an AS number would not be looked at.
        within = _placeholder(field.type)
        if field.required and within is None:
            return None
    kept = {name: item for name, item in value.items() if name != first}
    return kept if within is None else {**kept, first: within}


def _plain(shape: shapes.Type | None) -> shapes.Type | None:
    """Return a shape without its description, and without null."""
    while True:
        if isinstance(shape, shapes.Metadata):
            shape = shape.type
        elif isinstance(shape, shapes.UnionType):
            shape = next((t for t in shape.types if not isinstance(t, shapes.NoneType)), None)
        else:
            return shape


def _item(shape: shapes.Type | None) -> shapes.Type | None:
    shape = _plain(shape)
    return shape.item_type if isinstance(shape, shapes.ListType | shapes.VarTupleType) else None


def _field(shape: shapes.Type | None, name: str) -> shapes.Field | None:
    shape = _plain(shape)
    if not isinstance(shape, shapes.StructType):
        return None
    return next((field for field in shape.fields if field.encode_name == name), None)


def _placeholder(shape: shapes.Type) -> Any | None:  # noqa: ANN401
    """Return a number that no other field has by chance; None for a field of another type."""
    plain = _plain(shape)
    if isinstance(plain, shapes.IntType):
        return plain.le if plain.le is not None else plain.ge
    return None


def unrelated(errors: Iterable[FieldError], known: Sequence[FieldError]) -> Iterator[FieldError]:
    """Yield the remaining errors, which do not result from the fields of known ones.

    An error results from a field if its path is of the field, within it or above it, or if its message
    names the field: a rule about several fields is not checked while one of them is wrong.
    """
    names = {parts[-1] for error in known if (parts := re.findall(r"\w*[A-Za-z]\w*", error.path))}
    for error in errors:
        if any(_overlap(error.path, other.path) for other in known):
            continue
        if names.isdisjoint(re.findall(r"\w+", error.message)):
            yield error


def _overlap(path: str, other: str) -> bool:
    parts, two = _PART.findall(path), _PART.findall(other)
    shorter = min(len(parts), len(two))
    return parts[:shorter] == two[:shorter]
