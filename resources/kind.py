"""A kind of object: how the API names it, how its objects become rows, and which table holds them.

Each folder of kinds declares its own (`resources.core.kinds`, `resources.<dialect>.kinds`); `Kinds`
is the set that a program reads.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec

from resources.crds.schema_markers import Definition
from resources.errors import FieldError, InvalidObject, ObjectName, as_written, first_errors
from resources.label_selectors import LabelSelector
from resources.meta import METADATA_FIELDS, ObjectKey, Resource
from resources.schema import (
    did_you_mean,
    structural_errors,
    unknown_fields,
    unknown_names,
    without_nulls,
)
from resources.secret_value import decode_field
from resources.without_wrong_fields import unrelated, without_fields
from statedb import Index

T = TypeVar("T", bound=Resource)

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_FIELD_TERM = re.compile(r"(?P<field>[^=!,]+)(?:==?|!=)(?P<value>[^=!,]*)")
DEFAULT_NAMESPACE = "default"
_COMMON_FIELDS = frozenset(("apiVersion", "kind", "metadata", "status"))
"""Fields that every object may have, and that `Kind.unknown_fields` checks by other rules or not."""

NodeSelectors: TypeAlias = Callable[[Any], Iterable[LabelSelector]]
"""The node selectors of a row; the row concerns a node that one of them selects, or any without one."""


def _no_keys(row: Any) -> Iterable[str]:  # noqa: ANN401, ARG001
    return ()


class NodeFilter(msgspec.Struct, frozen=True):
    """Selects the objects of a kind that concern one node; an agent of an API server stores these."""

    accepts: Callable[[Any, str, Mapping[str, str]], bool]
    """Takes a row, and the name and the labels of the node."""
    fields: str = ""
    """A field selector for the same objects, in which ``{node}`` stands for the node's name; empty
    where the API server has none: all objects are requested. Every kind has ``metadata.name``, and
    ``metadata.namespace`` if it is in one; a kind with another term has a list that is refused."""
    label_keys: Callable[[Any], Iterable[str]] = _no_keys
    """The keys of the labels of a node on which it depends whether a row is accepted."""
    selectors: NodeSelectors | None = None
    """Returns the label selectors of a row; None if the kind does not select nodes by labels."""
    reduced: Callable[[Any], Any] | None = None
    """Makes the row that is stored of an object of another node, in a program that reads those, too
    (`resources.kubernetes.of_node`); None where no program does."""


NAMED_AFTER_NODE: Final = NodeFilter(
    lambda row, node, labels: bool(row.metadata.name == node),  # noqa: ARG005
    fields="metadata.name={node}",
)
"""The kind has one object per node, with the node's name."""


def selecting_nodes(selectors: NodeSelectors) -> NodeFilter:
    """Return the node filter of a kind whose objects select nodes by labels."""

    def accepts(row: Any, node: str, labels: Mapping[str, str]) -> bool:  # noqa: ANN401, ARG001
        terms = tuple(selectors(row))
        return not terms or any(selector.matches(labels) for selector in terms)

    def label_keys(row: Any) -> Iterable[str]:  # noqa: ANN401
        return {key for selector in selectors(row) for key in selector.keys}

    return NodeFilter(accepts, label_keys=label_keys, selectors=selectors)


class KindFamily(msgspec.Struct, frozen=True):
    """Kinds of an API group of which all are known: another name is a mistake."""

    prefix: str = ""
    """How their names begin; empty: all kinds of the group."""
    others: frozenset[str] = frozenset()
    """Kinds that no program reads."""


def _check_field_selector(kind: str, selector: str, *, namespaced: bool) -> None:
    """Check a field selector that every API server accepts for a kind. Raises ValueError."""
    accepted = ("metadata.name", *(["metadata.namespace"] if namespaced else []))
    for term in selector.split(","):
        match = _FIELD_TERM.fullmatch(term)
        if match is None:
            raise ValueError(f"{kind}: of_node: {term!r} is no term of a field selector")
        if match["field"] not in accepted:
            rule = f"an API server selects by {' and '.join(accepted)} alone"
            raise ValueError(f"{kind}: of_node: {match['field']}: {rule}")
        if re.search(r"[{}]", match["value"].replace("{node}", "")):
            raise ValueError(f"{kind}: of_node: {match['value']!r} has another field than {{node}}")


class Kind(Generic[T]):
    """One kind of object.

    ``errors`` yields the rules that a row breaks; ``convert`` replaces the conversion from JSON for
    rows whose shape differs from the API's (``encoded`` is that shape, ``value_errors`` its rules).
    ``invalid`` makes the row of an object that breaks rules, where such an object matters to others:
    its problem is then the dialect's to report, and no earlier version of it is in effect. ``plural``
    is in the paths of the API; by default the name in lower case, with an s.
    """

    def __init__(
        self,
        name: str,
        row: type[T],
        *,
        group: str,
        versions: tuple[str, ...],
        plural: str = "",
        namespaced: bool,
        table: str,
        indexes: tuple[Index[Any], ...] = (),
        of_node: NodeFilter | None = None,
        one_selects_node: NodeSelectors | None = None,
        errors: Callable[[T], Iterator[FieldError]] | None = None,
        strict: bool = False,
        definition: Definition | None = None,
        convert: Callable[[Any], T] | None = None,
        encoded: type[msgspec.Struct] | None = None,
        value_errors: Callable[[Any], Iterator[FieldError]] | None = None,
        former: Mapping[str, type[Resource]] = MappingProxyType({}),
        draft_groups: tuple[str, ...] = (),
        invalid: Callable[[Any, tuple[FieldError, ...]], T] | None = None,
        may_be_missing: bool = False,
        family: KindFamily | None = None,
        built_in: frozenset[ObjectKey] = frozenset(),
        of_tenants: bool = False,
        metadata_only: bool = False,
    ) -> None:
        if of_node is not None and of_node.fields:
            _check_field_selector(name, of_node.fields, namespaced=namespaced)
        self.family = family
        """The kinds of the group that are all known, this one among them; None: other projects add
        kinds to it."""
        self.table = table
        """The name of its StateDB table; the primary index is (namespace, name)."""
        self.indexes = indexes
        self.of_node = of_node
        """None: an agent stores all objects of the kind."""
        self.one_selects_node = one_selects_node
        """The node selectors of a row where one object at most is in effect on a node, and programs
        store all of them; None for other kinds."""
        self._convert_value = convert
        self._encoded = encoded or row
        self._value_errors = value_errors
        self._invalid = invalid
        self.name = name
        self.row = row
        self.group = group
        self.versions = versions
        """The first one is written, all are read."""
        self.metadata_only = metadata_only
        """True if an API server is requested to send the metadata of the objects alone."""
        self.of_tenants = of_tenants
        """True if users of a namespace write its objects: their problems are apart from others."""
        self.may_be_missing = may_be_missing or self.custom
        """True if some API servers do not serve the kind, or serve other versions."""
        self.plural = plural or f"{name.lower()}s"
        self.namespaced = namespaced
        self.strict = strict
        """True if unknown fields are reported: the row declares every field of the kind."""
        self.definition = definition
        """Of its CustomResourceDefinition; None for kinds whose definition is not ours."""
        self.draft_groups = draft_groups
        """API groups of drafts of the kind, which nothing serves: an object of one is a problem."""
        self.former = former
        """Row types of versions with fields of their own, by version; only manifests have them.

        ``convert`` makes rows of the kind of them."""
        self.built_in = built_in
        """Objects that every API server creates itself, even one with an empty database."""
        self.api_versions: Final = tuple(map(self.api_version, versions))
        """``group/version`` of each version of the kind."""
        self.read_api_versions: Final = (*self.api_versions, *(f"{group}/{v}" for v in self.former))
        """``group/version`` of each version of the kind that is read from manifests."""
        self._errors = errors
        self._decoder = msgspec.json.Decoder(row, dec_hook=decode_field)

    def __repr__(self) -> str:
        """Return ``<Kind NAME>``."""
        return f"<Kind {self.name}>"

    def api_version(self, version: str) -> str:
        """Return the kind's ``group/version``, or the version in the core group."""
        return f"{self.group}/{version}" if self.group else version

    @property
    def custom(self) -> bool:
        """True if a CustomResourceDefinition adds the kind."""
        return bool(self.group) and not self.group.endswith(".k8s.io")

    def path(self, version: str, namespace: str = "") -> str:
        """Return the URL path of the list of the kind, of one namespace or of all."""
        root = f"/apis/{self.group}/{version}" if self.group else f"/api/{version}"
        within = f"/namespaces/{namespace}" if namespace else ""
        return f"{root}{within}/{self.plural}"

    def object_path(self, name: str, namespace: str = "") -> str:
        """Return the URL path of one object of the kind in the version that is written."""
        return f"{self.path(self.versions[0], namespace)}/{name}"

    def decode_json(self, octets: bytes | msgspec.Raw) -> T:
        """Decode an object of the kind as an API server sends it; unknown fields are skipped.

        Raises `InvalidObject` with every broken rule, `msgspec.DecodeError` for invalid JSON.
        """
        if self._convert_value is not None:
            return self.decode(msgspec.json.decode(octets))
        try:
            row = self._decoder.decode(octets)
        except msgspec.ValidationError:
            return self.decode(msgspec.json.decode(octets))
        if bool(row.metadata.namespace) != self.namespaced:
            return self.decode(msgspec.json.decode(octets))
        broken = first_errors(self._rules(row, None))
        if broken:
            name = ObjectName(self.name, row.metadata.namespace, row.metadata.name)
            raise InvalidObject(name, broken)
        return row

    def decode(self, value: Any) -> T:  # noqa: ANN401  JSON
        """Convert an object of the kind to a row. Raises `InvalidObject` with every broken rule."""
        value = self._with_namespace(value)
        try:
            try:
                row = self._convert(value)
            except msgspec.ValidationError:
                # Perhaps only for a null, which for Kubernetes is an absent field.
                value = without_nulls(value)
                row = self._convert(value)
        except msgspec.ValidationError as error:
            errors = tuple(structural_errors(value, self._encoded)) or (FieldError("", str(error)),)
            return self._broken(value, (*errors, *self._remaining(value, errors)))
        broken = first_errors(self._rules(row, value))
        return self._broken(value, broken) if broken else row

    def decode_without(self, value: Any, errors: Sequence[FieldError]) -> T | None:  # noqa: ANN401  JSON
        """Convert an object of the kind without its wrong fields to a row.

        Returns None where it is still invalid.
        """
        sound = without_fields(value, self._shape_of(value), errors)
        if sound is None:
            return None
        try:
            row = self.decode(sound)
        except InvalidObject:
            return None
        return None if row.broken_rules else row

    def _remaining(self, value: Any, errors: tuple[FieldError, ...]) -> Iterator[FieldError]:  # noqa: ANN401
        """Yield the rules that an object breaks beside its wrong types and limits."""
        sound = without_fields(value, self._encoded, errors)
        if sound is not None:
            with contextlib.suppress(msgspec.ValidationError):
                yield from unrelated(first_errors(self._rules(self._convert(sound), sound)), errors)

    def _broken(self, value: Any, errors: tuple[FieldError, ...]) -> T:  # noqa: ANN401
        """Return the row of an invalid object, if the kind has such rows. Raises `InvalidObject`."""
        of_metadata = any(error.path.startswith("metadata") for error in errors)
        if self._invalid is None or of_metadata or not isinstance(value, dict):
            raise InvalidObject(self.name_of(value), errors)
        return self._invalid(value, errors)

    def unknown_fields(self, value: Any) -> list[FieldError]:  # noqa: ANN401  JSON
        """List fields that the kind does not have; empty unless the kind is ``strict``."""
        if not self.strict:
            return []
        if not isinstance(value, dict):
            return []
        own = {name: item for name, item in value.items() if name not in _COMMON_FIELDS}
        unknown = unknown_fields(own, self._shape_of(value))
        return [*unknown_names(value.get("metadata"), METADATA_FIELDS, "metadata"), *unknown]

    def name_of(self, value: Any) -> ObjectName:  # noqa: ANN401  JSON
        """Return the name of an object of the kind, with empty parts where the metadata has none."""
        metadata = value.get("metadata") if isinstance(value, dict) else None
        metadata = metadata if isinstance(metadata, dict) else {}
        namespace = str(metadata.get("namespace") or DEFAULT_NAMESPACE) if self.namespaced else ""
        return ObjectName(self.name, namespace, str(metadata.get("name") or ""))

    def _convert(self, value: Any) -> T:  # noqa: ANN401
        if self._convert_value is not None:
            return self._convert_value(value)
        return msgspec.convert(value, self.row, dec_hook=decode_field)

    def _shape_of(self, value: Any) -> type[Resource]:  # noqa: ANN401
        version = value.get("apiVersion") if isinstance(value, dict) else None
        return self.former.get(str(version).rpartition("/")[2], self.row)

    def _with_namespace(self, value: Any) -> Any:  # noqa: ANN401
        metadata = value.get("metadata") if isinstance(value, dict) else None
        if isinstance(metadata, dict):
            if self.namespaced and not metadata.get("namespace"):
                value = {**value, "metadata": {**metadata, "namespace": DEFAULT_NAMESPACE}}
            elif not self.namespaced and "namespace" in metadata:
                kept = {k: v for k, v in metadata.items() if k != "namespace"}
                value = {**value, "metadata": kept}
        return value

    def _rules(self, row: T, value: Any) -> Iterator[FieldError]:  # noqa: ANN401
        name, namespace = row.metadata.name, row.metadata.namespace
        if len(name) > 253 or not _NAME.fullmatch(name):
            shown = name if len(name) <= 64 else name[:63] + "…"
            yield FieldError("metadata.name", f"{shown!r} is not a DNS subdomain (RFC 1123)")
        if namespace and not _NAME.fullmatch(namespace):
            yield FieldError("metadata.namespace", f"{namespace[:64]!r} is not a DNS label")
        if self._value_errors is not None:
            yield from self._value_errors(value)
        if self._errors is not None:
            yield from self._errors(row)


class Kinds:
    """An immutable, ordered set of kinds: what a program reads, or what a dialect declares."""

    __slots__ = ("_all", "_by_name", "_by_version")

    def __init__(self, *groups: Iterable[Kind[Any]]) -> None:
        """Join groups; a kind of several groups is contained once.

        Raises `ValueError` where two different kinds have one name or one table.
        """
        self._all: tuple[Kind[Any], ...] = tuple(
            dict.fromkeys(k for group in groups for k in group)
        )
        self._by_name = {kind.name: kind for kind in self._all}
        self._by_version = {
            (version, kind.name): kind for kind in self._all for version in kind.read_api_versions
        }
        if len(self._by_name) < len(self._all):
            raise ValueError(f"two kinds of one name among {self._all}")
        if len({kind.table for kind in self._all}) < len(self._all):
            raise ValueError(f"two kinds with one table among {self._all}")

    def __iter__(self) -> Iterator[Kind[Any]]:
        """Iterate in the order of declaration."""
        return iter(self._all)

    def __len__(self) -> int:
        """Return the number of kinds."""
        return len(self._all)

    def __contains__(self, kind: object) -> bool:
        """True if the kind is one of the set."""
        return kind in self._all

    def named(self, name: str) -> Kind[Any] | None:
        """Return the kind with this ``kind:``, or None."""
        return self._by_name.get(name)

    def find(self, api_version: str, name: str) -> Kind[Any] | None:
        """Return the kind of an object by its ``apiVersion`` and ``kind``, or None."""
        return self._by_version.get((api_version, name))

    def misnamed(self, api_version: str, name: str) -> str:
        """Return why an object of an unknown kind is a mistake; empty if of another project.

        That is a kind of a group of these kinds which differs from one of them in capital letters or
        by a plural, or which its family does not have.
        """
        group = api_version.rpartition("/")[0]
        of_group = {kind.name: kind for kind in self._all if kind.group == group}
        lower = name.lower()
        families = [kind.family for kind in of_group.values() if kind.family is not None]
        if any(name in family.others for family in families):
            return ""
        alike = [
            kind.name
            for kind in of_group.values()
            if lower in (kind.name.lower(), f"{kind.name}s".lower(), kind.plural)
        ]
        if not alike and not any(lower.startswith(f.prefix.lower()) for f in families):
            return ""
        hint = did_you_mean(name, alike or of_group)
        return f"there is no {as_written(name)} in {group or 'the core group'}{hint}"

    def without(self, *kinds: Kind[Any]) -> Kinds:
        """Return the set of kinds without some of them."""
        return Kinds(kind for kind in self._all if kind not in kinds)
