"""The part of kubernetes_asyncio that is used: configuration, credentials, and the HTTP client.

The library's packages import all of its 800 generated models and APIs: 48 MB on disk, and 30
MB of memory. None is used here, as objects are decoded by `resources.kind`. So the packages whose
``__init__`` would import them are entered without it. The image has no others.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

NAME: Final = "kubernetes_asyncio"
BARE: Final = (NAME, f"{NAME}.client", f"{NAME}.client.models")
"""Packages whose ``__init__`` is not run; the last one has no module that is used."""


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
    if NAME not in sys.modules:
        _enter_bare()
    client = sys.modules[f"{NAME}.client"]
    if not hasattr(client, "ApiClient"):
        configuration = importlib.import_module(f"{NAME}.client.configuration")
        api_client = importlib.import_module(f"{NAME}.client.api_client")
        # What the modules of `config` take from the package.
        client.Configuration = configuration.Configuration  # type: ignore[attr-defined]
        client.ApiClient = api_client.ApiClient  # type: ignore[attr-defined]
    config = importlib.import_module(f"{NAME}.config")
    return ClientLibrary(client.Configuration, client.ApiClient, config)


def _enter_bare() -> None:
    spec = importlib.util.find_spec(NAME)
    if spec is None or spec.origin is None:
        raise ImportError(f"{NAME} is not installed", name=NAME)
    parent: ModuleType | None = None
    for name in BARE:
        module = ModuleType(name)
        module.__path__ = [str(Path(spec.origin).parent.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = module
        if parent is not None:
            setattr(parent, name.rpartition(".")[2], module)
        parent = module
