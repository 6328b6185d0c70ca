"""YAML of plain data by PyYAML's C parser: its own takes ten times as long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import yaml

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load(text: str) -> Any:  # noqa: ANN401  whatever stands there
    """Return the one document of a text, as `yaml.safe_load` does."""
    return yaml.load(text, _LOADER)  # noqa: S506  a safe one


def load_all(text: str) -> Iterator[Any]:
    """Iterate over the documents of a text, as `yaml.safe_load_all` does."""
    documents: Iterator[Any] = yaml.load_all(text, _LOADER)
    return documents
