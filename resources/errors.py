"""Errors of objects: object, field and broken rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeVar

import msgspec

from resources.enumeration import counted_are, joined

T = TypeVar("T")

INVALID_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of msgspec for octets that are no JSON of a type; no UTF-8 and deep nesting have Python's."""
MAX_LISTED_ERRORS: Final = 100
"""Errors of the items of one list that are reported; the items after them are not checked."""


class FieldError(msgspec.Struct, frozen=True, order=True):
    """One field that breaks a rule; the path has Kubernetes' form: ``spec.peers[0].name``."""

    path: str
    message: str

    def __str__(self) -> str:
        """Return ``path: message``."""
        return f"{self.path}: {self.message}" if self.path else self.message


def checked_items(
    items: Sequence[T], path: str, errors: list[FieldError]
) -> Iterator[tuple[int, T]]:
    """Yield the items of a list with their indices, until there are many errors (`FieldError`).

    The caller adds the errors of each item to ``errors``.
    """
    until = len(errors) + MAX_LISTED_ERRORS
    for i, item in enumerate(items):
        if len(errors) >= until:
            errors.append(too_many_wrong_items(path, len(items) - i))
            return
        yield i, item


def first_errors(errors: Iterable[FieldError]) -> tuple[FieldError, ...]:
    """Return the errors of an object, its broken rules; after many, the rest is not checked."""
    first = tuple(islice(errors, MAX_LISTED_ERRORS + 1))
    if len(first) <= MAX_LISTED_ERRORS:
        return first
    last = first[-1]
    return (*first[:-1], FieldError(last.path, f"{last.message}; what follows is not checked"))


def too_many_wrong_items(path: str, count: int) -> FieldError:
    """Return the one error of a list in which so many items are wrong that the rest is not checked."""
    text = f"{counted_are(count, 'more entry', 'more entries')} not checked: "
    text += f"the entries before have {MAX_LISTED_ERRORS} problems"
    return FieldError(path, text)


def shortened(text: str) -> str:
    """Return a text in quotes for an error message, cut after 64 characters."""
    return repr(text if len(text) <= 64 else text[:63] + "…")


def as_written(text: str) -> str:
    """Return a text for an error message, without quotes where nothing in it could mislead."""
    return text if len(text) <= 64 and text.isprintable() else shortened(text)


class ObjectName(msgspec.Struct, frozen=True, order=True):
    """Names one object."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """``Kind/namespace/name`` or ``Kind/name``."""
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


class ResourceError(Exception):
    """Base of the errors of this package."""


class InvalidObject(ResourceError):  # noqa: N818  the name is the condition
    """An object that breaks rules, with every broken rule."""

    def __init__(self, object: ObjectName, errors: tuple[FieldError, ...]) -> None:  # noqa: A002
        super().__init__(joined(map(str, errors), start=f"{object}: "))
        self.object = object
        self.errors = errors
