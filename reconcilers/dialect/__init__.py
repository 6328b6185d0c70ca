"""An API dialect: one value that compiles its objects to the neutral intent.

A dialect is three things: ``resources/<name>/`` (kinds, rows, CRDs), ``reconcilers/<name>/`` (a
subclass of `Dialect`) and ``cells/dialects/<name>.py`` (wiring). No other module names it: programs
have a list of dialects, and everything here is generic. docs/dialects.md adds one step by step.

Two ways from objects to routes, on purpose different:

* `Dialect.compile` is for what is small (instances, peers, the rules of route sets): compiled whole
  whenever one of `Dialect.compiled_tables` has changed;
* a `RouteSource` is for what is large (Services, pod networks): an object that changed contributes
  to the route sets again, the others are left as they are.
"""

from reconcilers.dialect.admission import Admission, node_grouping
from reconcilers.dialect.candidate import Candidate
from reconcilers.dialect.compat_metrics import (
    CompatHistogram,
    CompatMetric,
    CompatMetrics,
    Durations,
    MetricsContext,
    OperatorMetricsContext,
    Session,
)
from reconcilers.dialect.compilation import (
    ClusterAddresses,
    ClusterContext,
    ClusterIntent,
    NodeContext,
    NodeIntent,
)
from reconcilers.dialect.conversion import Conversion, Notes
from reconcilers.dialect.diagnosis import (
    Check,
    ClusterEvidence,
    Diagnosis,
    Evidence,
    Finding,
    NodeEvidence,
    condition_check,
)
from reconcilers.dialect.explanation import (
    Explanation,
    Target,
    dialect_explanation,
    explain_selected,
    explained_kinds,
    explanation_of,
)
from reconcilers.dialect.extension import Extension, extended
from reconcilers.dialect.feed import (
    Feed,
    FeedConflicts,
    FeedRelations,
    Objects,
    Outcome,
    Reasons,
    Translated,
    Translation,
)
from reconcilers.dialect.feeding import Feeding
from reconcilers.dialect.installation import (
    Companion,
    DialectSecrets,
    OptionalKinds,
    RbacRule,
    Rival,
    SingleObject,
)
from reconcilers.dialect.log_level import LogLevel, LogLevelObject
from reconcilers.dialect.needs import HostNeeds, ReservedAddresses
from reconcilers.dialect.node_object import (
    NodeObject,
    NodeObjectContext,
    NodeObjectKey,
    NodeObjectKind,
    WrittenObjects,
)
from reconcilers.dialect.object_status import ObjectStatus, ReportContext, ReportedStatuses
from reconcilers.dialect.operation import ConditionMetric, Operation, operate, operated_tables
from reconcilers.dialect.protocol import Dialect
from reconcilers.dialect.route_source import (
    EVERYTHING,
    Address,
    Contributed,
    Everything,
    JoinConflictError,
    KindSource,
    PrefixSource,
    Rejected,
    RouteSource,
    RowSource,
    SelectingRule,
    ServiceAddress,
    service_address,
)
from reconcilers.dialect.service_advertisement import ServiceAdvertisement, ServiceStatuses
from reconcilers.dialect.service_source import ServiceSource
from reconcilers.dialect.stored_state import StoredState
from reconcilers.dialect.unread import EVERYTHING_READ, Unread
from reconcilers.dialect.views import (
    Answer,
    ApiPath,
    Ask,
    Command,
    CommandError,
    Listing,
    RefusedError,
    Rendering,
    ReportedAdvertisements,
    ReportedPeers,
    ReportedRoutes,
    ReportedSession,
    ReportedSessions,
    ViewContext,
)

__all__ = [
    "EVERYTHING",
    "EVERYTHING_READ",
    "Address",
    "Admission",
    "Answer",
    "ApiPath",
    "Ask",
    "Candidate",
    "Check",
    "ClusterAddresses",
    "ClusterContext",
    "ClusterEvidence",
    "ClusterIntent",
    "Command",
    "CommandError",
    "Companion",
    "CompatHistogram",
    "CompatMetric",
    "CompatMetrics",
    "ConditionMetric",
    "Contributed",
    "Conversion",
    "Diagnosis",
    "Dialect",
    "DialectSecrets",
    "Durations",
    "Everything",
    "Evidence",
    "Explanation",
    "Extension",
    "Feed",
    "FeedConflicts",
    "FeedRelations",
    "Feeding",
    "Finding",
    "HostNeeds",
    "JoinConflictError",
    "KindSource",
    "Listing",
    "LogLevel",
    "LogLevelObject",
    "MetricsContext",
    "NodeContext",
    "NodeEvidence",
    "NodeIntent",
    "NodeObject",
    "NodeObjectContext",
    "NodeObjectKey",
    "NodeObjectKind",
    "Notes",
    "ObjectStatus",
    "Objects",
    "Operation",
    "OperatorMetricsContext",
    "OptionalKinds",
    "Outcome",
    "PrefixSource",
    "RbacRule",
    "Reasons",
    "RefusedError",
    "Rejected",
    "Rendering",
    "ReportContext",
    "ReportedAdvertisements",
    "ReportedPeers",
    "ReportedRoutes",
    "ReportedSession",
    "ReportedSessions",
    "ReportedStatuses",
    "ReservedAddresses",
    "Rival",
    "RouteSource",
    "RowSource",
    "SelectingRule",
    "ServiceAddress",
    "ServiceAdvertisement",
    "ServiceSource",
    "ServiceStatuses",
    "Session",
    "SingleObject",
    "StoredState",
    "Target",
    "Translated",
    "Translation",
    "Unread",
    "ViewContext",
    "WrittenObjects",
    "condition_check",
    "dialect_explanation",
    "explain_selected",
    "explained_kinds",
    "explanation_of",
    "extended",
    "node_grouping",
    "operate",
    "operated_tables",
    "service_address",
]
