"""Label selectors with Kubernetes' semantics (metav1.LabelSelector).

A selector that is absent (None) and one that is empty are different things, and which means what is
the caller's: here an empty selector selects everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from resources.errors import FieldError
from resources.meta import Struct


class LabelSelectorRequirement(Struct, frozen=True):
    """One expression."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether labels fulfil the expression."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case _:
                return value is None


class LabelSelector(Struct, frozen=True):
    """All labels and all expressions have to match."""

    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether labels are selected."""
        for key, value in self.match_labels.items():
            if labels.get(key) != value:
                return False
        return all(requirement.matches(labels) for requirement in self.match_expressions)

    def both(self, other: LabelSelector) -> LabelSelector:
        """Make a selector of what this one and another one select."""
        labels = tuple(
            LabelSelectorRequirement(key=key, operator="In", values=(value,))
            for key, value in sorted(other.match_labels.items())
            if self.match_labels.get(key) != value
        )
        return LabelSelector(
            match_labels=self.match_labels,
            match_expressions=(*self.match_expressions, *labels, *other.match_expressions),
        )

    @property
    def keys(self) -> frozenset[str]:
        """The label keys that it looks at."""
        return frozenset(self.match_labels) | {r.key for r in self.match_expressions}


def selector_errors(selector: LabelSelector | None, path: str) -> Iterator[FieldError]:
    """Check the rules that a schema cannot express."""
    if selector is None:
        return
    for i, requirement in enumerate(selector.match_expressions):
        where = f"{path}.matchExpressions[{i}].values"
        if requirement.operator in ("In", "NotIn"):
            if not requirement.values:
                yield FieldError(where, f"at least one value with operator {requirement.operator}")
        elif requirement.values:
            yield FieldError(where, f"no values with operator {requirement.operator}")
