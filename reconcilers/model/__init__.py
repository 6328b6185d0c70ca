"""The neutral intent: what every API dialect compiles to, and all that the apply reconcilers read.

Frozen rows of the intent tables. A dialect (`reconcilers.dialect`) compiles its objects to them, the
apply reconcilers (`reconcilers.apply`) compare them with the speaker, ``waggle render`` prints them.
A prefix is its wire bytes (length octet and the significant octets, RFC 4271 section 4.3); text
appears at the edges.
"""

from reconcilers.model.peers import (
    AdvertiseLimit,
    GracefulRestart,
    GracefulShutdown,
    Instance,
    InstanceImport,
    LearnedLimit,
    NextHop,
    NextHops,
    Peer,
    PeerAs,
    PrefixRule,
    SessionAddress,
    SuppressedFamily,
    UnsentRoutes,
)
from reconcilers.model.references import FieldRef, ObjectRef, PasswordRef, SecretRef, ref_to
from reconcilers.model.reports import (
    Condition,
    Delete,
    Generated,
    ObjectAnnotations,
    PendingDialect,
    Problem,
    ProblemCategory,
    ReconcileStatus,
)
from reconcilers.model.routes import (
    AddressRank,
    Attributes,
    Contribution,
    Origin,
    Route,
    RouteExplanation,
)

__all__ = [
    "AddressRank",
    "AdvertiseLimit",
    "Attributes",
    "Condition",
    "Contribution",
    "Delete",
    "FieldRef",
    "Generated",
    "GracefulRestart",
    "GracefulShutdown",
    "Instance",
    "InstanceImport",
    "LearnedLimit",
    "NextHop",
    "NextHops",
    "ObjectAnnotations",
    "ObjectRef",
    "Origin",
    "PasswordRef",
    "Peer",
    "PeerAs",
    "PendingDialect",
    "PrefixRule",
    "Problem",
    "ProblemCategory",
    "ReconcileStatus",
    "Route",
    "RouteExplanation",
    "SecretRef",
    "SessionAddress",
    "SuppressedFamily",
    "UnsentRoutes",
    "ref_to",
]
