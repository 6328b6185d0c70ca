"""Kubernetes API server client: list and watch as a source of objects, and writes of single objects.

A list that fails, is cut short or is empty once deletes no row. Authentication and transport are
those of kubernetes-asyncio.
"""

from resources.kubernetes.apply import ApplyClient, apply_owned
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
from resources.kubernetes.source import KubernetesSource
from resources.kubernetes.timeouts import Timeouts
from resources.kubernetes.writer import Writer

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
