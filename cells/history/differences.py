"""Differences between two states of a row, field by field, as bounded text without secrets."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import astuple

from cells.api.history import FieldChangeItem
from reconcilers.sliced_work import Slices
from resources.enumeration import counted
from resources.secret_value import SecretValue

MOST_FIELDS: Final = 8
MOST_CHARACTERS: Final = 160
MOST_ELEMENTS: Final = 8
"""Of a list that is shown whole where it differs; of a longer one the part that differs."""
COMPARED: Final = 5000
"""Elements of a slice."""
MOST_SEARCHED: Final = 4096
WITHHELD: Final = "***"
SECRET: Final = re.compile(
    r"passw|passphrase|secret|token|credential|bearer|md5|(private|api|auth|access).?key|://[^/\s]*@"
)
"""In a casefolded text. Fields of such names, and texts with such words, are withheld: rather one too
many."""
NOT_COMPARED: Final = frozenset(
    (
        "metadata.creationTimestamp",
        "metadata.generation",
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
    )
)
"""Fields that follow from the object, or from its change."""
ANNOTATIONS: Final = "metadata.annotations."
"""Other programs keep passwords in annotations: of these only the names are shown."""


PLAIN: Final = frozenset((bool, bytes, float, int, str, type(None)))
"""Types without members: their values are compared at once."""
LISTS: Final = frozenset((list, tuple))
MANY: Final = LISTS | {dict}
WHOLE: Final = PLAIN | LISTS
"""Types without fields of a name."""
Leaf: TypeAlias = tuple[str, Any, Any]
"""A field, and its two values."""


def differences(old: object, new: object) -> Slices[tuple[FieldChangeItem, ...]]:
    """Return the fields that differ, at most `MOST_FIELDS`; a last one names the number of others.

    ``old`` and ``new`` are structs of one type or mappings; None has no fields.
    """
    changes: list[FieldChangeItem] = []
    others = 0
    for leaf in _leaves("", old, new):
        if leaf is None:
            yield
            continue
        field, before, after = leaf
        if len(changes) < MOST_FIELDS:
            was, has = _text(field, before), _text(field, after)
            if was is not None or has is not None:
                changes.append(FieldChangeItem(field=field, old=was, new=has))
        elif not (_is_empty(before) and _is_empty(after)):
            others += 1
    if others:
        changes.append(FieldChangeItem(field=counted(others, "more field")))
    return tuple(changes)


def _leaves(path: str, old: Any, new: Any) -> Iterator[Leaf | None]:  # noqa: ANN401
    """Yield the leaves that differ, and None after each slice of long lists."""
    if old is new or path in NOT_COMPARED:
        return
    members: Iterable[tuple[Any, Any, Any]]
    if type(old) is type(new) and isinstance(old, msgspec.Struct):
        members = zip(_names(type(old)), astuple(old), astuple(new), strict=True)
    else:
        before, after = _members(old), _members(new)
        if before is None and after is None:
            if isinstance(old, tuple | list) and isinstance(new, tuple | list):
                yield from _elements(path, old, new)
            elif old != new:
                yield path, old, new
            return
        if (before is None and old is not None) or (after is None and new is not None):
            yield path, old, new
            return
        before, after = before or {}, after or {}
        every = dict.fromkeys((*before, *after))
        members = [(name, before.get(name), after.get(name)) for name in every]
    for name, was, has in members:
        if was is has:
            continue
        of_was, of_has = type(was), type(has)
        is_plain = of_was in PLAIN
        if of_was is of_has and (is_plain or (of_was in MANY and _is_short(was))) and was == has:
            continue
        field = f"{path}.{name}" if path else str(name)
        if (is_plain and of_has in WHOLE) or (of_has in PLAIN and of_was in LISTS):
            if field not in NOT_COMPARED and was != has:
                yield field, was, has
            continue
        yield from _leaves(field, was, has)


def _is_short(value: Collection[Any]) -> bool:
    """Whether a list or a mapping has few members, all of them plain: it is compared at once."""
    members = value.values() if isinstance(value, dict) else value
    return len(value) <= MOST_ELEMENTS and PLAIN.issuperset(map(type, members))


def _elements(path: str, old: Sequence[Any], new: Sequence[Any]) -> Iterator[Leaf | None]:
    """Yield what differs of two lists: an element's fields, or of long lists the part that differs."""
    if old and len(old) == len(new) and _members(old[0]) is not None:
        for number, (before, after) in enumerate(zip(old, new, strict=True)):
            # Few elements may be very large, such as the routers of an FRRConfiguration.
            if len(old) <= MOST_ELEMENTS or before != after:
                yield from _leaves(f"{path}[{number}]", before, after)
        return
    head = yield from _common(old, new)
    if head == len(old) == len(new):
        return
    if max(len(old), len(new)) > MOST_ELEMENTS:
        tail = yield from _common(old[head:][::-1], new[head:][::-1])
        path = f"{path}[{head}...]"
        old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    yield path, old, new


def _common(old: Sequence[Any], new: Sequence[Any]) -> Generator[None, None, int]:
    """Return the number of first elements that are equal; yields after each slice of them."""
    least = min(len(old), len(new))
    for start in range(0, least, COMPARED):
        if start:
            yield
        end = min(start + COMPARED, least)
        if old[start:end] != new[start:end]:
            pairs = zip(old[start:end], new[start:end], strict=True)
            return next(at for at, (a, b) in enumerate(pairs, start) if a != b)
    return least


def _members(value: object) -> Mapping[Any, Any] | None:
    """Return the members of a struct or a mapping; None for another value."""
    if isinstance(value, list | tuple) or type(value) in PLAIN:
        return None
    if isinstance(value, msgspec.Struct):
        return dict(zip(_names(type(value)), astuple(value), strict=True))
    return value if isinstance(value, Mapping) else None


@functools.cache
def _names(struct: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the names of a struct's fields in JSON, in the order of `astuple`."""
    return tuple(field.encode_name for field in msgspec.structs.fields(struct))


def _is_empty(value: object) -> bool:
    return value is None or value in ((), [], "")


def _text(field: str, value: Any) -> str | None:  # noqa: ANN401
    """Return a value as text; None for an absent or empty one."""
    if _is_empty(value):
        return None
    if isinstance(value, SecretValue) or _is_withheld(field):
        return WITHHELD
    if isinstance(value, str):
        text = value
    elif isinstance(value, tuple | list) and all(isinstance(part, str) for part in value):
        text = ", ".join(value)
    else:
        text = msgspec.json.encode(value, enc_hook=_hidden).decode()
    if _is_secret(text[:MOST_SEARCHED]):
        return WITHHELD
    if "\n" in text:
        return f"{text.count(chr(10)) + 1} lines"
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 3]}..."


@functools.lru_cache(1024)
def _is_withheld(field: str) -> bool:
    """Whether no value of a field is shown."""
    return _is_secret(field) or field.startswith(ANNOTATIONS)


def _is_secret(text: str) -> bool:
    # A third of the time that a search takes which ignores case.
    return SECRET.search(text.casefold()) is not None


def _hidden(value: object) -> str:
    """Encode what has no JSON of its own (msgspec)."""
    return WITHHELD if isinstance(value, SecretValue) else str(value)
