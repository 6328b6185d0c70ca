"""The declarations of all cells except API dialects: name, options, switches, wiring.

A module's ``WIRING`` has the constructors; it is imported in a program in which the cell is on. `agent`
and `operator.cells` list which cells a program has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from cells.hive import Cell
from cells.options import (
    ApiOptions,
    ApplyOptions,
    ClaimsOptions,
    HistoryOptions,
    HttpOptions,
    KubernetesOptions,
    LoggingOptions,
    ManifestsOptions,
    MetricsOptions,
    NodeOptions,
    OperatorOptions,
    PageOptions,
    ReadinessOptions,
    ReportOptions,
    ResourcesOptions,
    SnapshotOptions,
    SpansOptions,
    SpeakerOptions,
    TelemetryOptions,
    WebhookOptions,
)
from reconcilers.bfd.options import BfdOptions
from reconcilers.import_options import ImportOptions
from reconcilers.intent.options import IntentOptions
from reconcilers.kernel.options import FibOptions
from resources.option_declarations import Options

LOGGING = Cell(
    name="logging",
    description="Log lines on stderr, text or JSON, never blocking the loop.",
    options=LoggingOptions,
    wiring="cells.observability.logging",
)

TELEMETRY = Cell(
    name="telemetry",
    description="Spans to an OpenTelemetry collector.",
    options=TelemetryOptions,
    on_with="otlp_endpoint",
    wiring="cells.observability.telemetry",
)

SPANS = Cell(
    name="spans",
    description="The last spans in memory, for waggle trace.",
    options=SpansOptions,
    on_with="buffer",
    wiring="cells.observability.spans",
)

METRICS = Cell(
    name="metrics",
    description="Measurements for Prometheus; the http cell serves them.",
    options=MetricsOptions,
    wiring="cells.observability.metrics",
)

HTTP = Cell(
    name="http",
    description="Metrics and probes over HTTP on a configured address.",
    options=HttpOptions,
    on_with="address",
    wiring="cells.observability.http",
)

NODE = Cell(
    name="node",
    description="Which node this agent is.",
    options=NodeOptions,
    wiring="cells.state.node",
)

DATABASE = Cell(
    name="database",
    description="The in-memory tables with snapshots, transactions and changes.",
    wiring="cells.state.database",
)

RESOURCES = Cell(
    name="resources",
    description="Tables of Kubernetes objects.",
    options=ResourcesOptions,
    wiring="cells.sources.resources",
)

MANIFESTS = Cell(
    name="manifests",
    description="A watched directory of manifests as the source of objects.",
    options=ManifestsOptions,
    on_with="directory",
    wiring="cells.sources.manifests",
)

KUBERNETES = Cell(
    name="kubernetes",
    description="A Kubernetes API server as the source of objects.",
    options=KubernetesOptions,
    on_with="kubeconfig",
    wiring="cells.sources.kubernetes",
)

SNAPSHOT = Cell(
    name="snapshot",
    description="The last known objects on disk, for a start without an API server.",
    options=SnapshotOptions,
    on_with="file",
    wiring="cells.sources.snapshot",
)

UNUSED_OBJECTS = Cell(
    name="unused-objects",
    description="Counts the objects of API dialects that are off.",
    wiring="cells.sources.unused_objects",
)

HOST = Cell(
    name="host",
    description="Interfaces and routes of this host, where objects refer to them.",
    wiring="cells.sources.host",
)

CLAIMS = Cell(
    name="claims",
    description="Remembers which dialect has a peer that two of them configure.",
    options=ClaimsOptions,
    wiring="cells.state.claims",
)

LOCAL_OPERATOR = Cell(
    name="operator",
    description="The operator's part of the API dialects, in the process of an agent.",
    on_beside="manifests",
    off_beside="kubernetes",
    wiring="cells.operator.in_process",
)

INTENT = Cell(
    name="intent",
    description="Compiles objects to this node's instances, peers and routes.",
    options=IntentOptions,
    wiring="cells.intent.cell",
)

SPEAKER = Cell(
    name="speaker",
    description="Speaks BGP to the peers.",
    options=SpeakerOptions,
    wiring="cells.speaker.cell",
)

APPLY = Cell(
    name="apply",
    description="Reconciles the speaker with the intent, in order, and verifies it in full.",
    options=ApplyOptions,
    wiring="cells.apply.cell",
)

KERNEL = Cell(
    name="kernel",
    description="Installs received routes in the kernel.",
    options=FibOptions,
    wiring="cells.kernel.cell",
)


def kernel_cell(installing: Collection[str]) -> Cell:
    """Return the kernel cell in a program of dialects; the APIs of ``installing`` are for that.

    Without ``--fib`` it is on where one of them is, or one with an option for imports, and the routes
    can be written.
    """

    def off_while(options: FibOptions, on: Mapping[str, Options]) -> str:
        if options.fib is not None:
            return ""
        importing = (isinstance(of, ImportOptions) and of.import_rules for of in on.values())
        if on.keys().isdisjoint(installing) and not any(importing):
            return "--fib is not set"
        from cells.hive import capabilities

        if options.socket is None and not capabilities.children_have(capabilities.NET_ADMIN):
            return NO_NET_ADMIN
        return ""

    return msgspec.structs.replace(KERNEL, off_while=off_while)


NO_NET_ADMIN = "the agent has no capability NET_ADMIN, and --fib-socket is not set"
"""Why received routes are not installed, of an agent whose dialects' APIs are for that."""

BFD = Cell(
    name="bfd",
    description="BFD sessions of peers, and the process that has them.",
    options=BfdOptions,
    off_while=lambda options, _: "" if options.bfd else "--bfd is not set",
    wiring="cells.bfd.cell",
)

HISTORY = Cell(
    name="history",
    description="The last changes of objects, routes and sessions, for waggle history.",
    options=HistoryOptions,
    off_while=lambda options, _: "" if options.entries else "--history-entries is 0",
    wiring="cells.history.cell",
)

READINESS = Cell(
    name="readiness",
    description="Delays readiness until every peer has received its initial table.",
    options=ReadinessOptions,
    wiring="cells.apply.readiness",
)

STATUS = Cell(
    name="status",
    description="The status of the objects that this node reports on.",
    wiring="cells.apply.status",
)

REPORT = Cell(
    name="report",
    description="Writes this node's status and Events into the cluster.",
    options=ReportOptions,
    on_beside="kubernetes",
    wiring="cells.report.cell",
)

API = Cell(
    name="api",
    description="Answers the waggle command on a Unix socket.",
    options=ApiOptions,
    wiring="cells.serve.cell",
)

PAGE = Cell(
    name="page",
    description="A read-only page for browsers, on the agent's socket and on an address.",
    options=PageOptions,
    wiring="cells.page.cell",
)

OPERATOR = Cell(
    name="operator",
    description="Writes generated objects and conditions while it leads.",
    options=OperatorOptions,
    wiring="cells.operator.cell",
)

OPERATOR_SOURCE = Cell(
    name="kubernetes",
    description="The Kubernetes API server whose objects the operator reads.",
    options=KubernetesOptions,
    wiring="cells.operator.kubernetes",
)

WEBHOOK = Cell(
    name="webhook",
    description="Reviews objects of the API dialects before the API server stores them.",
    options=WebhookOptions,
    on_with="address",
    wiring="cells.operator.webhook.cell",
)
