"""An annotation that OVN-Kubernetes writes on a Node, parsed, or the error that names both. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from reconcilers.ovnk.errors import ConfigurationError
from resources.core import Node
from resources.ovnk.node_annotations import AnnotationError

T = TypeVar("T")


def parsed_annotation(node: Node, annotation: str, parse: Callable[[str], T]) -> T | None:
    """Return a parsed annotation of a Node; None if it is absent. Raises `ConfigurationError`."""
    text = node.metadata.annotations.get(annotation)
    if text is None:
        return None
    try:
        return parse(text)
    except AnnotationError as error:
        where = f"node {node.metadata.name}: annotation {annotation}"
        raise ConfigurationError(f"{where} {error}") from None
