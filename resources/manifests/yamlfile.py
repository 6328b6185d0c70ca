"""YAML with Kubernetes' semantics: plain data, no tags, no duplicate keys, bounded size.

PyYAML's safe loader with its C parser, without the implicit types of YAML 1.1 that configuration means
as text: sexagesimal (65000:10), octal and hexadecimal numbers, underscores, dates. The expansion of
aliases is limited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml
from yaml.events import CollectionEndEvent, CollectionStartEvent
from yaml.nodes import MappingNode, Node, SequenceNode

MAX_NODES = 2_000_000
"""Values of one document with its aliases expanded."""
MAX_DEPTH = 500
"""Levels of mappings and sequences."""
_SAFE_DEPTH = 5_000
"""Levels that libyaml's composer survives: at some 20,000 it overflows the stack."""

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlError(Exception):
    """A syntax error, with its line (0 if unknown)."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class Document(NamedTuple):
    """One document, with the positions of its values."""

    value: Any
    number: int
    line: int
    node: Any

    def line_of(self, path: str) -> int:
        """Return the line in a YAML file of a field such as ``spec.peers[0].name``, or its parent."""
        node, line = self.node, self.line
        for part in re.findall(r"[^.\[\]]+", path):
            node = _child(node, part)
            if node is None:
                break
            line = node.start_mark.line + 1
        return line


def _child(node: Any, part: str) -> Any:  # noqa: ANN401
    if isinstance(node, MappingNode):
        return next((value for key, value in node.value if key.value == part), None)
    if isinstance(node, SequenceNode) and part.isdigit() and int(part) < len(node.value):
        return node.value[int(part)]
    return None


class _Loader(_Base):  # type: ignore[misc]  # the base is chosen at run time
    """The loader without the implicit types."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012


for _letter, _resolvers in _Base.yaml_implicit_resolvers.items():
    _kept = [
        (tag, pattern)
        for tag, pattern in _resolvers
        if tag not in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:timestamp")
    ]
    _Loader.yaml_implicit_resolvers[_letter] = _kept
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789")
)


def _construct_mapping(loader: Any, node: MappingNode) -> Iterator[dict[Any, Any]]:  # noqa: ANN401
    data: dict[Any, Any] = {}
    yield data
    loader.flatten_mapping(node)
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        line = key_node.start_mark.line + 1
        if not isinstance(key, str):
            key = str(key).lower() if isinstance(key, bool) else str(key)
        if key in data:
            raise YamlError(f"duplicate key {key!r}", line)
        data[key] = loader.construct_object(value_node, deep=True)


_Loader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)


def _expanded(node: Node, sizes: dict[int, int], open_nodes: set[int]) -> int:
    known = sizes.get(id(node))
    if known is not None:
        return known
    if id(node) in open_nodes:
        raise YamlError("an alias within its own anchor", node.start_mark.line + 1)
    open_nodes.add(id(node))
    size = 1
    if isinstance(node, MappingNode):
        for key, value in node.value:
            size += _expanded(key, sizes, open_nodes) + _expanded(value, sizes, open_nodes)
    elif isinstance(node, SequenceNode):
        for value in node.value:
            size += _expanded(value, sizes, open_nodes)
    if size > MAX_NODES:
        raise YamlError(
            f"aliases make more than {MAX_NODES:,} values of it", node.start_mark.line + 1
        )
    open_nodes.discard(id(node))
    sizes[id(node)] = size
    return size


def _check_depth(text: str) -> None:
    """Raise `YamlError` for a text that is nested too deeply for the composer.

    A level takes a bracket, or a column of a line: few texts have to be looked at more closely.
    """
    columns = max(map(len, text.split("\n")))
    if text.count("[") + text.count("{") + columns <= _SAFE_DEPTH:
        return
    loader = _Loader(text)
    try:
        depth = 0
        while loader.check_event():
            event = loader.get_event()
            if isinstance(event, CollectionStartEvent):
                depth += 1
                if depth > MAX_DEPTH:
                    mark = event.start_mark
                    raise YamlError("nested too deeply", mark.line + 1 if mark else 0)
            elif isinstance(event, CollectionEndEvent):
                depth -= 1
    finally:
        loader.dispose()


def parse_yaml(data: bytes) -> Iterator[Document]:
    """Yield the documents of a YAML file that are not empty. Raises `YamlError`."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise YamlError(f"octet {error.start} is not UTF-8", line) from None
    index = 0
    loader = None
    try:
        _check_depth(text)
        loader = _Loader(text)
        while loader.check_node():
            index += 1
            node = loader.get_node()
            _expanded(node, {}, set())
            value = loader.construct_document(node)
            if value is not None:
                yield Document(value, index, node.start_mark.line + 1, node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 0
        column = f", column {mark.column + 1}" if mark else ""
        raise YamlError(f"not YAML: {error.problem or error.context}{column}", line) from None
    except yaml.YAMLError as error:
        raise YamlError(f"not YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise YamlError("nested too deeply") from None
    except ValueError as error:
        raise YamlError(f"not YAML: {error}") from None
    finally:
        if loader is not None:
            loader.dispose()
