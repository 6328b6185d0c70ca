"""The part of kubernetes_asyncio that is used: configuration, credentials, and the HTTP client.

The library's packages import all of its 800 generated models and APIs: 48 MB on disk, and 30
MB of memory. None is used here, as objects are decoded by `resources.kind`. So the packages whose
``__init__`` would import them are entered without it. The image has no others.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any, Final, NamedTuple

from resources.bare_packages import enter_bare

NAME: Final = "kubernetes_asyncio"
LATER: Final = frozenset({"dateutil.parser", "multiprocessing.pool", "urllib3"})
"""Modules that the client uses for dates in models, requests in threads and basic authentication:
2.7 MB, imported where they are called."""


class ClientLibrary(NamedTuple):
    """Classes and functions of the library."""

    configuration: Any
    """`kubernetes_asyncio.client.Configuration`."""
    api_client: Any
    """`kubernetes_asyncio.client.ApiClient`."""
    config: Any
    """The module `kubernetes_asyncio.config`."""


def load() -> ClientLibrary:
    """Import what is used. Raises ImportError."""
    enter_bare(NAME, "client", "client.models")
    client = sys.modules[f"{NAME}.client"]
    if not hasattr(client, "ApiClient"):
        configuration = _import_lean(f"{NAME}.client.configuration")
        api_client = _import_lean(f"{NAME}.client.api_client")
        # What the modules of `config` take from the package.
        client.Configuration = configuration.Configuration  # type: ignore[attr-defined]
        client.ApiClient = api_client.ApiClient  # type: ignore[attr-defined]
    config = importlib.import_module(f"{NAME}.config")
    return ClientLibrary(client.Configuration, client.ApiClient, config)


def _import_lean(name: str) -> ModuleType:
    """Import a module whose own imports of `LATER` are put off."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ImportError(f"{name} is missing", name=name)
    module = importlib.util.module_from_spec(spec)
    # Of this module alone: others import as ever, in other threads, too.
    module.__dict__["__builtins__"] = {**vars(builtins), "__import__": _import}
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _import(name: str, *rest: Any) -> Any:  # noqa: ANN401
    return _Later(name) if name in LATER else builtins.__import__(name, *rest)


class _Later:
    """A module, or something in it, that is imported once it is called."""

    def __init__(self, name: str, *attributes: str) -> None:
        self._name = name
        self._attributes = attributes

    def __getattr__(self, attribute: str) -> _Later:
        return _Later(self._name, *self._attributes, attribute)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        function: Any = importlib.import_module(self._name)
        for attribute in self._attributes:
            function = getattr(function, attribute)
        return function(*args, **kwargs)
