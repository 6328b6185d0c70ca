"""The objects of YAML that many tests read: each text is parsed once."""

from __future__ import annotations

import functools
import pickle
from typing import Any

from tests.support import plain_yaml


def documents(text: str) -> list[dict[str, Any]]:
    """Return the objects of a text, which are the caller's; empty documents are none."""
    found: list[dict[str, Any]] = pickle.loads(_parsed(text))  # noqa: S301  of `_parsed`
    return found


@functools.cache
def _parsed(text: str) -> bytes:
    return pickle.dumps([one for one in plain_yaml.load_all(text) if one is not None])
