"""Both forms of the prefix table; the one in C is compiled for the tests, where that can be done.

``NATIVE_FLAGS`` are further flags of the compiler, such as for sanitizers (``make check-native``).
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from speaker.rib.prefix_table.build import NotBuiltError, build
from speaker.rib.prefix_table.dictionary import PrefixTable

_FOLDER = tempfile.TemporaryDirectory()


@cache
def _built() -> Path:
    return build(Path(_FOLDER.name), *os.environ.get("NATIVE_FLAGS", "").split())


def load() -> ModuleType:
    """Import the module in C once more; skips the test where it cannot be compiled."""
    try:
        file = _built()
    except NotBuiltError as error:
        pytest.skip(str(error))
    spec = importlib.util.spec_from_file_location("native", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


native = cache(load)


def native_table() -> Any:  # noqa: ANN401  the module has no Python source
    """Return a table in C; skips the test where it cannot be compiled."""
    return native().PrefixTable()


FORMS = [pytest.param(PrefixTable, id="dictionary"), pytest.param(native_table, id="native")]
