"""The options of the cells: flags, environment variables and keys of the configuration file.

Declarations alone, so that ``--help`` imports no cell. The options of the intent, which
``waggle render`` has as well, are in `reconcilers.intent.options`, a dialect's in
``reconcilers/<dialect>/options.py``.
"""

from cells.options.bgp import (
    LARGEST_NUMBER_OF_ROUTES,
    ApplyOptions,
    ReadinessOptions,
    ReportOptions,
    SpeakerOptions,
)
from cells.options.observability import (
    HttpOptions,
    LoggingOptions,
    MetricsOptions,
    SpansOptions,
    TelemetryOptions,
)
from cells.options.operator import OperatorOptions, WebhookOptions
from cells.options.serving import ApiOptions, PageOptions
from cells.options.sources import (
    ClaimsOptions,
    HistoryOptions,
    KubernetesOptions,
    ManifestsOptions,
    NodeOptions,
    ResourcesOptions,
    SnapshotOptions,
)

__all__ = [
    "LARGEST_NUMBER_OF_ROUTES",
    "ApiOptions",
    "ApplyOptions",
    "ClaimsOptions",
    "HistoryOptions",
    "HttpOptions",
    "KubernetesOptions",
    "LoggingOptions",
    "ManifestsOptions",
    "MetricsOptions",
    "NodeOptions",
    "OperatorOptions",
    "PageOptions",
    "ReadinessOptions",
    "ReportOptions",
    "ResourcesOptions",
    "SnapshotOptions",
    "SpansOptions",
    "SpeakerOptions",
    "TelemetryOptions",
    "WebhookOptions",
]
