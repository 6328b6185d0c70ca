"""A Kubernetes API server as a source: lists that are complete, watches that are followed.

Nothing is ever told to be gone because a list failed, was cut short, or came back empty once. The
library of the ecosystem does authentication and transport; what is read with it is ours.
"""

from resources.kubernetes.connection import IN_CLUSTER, Access, Connection
from resources.kubernetes.selection import Selection, of_node
from resources.kubernetes.source import KubernetesSource
from resources.kubernetes.status import FeedStatus, Phase
from resources.kubernetes.timing import Timing

__all__ = [
    "IN_CLUSTER",
    "Access",
    "Connection",
    "FeedStatus",
    "KubernetesSource",
    "Phase",
    "Selection",
    "Timing",
    "of_node",
]
