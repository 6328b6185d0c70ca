"""Decodes one file to rows and problems. Pure.

A file may hold several documents and lists of objects. Objects of unknown kinds are counted and
otherwise ignored: a directory may be shared with other programs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from resources.errors import INVALID_JSON, FieldError, InvalidObject, ObjectName
from resources.kind import Kind, Kinds
from resources.manifests.yamlfile import Document, YamlError, parse_yaml
from resources.meta import ObjectKey, Resource
from resources.source import SourceProblem

Rewrite: TypeAlias = Callable[[Any], Iterable[Any]]
"""Replaces an object as JSON by others, before it is decoded."""
MAX_YAML = 16 * 1024 * 1024
MAX_JSON = 256 * 1024 * 1024
"""Size limits in octets; a larger file is not read."""


Identity = tuple[str, ObjectKey]
"""Kind and key."""


class Item(NamedTuple):
    """One object of a file; the row of an invalid object is None."""

    identity: Identity
    row: Resource | None
    line: int
    document: int

    @property
    def name(self) -> ObjectName:
        """The name of a parsed object, for people."""
        return ObjectName(self.identity[0], *self.identity[1])


class Parsed(NamedTuple):
    """The content of a file; ``whole`` is false if it could not be parsed to its end."""

    items: tuple[Item, ...]
    problems: tuple[SourceProblem, ...]
    whole: bool
    unread: Mapping[tuple[str, str], int] = {}
    """The number of objects of each kind that is not read, by ``apiVersion`` and ``kind``."""


class Rejected(NamedTuple):
    """An object that breaks rules of its kind, as JSON."""

    kind: Kind[Any]
    value: Any
    errors: tuple[FieldError, ...]


def size_limit(path: str) -> int:
    """Return up to which size in octets a manifest of this file name is parsed."""
    return MAX_JSON if path.endswith(".json") else MAX_YAML


def parse_file(
    path: str,
    data: bytes,
    kinds: Kinds,
    rewrite: Rewrite | None = None,
    rejected: list[Rejected] | None = None,
) -> Parsed:
    """Parse the objects of a manifest file; objects of other kinds than ``kinds`` are only counted.

    Invalid objects are added to ``rejected``.
    """
    return _parsed(path, _documents(path, data), kinds, rewrite, rejected)


def parse_objects(
    path: str, values: Iterable[Any], kinds: Kinds, rejected: list[Rejected] | None = None
) -> Parsed:
    """Parse objects as `parse_file` parses a file's; ``path`` names where they are from."""
    documents = (Document(value, 1, 0, None) for value in values)
    return _parsed(path, documents, kinds, None, rejected)


def _parsed(
    path: str,
    documents: Iterable[Document],
    kinds: Kinds,
    rewrite: Rewrite | None,
    rejected: list[Rejected] | None,
) -> Parsed:
    unread: Counter[tuple[str, str]] = Counter()
    items: list[Item] = []
    problems: list[SourceProblem] = []
    whole = True
    try:
        for document in documents:
            for value, prefix in _objects(document.value):
                for part in (value,) if rewrite is None else rewrite(value):
                    _decode(path, document, part, prefix, kinds, items, problems, unread, rejected)
    except YamlError as error:
        problems.append(SourceProblem(path, 0, error.line, None, "", error.message))
        whole = False
    return Parsed(tuple(items), tuple(problems), whole, unread)


def parse_list_item(path: str, value: Any, listed: tuple[str, str, int], kinds: Kinds) -> Parsed:  # noqa: ANN401  JSON
    """Parse one item of a list in JSON: ``listed`` is the list's kind and version, and the index."""
    kind, api_version, index = listed
    unread: Counter[tuple[str, str]] = Counter()
    items: list[Item] = []
    problems: list[SourceProblem] = []
    document = Document(value, 1, 0, None)
    lone = {"kind": kind, "apiVersion": api_version, "items": [value]}
    for content, prefix in _objects(lone):
        at = f"items[{index}]{prefix.removeprefix('items[0]')}"
        _decode(path, document, content, at, kinds, items, problems, unread)
    return Parsed(tuple(items), tuple(problems), True, unread)


def _documents(path: str, data: bytes) -> Iterator[Document]:
    if not path.endswith(".json"):
        yield from parse_yaml(data)
        return
    if not data.strip():
        return
    try:
        value = msgspec.json.decode(data)
    except INVALID_JSON:
        # msgspec is fast; the slower parser reports the position of the error.
        value = _slowly(data)
    yield Document(value, 1, 0, None)


def _slowly(data: bytes) -> Any:  # noqa: ANN401  JSON
    try:
        value = json.loads(data.decode("utf-8-sig"))
        # It takes halves of surrogate pairs, which no text has.
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg}, column {error.colno}"
        raise YamlError(message, error.lineno) from None
    except UnicodeEncodeError:
        raise YamlError("not JSON: a text has half of a surrogate pair") from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise YamlError(f"not JSON: {error}") from None
    except ValueError:
        raise YamlError("not JSON: a number is too long") from None
    return value


def _objects(value: Any) -> Iterator[tuple[Any, str]]:  # noqa: ANN401
    """Yield the objects of a document with the paths before theirs; lists are flattened."""
    if (
        isinstance(value, dict)
        and isinstance(value.get("items"), list)
        and str(value.get("kind", "")).endswith("List")
    ):
        kind = str(value["kind"])[: -len("List")]
        for i, item in enumerate(value["items"]):
            if kind and isinstance(item, dict) and "kind" not in item:
                version = value.get("apiVersion")
                item = {"apiVersion": version, "kind": kind, **item}
            for inner, prefix in _objects(item):
                yield inner, f"items[{i}]" + (f".{prefix}" if prefix else "")
    else:
        yield value, ""


def _decode(
    path: str,
    document: Document,
    value: Any,  # noqa: ANN401
    prefix: str,
    kinds: Kinds,
    items: list[Item],
    problems: list[SourceProblem],
    unread: Counter[tuple[str, str]],
    rejected: list[Rejected] | None = None,
) -> None:
    def problem(
        name: ObjectName | None, field: str, message: str, *, ignored: bool = False
    ) -> None:
        where = ".".join(part for part in (prefix, field) if part)
        line = document.line_of(where) if document.node is not None else 0
        problems.append(
            SourceProblem(path, document.number, line, name, field, message, ignored=ignored)
        )

    if not isinstance(value, dict):
        problem(None, "", f"an object is expected, this is {type(value).__name__}")
        return
    api_version, kind_name = value.get("apiVersion"), value.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind_name, str):
        missing = "apiVersion" if not isinstance(api_version, str) else "kind"
        problem(None, missing, "is required, and a string")
        return
    line = document.line_of(prefix) if document.node is not None else 0
    kind = kinds.find(api_version, kind_name)
    if kind is None:
        known = kinds.named(kind_name)
        group = api_version.rpartition("/")[0]
        if known is None or group not in (known.group, *known.draft_groups):
            unread[api_version, kind_name] += 1
            mistake = kinds.misnamed(api_version, kind_name)
            if mistake:
                problem(_name_of(value, kind_name), "kind", mistake)
            return
        name = known.name_of(value)
        read = " and ".join(known.read_api_versions)
        problem(name, "apiVersion", f"{api_version} {kind_name} is not read; {read} are")
        if group == known.group:
            items.append(Item(_identity(name), None, line, document.number))
        return
    row: Resource | None = None
    name = kind.name_of(value)
    try:
        row = kind.decode(value)
        broken = row.broken_rules
    except InvalidObject as error:
        broken = error.errors
        for field_error in broken:
            problem(name, field_error.path, field_error.message)
    if broken and rejected is not None:
        rejected.append(Rejected(kind, value, broken))
    for field_error in kind.unknown_fields(value):
        problem(name, field_error.path, field_error.message, ignored=True)
    items.append(Item(_identity(name), row, line, document.number))


def _name_of(value: Mapping[str, Any], kind: str) -> ObjectName:
    """Return the name of an object of an unknown kind."""
    metadata = value.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    return ObjectName(kind, str(named.get("namespace") or ""), str(named.get("name") or ""))


def _identity(name: ObjectName) -> Identity:
    return (name.kind, (name.namespace, name.name))
