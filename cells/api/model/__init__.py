"""The answers of the local API: the envelope and the items of the ``waggle`` command.

A stable interface: members are only ever added within ``cli.waggle/v1``. A value that is unknown
is omitted, never "N/A" or -1; lists are lists; times are RFC 3339 in UTC with names ending in
``Time``, durations are numbers with names ending in ``Seconds``. This package imports nothing of
the project, so that the command line can use it and start fast.
"""

from cells.api.model.agent import (
    DriftItem,
    HostInstanceItem,
    HostItem,
    InterfaceItem,
    LogLevelItem,
    MetricItem,
    PartItem,
    ProcessItem,
    ReconcilerItem,
    SpanItem,
    StatusItem,
    SupportItem,
)
from cells.api.model.envelope import API_VERSION, Envelope, ErrorItem, Item, T
from cells.api.model.objects import (
    ConditionItem,
    EventItem,
    ObjectStatusItem,
    OriginItem,
    ProblemItem,
    UnusedObjectsItem,
    WatchItem,
    problem_text,
)
from cells.api.model.routes import (
    ExplainItem,
    FamilyCount,
    KernelHopItem,
    KernelRouteItem,
    PrefixChangeItem,
    ReceivedExplainItem,
    RouteItem,
)
from cells.api.model.sessions import (
    BfdIntervalsItem,
    BfdItem,
    ClearedItem,
    PasswordItem,
    PeerCountItem,
    PeerMembers,
)

__all__ = [
    "API_VERSION",
    "BfdIntervalsItem",
    "BfdItem",
    "ClearedItem",
    "ConditionItem",
    "DriftItem",
    "Envelope",
    "ErrorItem",
    "EventItem",
    "ExplainItem",
    "FamilyCount",
    "HostInstanceItem",
    "HostItem",
    "InterfaceItem",
    "Item",
    "KernelHopItem",
    "KernelRouteItem",
    "LogLevelItem",
    "MetricItem",
    "ObjectStatusItem",
    "OriginItem",
    "PartItem",
    "PasswordItem",
    "PeerCountItem",
    "PeerMembers",
    "PrefixChangeItem",
    "ProblemItem",
    "ProcessItem",
    "ReceivedExplainItem",
    "ReconcilerItem",
    "RouteItem",
    "SpanItem",
    "StatusItem",
    "SupportItem",
    "T",
    "UnusedObjectsItem",
    "WatchItem",
    "problem_text",
]
