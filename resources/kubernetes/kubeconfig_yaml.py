"""YAML of a kubeconfig by PyYAML's C parser: the library's own takes twenty times as long, in the loop.

What the C parser refuses is parsed again by the other one, whose errors name what was found.
"""

from __future__ import annotations

from typing import IO, Any, Final

import yaml

MOST_COLLECTIONS: Final = 5_000
"""Levels that the C parser survives: at some 20,000 it overflows the stack."""
_INDICATORS: Final = "[{:-?"
"""Each mapping and sequence has one of its own. They are not in base64."""
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
safe_dump = yaml.safe_dump


def safe_load(source: str | IO[str]) -> Any:  # noqa: ANN401  whatever stands there
    """Parse a text, or a file, as `yaml.safe_load` does. Raises `yaml.YAMLError`."""
    text = source if isinstance(source, str) else source.read()
    if sum(map(text.count, _INDICATORS)) <= MOST_COLLECTIONS:
        try:
            return yaml.load(text, Loader=_Loader)  # noqa: S506  a safe one
        except yaml.YAMLError:
            pass
    return yaml.safe_load(text)
