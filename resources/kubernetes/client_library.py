"""The part of kubernetes_asyncio that is used: configuration, credentials, and the HTTP client.

The library's packages import all of its 800 generated models and APIs: 48 MB on disk, and 30
MB of memory. None is used here, as objects are decoded by `resources.kind`. So the packages whose
``__init__`` would import them are entered without it. The image has no others.

urllib3 makes the header of a user with a password; pools of threads are for callers without asyncio,
and dateutil is for the models. They would be 3 MB of memory and 20 ms of a start.
"""

from __future__ import annotations

import importlib
import sys
import threading
from typing import Any, Final, NamedTuple

from resources.bare_packages import deferred, enter_bare

NAME: Final = "kubernetes_asyncio"
SELDOM: Final = {
    "dateutil.parser": ("parse",),
    "multiprocessing.pool": ("ThreadPool",),
    "urllib3": (),
}
"""Modules that the library imports, with the names that it takes out of each."""
_LOCK: Final = threading.Lock()
"""Of `load`: connections are opened in several threads, and a package that is half entered is none."""


class ClientLibrary(NamedTuple):
    """Classes and functions of the library."""

    configuration: Any
    """`kubernetes_asyncio.client.Configuration`."""
    api_client: Any
    """`kubernetes_asyncio.client.ApiClient`."""
    config: Any
    """The module `kubernetes_asyncio.config`."""


def load() -> ClientLibrary:
    """Import the part of the client library kubernetes_asyncio that is used. Raises ImportError."""
    with _LOCK:
        enter_bare(NAME, "client", "client.models")
        client = sys.modules[f"{NAME}.client"]
        if not hasattr(client, "ApiClient"):
            with deferred(SELDOM):
                configuration = importlib.import_module(f"{NAME}.client.configuration")
                api_client = importlib.import_module(f"{NAME}.client.api_client")
            # What the modules of `config` take from the package.
            client.Configuration = configuration.Configuration  # type: ignore[attr-defined]
            client.ApiClient = api_client.ApiClient  # type: ignore[attr-defined]
        config = importlib.import_module(f"{NAME}.config")
        config.kube_config.yaml = importlib.import_module("resources.kubernetes.kubeconfig_yaml")
        return ClientLibrary(client.Configuration, client.ApiClient, config)
