"""Kubernetes API server client: list and watch as a source of objects, and writes of single objects.

A list that fails, is cut short or is empty once deletes no row. Authentication and transport
are kubernetes-asyncio's.

A name is imported when it is used: a program that sends one request loads no watches and no tables.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from resources.kubernetes.backoff import Backoff
    from resources.kubernetes.connection import IN_CLUSTER, Access, Connection
    from resources.kubernetes.count import count_objects
    from resources.kubernetes.errors import KubernetesError, StatusError
    from resources.kubernetes.feed_status import FeedStatus, Phase
    from resources.kubernetes.lease import Election, ElectionTiming, lease_path
    from resources.kubernetes.migration import (
        Migration,
        MigrationPass,
        Migrations,
        migrate,
        versioned_kinds,
    )
    from resources.kubernetes.reflector import REASONS_OF_ENDS, Reflector
    from resources.kubernetes.selection import Reading, Selection, of_cluster, of_node
    from resources.kubernetes.server_side_apply import ApplyClient, apply_owned
    from resources.kubernetes.source import KubernetesSource
    from resources.kubernetes.timeouts import Timeouts
    from resources.kubernetes.writer import Writer

_MODULES: Final = {
    "Access": "connection",
    "ApplyClient": "server_side_apply",
    "Backoff": "backoff",
    "Connection": "connection",
    "Election": "lease",
    "ElectionTiming": "lease",
    "FeedStatus": "feed_status",
    "IN_CLUSTER": "connection",
    "KubernetesError": "errors",
    "KubernetesSource": "source",
    "Migration": "migration",
    "MigrationPass": "migration",
    "Migrations": "migration",
    "Phase": "feed_status",
    "REASONS_OF_ENDS": "reflector",
    "Reading": "selection",
    "Reflector": "reflector",
    "Selection": "selection",
    "StatusError": "errors",
    "Timeouts": "timeouts",
    "Writer": "writer",
    "apply_owned": "server_side_apply",
    "count_objects": "count",
    "lease_path": "lease",
    "migrate": "migration",
    "of_cluster": "selection",
    "of_node": "selection",
    "versioned_kinds": "migration",
}
"""The module of each name."""


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Import a name of `__all__` (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


__all__ = [
    "IN_CLUSTER",
    "REASONS_OF_ENDS",
    "Access",
    "ApplyClient",
    "Backoff",
    "Connection",
    "Election",
    "ElectionTiming",
    "FeedStatus",
    "KubernetesError",
    "KubernetesSource",
    "Migration",
    "MigrationPass",
    "Migrations",
    "Phase",
    "Reading",
    "Reflector",
    "Selection",
    "StatusError",
    "Timeouts",
    "Writer",
    "apply_owned",
    "count_objects",
    "lease_path",
    "migrate",
    "of_cluster",
    "of_node",
    "versioned_kinds",
]
