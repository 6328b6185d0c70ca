"""A Kubernetes API server as a source: lists that are complete, watches that are followed.

Nothing is ever told to be gone because a list failed, was cut short, or came back empty once. The
library of the ecosystem does authentication and transport; what is read with it is ours.
"""

from resources.kubernetes.connection import IN_CLUSTER, Access, Connection
from resources.kubernetes.errors import KubernetesError, Refused
from resources.kubernetes.lease import Election, ElectionTiming, lease_path
from resources.kubernetes.migration import Migration, migrate
from resources.kubernetes.selection import Reading, Selection, of_cluster, of_node
from resources.kubernetes.source import KubernetesSource
from resources.kubernetes.status import FeedStatus, Phase
from resources.kubernetes.timing import Backoff, Timing
from resources.kubernetes.writer import Writer

__all__ = [
    "IN_CLUSTER",
    "Access",
    "Backoff",
    "Connection",
    "Election",
    "ElectionTiming",
    "FeedStatus",
    "KubernetesError",
    "KubernetesSource",
    "Migration",
    "Phase",
    "Reading",
    "Refused",
    "Selection",
    "Timing",
    "Writer",
    "lease_path",
    "migrate",
    "of_cluster",
    "of_node",
]
