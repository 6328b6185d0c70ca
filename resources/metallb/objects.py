"""The base of MetalLB's rows, and how objects become rows.

An object that breaks a rule is a row as well, with its errors: it stops the nodes that it concerns
(docs/metallb.md), so that the compiler has to see it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from resources.errors import FieldError
from resources.label_selectors import LabelSelector, strict_selector_errors
from resources.meta import ObjectMeta, Resource, Struct
from resources.metallb.field_rules import misplaced_errors
from resources.schema import structural_errors, without_nulls
from resources.secret_value import decode_field
from resources.without_wrong_fields import unrelated, without_fields

_MAX_TEXT = 256
"""Characters of a text that is kept of an object that is otherwise not read."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation that repeats the whole object, its passwords included; it is dropped."""


class MetalLBObject(Resource, frozen=True, kw_only=True):
    """Base of the rows."""

    errors: tuple[FieldError, ...] = msgspec.field(default=(), name="%errors")
    """The rules that the object breaks; beside these only its nodes and references are used."""

    @property
    def broken_rules(self) -> tuple[FieldError, ...]:
        """The rules that an object of MetalLB breaks."""
        return self.errors


T = TypeVar("T", bound=MetalLBObject)


def decoder(
    row: type[T],
    spec: type[Struct],
    rules: Callable[[Any], Iterator[FieldError]],
    broken: Callable[[tuple[LabelSelector, ...], Mapping[str, str]], Struct],
    former: Mapping[str, tuple[type[Resource], Callable[[Any], T]]] | None = None,
) -> Callable[[Any], T]:
    """Return how objects of a MetalLB kind become rows; ``former``: types by former ``apiVersion``.

    ``broken`` makes the spec of an object whose spec cannot be read, from its node selectors and its
    fields that are texts. The conversion raises `msgspec.ValidationError` only for impossible metadata.
    """

    def convert(value: Any) -> T:  # noqa: ANN401  JSON
        value = _without_annotation(without_nulls(value))
        shape: type[Resource] = row
        present: Callable[[Any], T] | None = None
        if former is not None:
            shape, present = former.get(str(value.get("apiVersion")), (row, None))
        try:
            decoded = msgspec.convert(value, shape, dec_hook=decode_field)
        except msgspec.ValidationError:
            errors = [
                error
                for error in structural_errors(value, shape)
                if not error.path.startswith("metadata")
            ]
            metadata = msgspec.convert(value.get("metadata"), ObjectMeta)
            given = value.get("spec")
            kept = broken(_node_selectors(given), _texts(given))
            sound = without_fields(value, shape, errors)
            if sound is not None and sound != value:
                with contextlib.suppress(msgspec.ValidationError):
                    readable = convert(sound)
                    errors += unrelated(readable.errors, errors)
                    kept = readable.spec  # type: ignore[attr-defined]
            return row(metadata=metadata, spec=kept, errors=tuple(errors))  # type: ignore[call-arg]
        converted = cast("T", decoded if present is None else present(decoded))
        broken_rules = (*misplaced_errors(value, spec), *rules(converted))
        return replace(converted, errors=broken_rules) if broken_rules else converted

    return convert


def _without_annotation(value: Any) -> Any:  # noqa: ANN401
    metadata = value.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not isinstance(annotations, dict) or LAST_APPLIED not in annotations:
        return value
    kept = {name: text for name, text in annotations.items() if name != LAST_APPLIED}
    return {**value, "metadata": {**metadata, "annotations": kept}}


def _texts(spec: Any) -> dict[str, str]:  # noqa: ANN401
    """Return the fields of a spec that are texts of a usual length."""
    given = spec if isinstance(spec, dict) else {}
    return {
        name: value
        for name, value in given.items()
        if isinstance(value, str) and len(value) <= _MAX_TEXT
    }


def _node_selectors(spec: Any) -> tuple[LabelSelector, ...]:  # noqa: ANN401
    """Return the selectors of a spec that is otherwise broken; none (all nodes) if they are, too."""
    given = spec.get("nodeSelectors") if isinstance(spec, dict) else None
    try:
        selectors = msgspec.convert(given, tuple[LabelSelector, ...])
    except msgspec.ValidationError:
        return ()
    if any(True for selector in selectors for _ in strict_selector_errors(selector, "")):
        return ()
    return selectors
