"""Label selectors with Kubernetes' semantics (metav1.LabelSelector).

An empty selector selects everything; the meaning of an absent one (None) depends on the field.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from resources.crds.patterns import LABEL_VALUE
from resources.crds.schema_markers import ATOMIC_LIST, doc
from resources.errors import FieldError, shortened
from resources.meta import Struct

LabelValue = Annotated[str, Meta(max_length=63, pattern=LABEL_VALUE)]
Operator: TypeAlias = Literal["In", "NotIn", "Exists", "DoesNotExist"]


class LabelSelectorRequirement(Struct, frozen=True):
    """One expression."""

    key: Annotated[str, doc("The label that is looked at.")]
    operator: Annotated[
        Operator,
        doc(
            "The operator of the label and the values. In: it has one of them. NotIn: it has none of "
            "them, or is absent. Exists and DoesNotExist: it is there or not, with any value."
        ),
    ]
    values: Annotated[
        tuple[str, ...],
        doc("At least one for In and NotIn, none for Exists and DoesNotExist.", ATOMIC_LIST),
    ] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """True if labels fulfil the expression."""
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


class Mismatch(NamedTuple):
    """The requirements of a selector that labels do not fulfil."""

    wanted: str
    """As `LabelSelector.text`: ``app=web``."""
    present: str
    """The labels in their place: ``app=shop``, ``no label app``."""
    requirements: int
    """Their number."""


class LabelSelector(Struct, frozen=True):
    """All labels and all expressions have to match."""

    match_labels: Annotated[
        dict[str, LabelValue], doc("Labels that have to be there, each with exactly this value.")
    ] = msgspec.field(default_factory=dict)
    match_expressions: Annotated[
        tuple[LabelSelectorRequirement, ...],
        doc("Expressions that have to be true, all of them and all of matchLabels.", ATOMIC_LIST),
    ] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """True if labels are selected."""
        for key, value in self.match_labels.items():
            if labels.get(key) != value:
                return False
        return all(requirement.matches(labels) for requirement in self.match_expressions)

    def mismatch(self, labels: Mapping[str, str]) -> Mismatch | None:
        """Return the requirements that labels do not meet; None if they are selected."""
        wanted = [
            LabelSelector(match_labels={key: value})
            for key, value in self.match_labels.items()
            if labels.get(key) != value
        ]
        wanted += [
            LabelSelector(match_expressions=(requirement,))
            for requirement in self.match_expressions
            if not requirement.matches(labels)
        ]
        keys = dict.fromkeys(key for part in wanted for key in part.keys)
        present = [f"{key}={labels[key]}" if key in labels else f"no label {key}" for key in keys]
        text = ",".join(part.text for part in wanted)
        return Mismatch(text, ", ".join(present), len(wanted)) if wanted else None

    def both(self, other: LabelSelector) -> LabelSelector:
        """Return the conjunction of this and another label selector."""
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
    def text(self) -> str:
        """Return kubectl's text of the selector: ``tier=web,zone in (a,b),!drained``."""
        parts = [f"{key}={value}" for key, value in self.match_labels.items()]
        for requirement in self.match_expressions:
            values = f"({','.join(requirement.values)})"
            parts.append(
                {
                    "In": f"{requirement.key} in {values}",
                    "NotIn": f"{requirement.key} notin {values}",
                    "Exists": requirement.key,
                    "DoesNotExist": f"!{requirement.key}",
                }[requirement.operator]
            )
        return ",".join(parts) or "everything"

    @property
    def keys(self) -> frozenset[str]:
        """The label keys of all requirements."""
        return frozenset(self.match_labels) | {r.key for r in self.match_expressions}


T = TypeVar("T")


def nearest_mismatch(
    selectors: Sequence[LabelSelector], labels: Mapping[str, str]
) -> Mismatch | None:
    """Return the mismatch of the label selector nearest to labels; None if one selects."""
    mismatches = [selector.mismatch(labels) for selector in selectors]
    missing = [mismatch for mismatch in mismatches if mismatch is not None]
    if len(missing) < len(mismatches):
        return None
    return min(missing, key=lambda mismatch: mismatch.requirements, default=None)


class SelectorIndex(Generic[T]):
    """Objects by the labels that they select, for many sets of labels that few objects select each."""

    def __init__(self, objects: Iterable[tuple[T, LabelSelector]]) -> None:
        self._objects = list(objects)
        required: list[list[tuple[str, str]]] = [
            _alternatives(labelled) for _, labelled in self._objects
        ]
        count = Counter(label for labels in required for label in labels)
        self._by_label: dict[tuple[str, str], list[int]] = {}
        self._of_any: list[int] = []
        """Selectors that are evaluated for all labels."""
        for number, labels in enumerate(required):
            if not labels:
                self._of_any.append(number)
                continue
            by_equality = bool(self._objects[number][1].match_labels)
            # Of labels that all have to be there, the rarest one; of an expression's labels, each.
            for label in [min(labels, key=count.__getitem__)] if by_equality else labels:
                self._by_label.setdefault(label, []).append(number)

    def matching(self, labels: Mapping[str, str]) -> Iterator[T]:
        """Yield the objects whose label selectors select these labels, in their order."""
        numbers = set(self._of_any)
        for label in labels.items():
            numbers.update(self._by_label.get(label, ()))
        for number in sorted(numbers):
            labelled, selector = self._objects[number]
            if selector.matches(labels):
                yield labelled


def _alternatives(selector: LabelSelector) -> list[tuple[str, str]]:
    """Return labels of which a selected object has at least one; none if there are no such labels."""
    if selector.match_labels:
        return list(selector.match_labels.items())
    for requirement in selector.match_expressions:
        if requirement.operator == "In":
            return [(requirement.key, value) for value in dict.fromkeys(requirement.values)]
    return []


def selector_errors(selector: LabelSelector | None, path: str) -> Iterator[FieldError]:
    """Check the rules of a label selector that a schema cannot express."""
    if selector is None:
        return
    for i, requirement in enumerate(selector.match_expressions):
        where = f"{path}.matchExpressions[{i}].values"
        if requirement.operator in ("In", "NotIn"):
            if not requirement.values:
                yield FieldError(where, f"at least one value with operator {requirement.operator}")
        elif requirement.values:
            yield FieldError(where, f"no values with operator {requirement.operator}")


_LABEL_KEY: Final = re.compile(
    r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
"""A qualified name, with a DNS subdomain of at most 253 characters before the slash."""
_LABEL_VALUE: Final = re.compile(LABEL_VALUE)


def strict_selector_errors(selector: LabelSelector | None, path: str) -> Iterator[FieldError]:
    """Check a label selector as ``metav1.LabelSelectorAsSelector`` does: keys and values, too.

    For kinds whose definition does not restrict them, so that an API server stores any text.
    """
    if selector is None:
        return
    for key, value in selector.match_labels.items():
        yield from _key_errors(key, f"{path}.matchLabels")
        yield from _value_errors(value, f"{path}.matchLabels.{key}")
    for i, requirement in enumerate(selector.match_expressions):
        where = f"{path}.matchExpressions[{i}]"
        yield from _key_errors(requirement.key, f"{where}.key")
        for j, value in enumerate(requirement.values):
            yield from _value_errors(value, f"{where}.values[{j}]")
    yield from selector_errors(selector, path)


def is_key(text: str) -> bool:
    """True if a text is the key of a label, or of a taint."""
    prefix, _, name = text.rpartition("/")
    # A long text is not looked at: an API server stores a megabyte of it.
    return len(prefix) <= 253 and len(name) <= 63 and _LABEL_KEY.fullmatch(text) is not None


def _key_errors(key: str, path: str) -> Iterator[FieldError]:
    if not is_key(key):
        yield FieldError(path, f"{shortened(key)} is not the key of a label")


def _value_errors(value: str, path: str) -> Iterator[FieldError]:
    if len(value) > 63 or not _LABEL_VALUE.fullmatch(value):
        yield FieldError(path, f"{shortened(value)} is not the value of a label")


def label_value(text: str) -> str:
    """Return a text as the value of a label: other characters are hyphens, a long one is shortened.

    A shortened text ends in a part of its hash, so that two of them differ.
    """
    if len(text) <= 63 and _LABEL_VALUE.fullmatch(text):
        return text
    plain = re.sub(r"[^-A-Za-z0-9_.]", "-", text)
    if len(plain) > 63:
        plain = f"{plain[:54]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    return plain.strip("-_.")


class SelectorTextError(ValueError):
    """A text is no label selector; ``str()`` is the part that cannot be read."""


_REQUIREMENT: Final = re.compile(
    r"\s*(?P<absent>!?)\s*(?P<key>[^\s,=!()]+)\s*"
    r"(?:(?P<equal>==?|!=)\s*(?P<value>[^\s,=!()]*)|(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?"
    r"\s*(?P<end>,|$)"
)


@functools.lru_cache(maxsize=256)
def parse_selector(text: str) -> LabelSelector:
    """Return the label selector of a text such as kubectl's ``-l``; an empty one selects everything.

    Raises `SelectorTextError`, also for the operators ``>`` and ``<``, which no LabelSelector has.
    """
    requirements: list[LabelSelectorRequirement] = []
    position, more = 0, bool(text.strip())
    while more:
        match = _REQUIREMENT.match(text, position)
        if match is None:
            raise SelectorTextError(text[position:])
        requirements.append(_requirement(match))
        position, more = match.end(), match["end"] == ","
    return LabelSelector(match_expressions=tuple(requirements))


def _requirement(match: re.Match[str]) -> LabelSelectorRequirement:
    key = match["key"]
    operator: Operator = "DoesNotExist" if match["absent"] else "Exists"
    values: tuple[str, ...] = ()
    if match["equal"] or match["set"]:
        operator = "NotIn" if match["equal"] == "!=" or match["set"] == "notin" else "In"
        given = [match["value"]] if match["equal"] else match["values"].split(",")
        values = tuple(value.strip() for value in given)
    valid = not (match["absent"] and values) and is_key(key)
    if not valid or any(len(v) > 63 or not _LABEL_VALUE.fullmatch(v) for v in values):
        raise SelectorTextError(match[0])
    return LabelSelectorRequirement(key=key, operator=operator, values=values)
