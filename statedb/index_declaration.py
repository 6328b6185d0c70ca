"""Declarations of indexes, and the shape of keys.

A key is a ``str``, an ``int``, ``bytes``, a pair of numbers, or a tuple of these. All keys of one index
have the same number of components, so a prefix of a key (``("default",)`` of ``("default", "web")``)
selects a group of rows. The rows are in `statedb.state`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")

Component: TypeAlias = str | int | bytes | tuple[int, int]
Key: TypeAlias = Component | tuple[Component, ...]


def as_path(key: Key) -> tuple[Component, ...]:
    """Return the components of a key."""
    return key if isinstance(key, tuple) else (key,)


class Index(Generic[T]):
    """Rows by one key or by several.

    ``key`` returns the key of a row, ``keys`` any number of keys (a multi-key index); exactly one of
    the two is given. A ``unique`` index rejects a second row with a key.
    """

    __slots__ = ("key", "keys", "name", "unique")

    def __init__(
        self,
        name: str,
        key: Callable[[T], Key] | None = None,
        *,
        keys: Callable[[T], Iterable[Key]] | None = None,
        unique: bool = False,
    ) -> None:
        if (key is None) == (keys is None):
            raise TypeError(f"index {name!r} takes either key or keys")
        self.name = name
        self.unique = unique
        self.key = key
        """None for an index with several keys of a row."""
        self.keys: Callable[[T], Iterable[Key]]
        if keys is not None:
            self.keys = keys
        else:
            key_of = key
            assert key_of is not None  # noqa: S101  exactly one of the two is given
            self.keys = lambda row: (key_of(row),)
