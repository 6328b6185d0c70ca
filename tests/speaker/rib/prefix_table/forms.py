"""Both forms of the prefix table; the one in C is compiled for the tests, where that can be done.

``NATIVE_FLAGS`` are further flags of the compiler, such as for sanitizers (``make check-native``).
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest

from speaker.rib import prefix_table
from speaker.rib.prefix_table.build import NotBuiltError, build
from speaker.rib.prefix_table.dictionary import PrefixTable

_FOLDER = tempfile.TemporaryDirectory()


@cache
def _built() -> Path:
    # What is done in steps begins with few keys, and takes many steps.
    flags = ("-DSMALL=8", "-DWORK=3", *os.environ.get("NATIVE_FLAGS", "").split())
    return build(Path(_FOLDER.name), *flags)


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


@cache
def _native_form() -> Any:  # noqa: ANN401  the module has no Python source
    """Return the class that is used where the module is built, above the module of the tests."""
    module = native()
    file = Path(prefix_table.__file__).with_name("in_c.py")
    spec = importlib.util.spec_from_file_location("tests_in_c", file)
    assert spec is not None
    assert spec.loader is not None
    in_c = importlib.util.module_from_spec(spec)
    name = "speaker.rib.prefix_table.native"
    with (
        patch.dict(sys.modules, {name: module}),
        patch.object(prefix_table, "native", module, create=True),
    ):
        spec.loader.exec_module(in_c)
    return in_c.NativePrefixTable


def native_table() -> Any:  # noqa: ANN401  as above
    """Return a table in C; skips the test where it cannot be compiled."""
    return _native_form()()


FORMS = [pytest.param(PrefixTable, id="dictionary"), pytest.param(native_table, id="native")]
