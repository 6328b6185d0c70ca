"""The conversions of ``waggle convert``: objects of other kinds, and drafts that no kind reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from reconcilers.dialect.extension import Extension
from reconcilers.model import ObjectRef, Problem
from resources.kind import Kind

Json: TypeAlias = dict[str, Any]


class Notes:
    """The notes of a conversion: what has no equivalent, and what remains to be done."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def add(self, ref: ObjectRef, field: str, message: str) -> None:
        """Add a note on a field of an object to any dialect's conversion."""
        self.problems.append(Problem((ref,), field, message, category="unsupported"))


class Conversion(Extension, frozen=True, kw_only=True):
    """Converts objects to objects of one API; its functions return objects as JSON, and take notes."""

    target: str = ""
    """The name of the result for ``--to``; empty is the default."""
    kinds: tuple[Kind[Any], ...] = ()
    """The kinds that are converted."""
    rows: Callable[[Mapping[str, Sequence[Any]], Notes], list[Json]] | None = None
    """Converts all rows, which are given by kind."""
    drafts: str = ""
    """The name of the objects that `draft` converts, for messages."""
    draft: Callable[[Mapping[str, Any], Notes], list[Json] | None] | None = None
    """Converts one object of a draft, as JSON; None for any other object. The result is read in its
    place."""
