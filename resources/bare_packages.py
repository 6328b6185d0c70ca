"""Packages that are entered without their ``__init__``, which imports all of a library."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def enter_bare(name: str, *subpackages: str) -> None:
    """Enter a package bare, without its ``__init__``, so that single modules can be imported.

    Does nothing for a package that is imported. Raises ImportError where it is not installed.
    """
    if name in sys.modules:
        return
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ImportError(f"{name} is not installed", name=name)
    root = Path(spec.origin).parent
    for whole in (name, *(f"{name}.{part}" for part in subpackages)):
        module = ModuleType(whole)
        module.__path__ = [str(root.joinpath(*whole.split(".")[1:]))]
        sys.modules[whole] = module
        parent, _, own = whole.rpartition(".")
        if parent:
            setattr(sys.modules[parent], own, module)
