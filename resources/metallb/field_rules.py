"""Rules that several of MetalLB's kinds share (MetalLB: internal/config/validation.go)."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Final

from msgspec import Meta

from resources.errors import FieldError, shortened
from resources.label_selectors import (
    LabelSelector,
    LabelSelectorRequirement,
    strict_selector_errors,
)
from resources.meta import METADATA_FIELDS, Struct
from resources.schema import shape_of

MAX_ASN: Final = 4294967295
AnyAsn = Annotated[int, Meta(ge=0, le=MAX_ASN)]
"""An AS number as the schema takes it; 0 is refused where it is used."""
SELECTING: Final = frozenset(
    {"ipAddressPools", "ipAddressPoolSelectors", "nodeSelectors", "peers", "serviceSelectors"}
)
"""Fields without which an object selects everything."""


def twice_errors(texts: Iterable[str], path: str) -> Iterator[FieldError]:
    """Yield an error for each text that a list field of MetalLB's kinds has more than once."""
    for text, count in Counter(texts).items():
        if count > 1:
            yield FieldError(path, f"{shortened(text)} is listed {count} times")


def selectors_errors(selectors: Sequence[LabelSelector], path: str) -> Iterator[FieldError]:
    """Yield the broken rules of fields with selectors, of MetalLB's kinds: invalid, or twice.

    Two selectors that mean the same, an expression that a selector has twice, and a value that an
    expression has twice (MetalLB: validateLabelSelectorDuplicate).
    """
    first: dict[object, int] = {}
    for i, selector in enumerate(selectors):
        yield from strict_selector_errors(selector, f"{path}[{i}]")
        yield from _repeated_requirement_errors(selector, f"{path}[{i}].matchExpressions")
        earlier = first.setdefault(_meaning(selector), i)
        if earlier != i:
            yield FieldError(f"{path}[{i}]", f"is the same selector as {path}[{earlier}]")


def _repeated_requirement_errors(selector: LabelSelector, path: str) -> Iterator[FieldError]:
    for i, requirement in enumerate(selector.match_expressions):
        yield from twice_errors(requirement.values, f"{path}[{i}].values")
    expressions = Counter(map(_expression, selector.match_expressions))
    if any(count > 1 for count in expressions.values()):
        yield FieldError(path, "has an expression twice")


def _meaning(selector: LabelSelector) -> object:
    return (
        frozenset(selector.match_labels.items()),
        frozenset(map(_expression, selector.match_expressions)),
    )


def _expression(requirement: LabelSelectorRequirement) -> object:
    return (requirement.key, requirement.operator, frozenset(requirement.values))


def misplaced_errors(value: Any, spec: type[Struct]) -> Iterator[FieldError]:  # noqa: ANN401
    """Yield an error for a misplaced field of MetalLB's kinds: beneath metadata, beside spec.

    And for a misspelled field that selects.

    Without it the object would be read with an empty spec, which for an advertisement is
    every pool to every peer.
    """
    if not isinstance(value, dict):
        return
    fields = {field.encode_name for field in getattr(shape_of(spec), "fields", ())}
    metadata = value.get("metadata")
    for name in metadata if isinstance(metadata, dict) else ():
        if name == "spec" or (name in fields and name not in METADATA_FIELDS):
            yield FieldError(f"metadata.{name}", "belongs beneath the object, not beneath metadata")
    for name in value:
        if name in fields and name not in ("metadata", "spec", "status"):
            yield FieldError(str(name), "belongs beneath spec")
    given = value.get("spec")
    for name in given if isinstance(given, dict) else ():
        meant = [] if name in fields else difflib.get_close_matches(str(name), fields, 1, 0.8)
        if meant and meant[0] in SELECTING:
            text = f"is no field; without {meant[0]} the object would select everything"
            yield FieldError(f"spec.{str(name)[:64]}", text)
