"""Libraries that are imported in part: what imports them needs less of them than they import.

A package that is entered bare has no ``__init__``, which imports all of it; a module that is deferred
is imported when something of it is used.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any


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


@contextmanager
def deferred(modules: Mapping[str, Sequence[str]]) -> Iterator[None]:
    """Have what is imported within the block import some modules with their first use.

    ``modules`` has the functions and classes that are imported out of each module, to be called.
    Modules that are imported stay what they are.
    """
    made = {name: _Deferred(name, modules[name]) for name in modules if name not in sys.modules}
    sys.modules.update(made)
    try:
        yield
    finally:
        for module in made.values():
            module.retire()


class _Deferred(ModuleType):
    """Stands in for a module until something of it is used."""

    def __init__(self, name: str, called: Sequence[str]) -> None:
        super().__init__(name)
        for attribute in called:
            setattr(self, attribute, partial(self._call, attribute))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  the module's own
        if name.startswith("__"):
            raise AttributeError(name)  # what importing looks at
        return self._used(name)

    def retire(self) -> None:
        """Leave what is imported from now on to the module."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]

    def _used(self, attribute: str) -> Any:  # noqa: ANN401  as above
        self.retire()
        return getattr(importlib.import_module(self.__name__), attribute)

    def _call(self, attribute: str, *positional: object, **named: object) -> object:
        return self._used(attribute)(*positional, **named)
