"""The options of the cells: flags, environment variables and keys of the configuration file.

Declarations alone, so that ``--help`` imports no cell. The options of the intent, which
``waggle render`` has as well, are in `reconcilers.intent.options`, a dialect's in
``reconcilers/<dialect>/options.py``.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from resources.option_declarations import Options, setting

LARGEST_NUMBER_OF_ROUTES: Final = 2**31 - 1
"""The largest number of routes that an option takes; the speaker counts no further."""


class LoggingOptions(Options, frozen=True):
    """Options of the logging cell."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"],
        setting("least level that is logged", flag="--log-level"),
    ] = "info"
    format: Annotated[
        Literal["text", "json"], setting("form of the lines on stderr", flag="--log-format")
    ] = "text"


class TelemetryOptions(Options, frozen=True):
    """Options of the telemetry cell."""

    otlp_endpoint: Annotated[
        str | None,
        setting(
            "collector that gets spans over OTLP/HTTP, for example http://127.0.0.1:4318",
            flag="--otlp-endpoint",
            metavar="URL",
        ),
    ] = None
    interval_seconds: Annotated[
        float,
        msgspec.Meta(gt=0.0),
        setting("longest time that a span waits to be sent", flag="--otlp-interval-seconds"),
    ] = 1.0
    sample_ratio: Annotated[
        float,
        msgspec.Meta(ge=0.0, le=1.0),
        setting(
            "the part of traces that is sent, from 0 to 1, each trace whole",
            flag="--otlp-sample-ratio",
        ),
    ] = 1.0


class SpansOptions(Options, frozen=True):
    """Options of the spans cell."""

    buffer: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None,
        setting(
            "keep this many of the last spans for `waggle trace`; about 2 KB each",
            flag="--trace-buffer",
            metavar="SPANS",
        ),
    ] = None


class MetricsOptions(Options, frozen=True):
    """Options of the metrics cell."""

    compat: Annotated[
        bool,
        setting(
            "also serve metrics by the names of the programs that API dialects stand for, so that "
            "their dashboards and alerts go on",
            flag="--compat-metrics",
        ),
    ] = False


class HttpOptions(Options, frozen=True):
    """Options of the http cell."""

    address: Annotated[
        str | None,
        setting(
            "serve /metrics, /healthz, /livez and /readyz here; a port alone means loopback",
            flag="--http-address",
            metavar="[HOST:]PORT",
        ),
    ] = None
    token_file: Annotated[
        str | None,
        setting(
            "answer ?verbose to requests with the bearer token in this file, too; "
            "by default on loopback only",
            flag="--http-token-file",
            metavar="PATH",
        ),
    ] = None


class NodeOptions(Options, frozen=True):
    """Options of the node cell."""

    name: Annotated[
        str | None,
        setting(
            "name of this node, as its Node object spells it; the host's by default",
            metavar="NAME",
        ),
    ] = None
    pod_namespace: Annotated[
        str | None,
        setting("namespace of the agent's Pod, which owns objects that the agent writes there"),
    ] = None
    pod_name: Annotated[str | None, setting("name of that Pod")] = None
    pod_uid: Annotated[str | None, setting("UID of that Pod")] = None
    cluster_addresses: Annotated[
        str | None,
        setting(
            "namespace of the ConfigMap waggle-cluster-addresses: the operator publishes there the "
            "addresses of all Nodes, Pods and peers, which no Service may use. By default none is "
            "read, and addresses of other nodes are not known",
            flag="--cluster-addresses-namespace",
        ),
    ] = None


class ResourcesOptions(Options, frozen=True):
    """Options of the resources cell."""

    secrets_namespace: Annotated[
        str,
        setting(
            "namespace of the Secrets with peers' passwords; empty: no Secret is read",
            flag="--secrets-namespace",
        ),
    ] = "kube-system"
    mass_withdraw_hold: Annotated[
        float,
        msgspec.Meta(ge=0.0),
        setting(
            "seconds for which the loss of many objects at once (an empty list or directory, a file "
            "that was cut) has to be confirmed before they are taken as deleted; 0: not at all",
            flag="--mass-withdraw-hold",
        ),
    ] = 60.0


class ManifestsOptions(Options, frozen=True):
    """Options of the manifests cell."""

    directory: Annotated[
        tuple[str, ...] | None,
        setting(
            "directory tree of YAML and JSON manifests, watched for changes; repeatable",
            flag="--manifests",
            metavar="DIR",
        ),
    ] = None


class KubernetesOptions(Options, frozen=True):
    """Options of the kubernetes cell."""

    kubeconfig: Annotated[
        str | None,
        setting(
            "kubeconfig file of the cluster to read, or in-cluster for the Pod's service account",
            flag="--kubeconfig",
            metavar="FILE",
        ),
    ] = None
    context: Annotated[
        str | None,
        setting("context of the kubeconfig; its current context by default", flag="--context"),
    ] = None


class SnapshotOptions(Options, frozen=True):
    """Options of the snapshot cell."""

    file: Annotated[
        str | None,
        setting(
            "keep the last known objects in this file, and start from it without an API server",
            flag="--snapshot-file",
            metavar="PATH",
        ),
    ] = None
    after_seconds: Annotated[
        float,
        msgspec.Meta(ge=0.0),
        setting("how long a start waits for the API server before the file counts"),
    ] = 10.0
    max_age_hours: Annotated[
        float,
        msgspec.Meta(gt=0.0),
        setting("an older file does not count"),
    ] = 168.0


class ClaimsOptions(Options, frozen=True):
    """Options of the claims cell."""

    directory: Annotated[
        str | None,
        setting(
            "directory on the node for what a restart has to remember: which dialect has a peer that "
            "two of them configure, and the last valid manifests",
            flag="--state-directory",
            metavar="DIR",
        ),
    ] = None


class HistoryOptions(Options, frozen=True):
    """Options of the history cell."""

    entries: Annotated[
        int,
        msgspec.Meta(ge=0, le=100_000),
        setting(
            "keep this many of the last changes for `waggle history`; about 1 KB each; 0: none",
            flag="--history-entries",
            metavar="N",
        ),
    ] = 2000
    on_disk: Annotated[
        bool,
        setting("keep them over a restart, in the state directory", flag="--history-on-disk"),
    ] = False


class SpeakerOptions(Options, frozen=True):
    """Options of the speaker cell."""

    record_file: Annotated[
        str | None,
        setting(
            "write every input of the speaker into this file, for waggle replay; none by default",
            flag="--record-file",
            metavar="PATH",
        ),
    ] = None
    record_limit: Annotated[
        int,
        msgspec.Meta(ge=1),
        setting("how large that file may become, in MiB", flag="--record-limit", metavar="MIB"),
    ] = 256


class ApplyOptions(Options, frozen=True):
    """Options of the apply cell."""

    verify_interval: Annotated[
        float,
        msgspec.Meta(ge=0.0),
        setting(
            "seconds between two full verifications of what the speaker holds; "
            "0: only on request (waggle verify)",
            flag="--verify-interval",
            metavar="SECONDS",
        ),
    ] = 300.0
    keep_received: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=LARGEST_NUMBER_OF_ROUTES)] | Literal["all"],
        setting(
            "received paths to keep of each peer that its import policy does not accept, or all; "
            "the others are only counted",
            flag="--keep-received",
            metavar="N|all",
        ),
    ] = 1000
    received_limit: Annotated[
        int,
        msgspec.Meta(ge=0, le=LARGEST_NUMBER_OF_ROUTES),
        setting(
            "prefixes of a family that a peer may send: beyond it the session is ended for 10 "
            "minutes, from 75 % on there is a warning; 0: no limit",
            flag="--received-limit",
            metavar="N",
        ),
    ] = 2_000_000
    enforce_first_as: Annotated[
        bool,
        setting(
            "routes of an eBGP peer whose AS path begins with another AS than the peer's are "
            "malformed; false: they are not, for peers that are route servers",
            flag="--enforce-first-as",
        ),
    ] = True


class ReadinessOptions(Options, frozen=True):
    """Options of the readiness cell."""

    timeout_seconds: Annotated[
        float,
        msgspec.Meta(ge=0.0),
        setting(
            "how long after the first pass readiness waits for peers without their initial table",
            flag="--ready-timeout-seconds",
        ),
    ] = 60.0


class ReportOptions(Options, frozen=True):
    """Options of the report cell."""

    status: Annotated[
        bool,
        setting(
            "write the status of the objects that this node reports on; if false, a status that was "
            "written is removed",
            flag="--status-report",
        ),
    ] = True
    events: Annotated[
        bool, setting("write Events about sessions and configuration", flag="--events")
    ] = True


class ApiOptions(Options, frozen=True):
    """Options of the api cell."""

    socket: Annotated[
        str | None,
        setting(
            "Unix socket for the waggle command; by default $XDG_RUNTIME_DIR/waggle/agent.sock, "
            "for root /run/waggle/agent.sock",
            flag="--api-socket",
            metavar="PATH",
        ),
    ] = None


class PageOptions(Options, frozen=True):
    """Options of the page cell."""

    address: Annotated[
        str | None,
        setting(
            "serve the page, read-only, here too; a port alone means loopback, elsewhere "
            "--page-token-file or --page-client-ca is required. It is always on the API socket",
            flag="--page-address",
            metavar="[HOST:]PORT",
        ),
    ] = None
    token_file: Annotated[
        str | None,
        setting(
            "file with the token that the page requires", flag="--page-token-file", metavar="PATH"
        ),
    ] = None
    certificate: Annotated[
        str | None,
        setting("file with the page's certificate, PEM", flag="--page-certificate", metavar="PATH"),
    ] = None
    key: Annotated[
        str | None, setting("file with its key, PEM", flag="--page-key", metavar="PATH")
    ] = None
    client_ca: Annotated[
        str | None,
        setting(
            "file with the CA of the certificates that clients of the page must have, PEM",
            flag="--page-client-ca",
            metavar="PATH",
        ),
    ] = None


class OperatorOptions(Options, frozen=True):
    """Options of the operator cell."""

    fib: Annotated[
        bool | Literal["auto"],
        setting(
            "whether agents install received routes in the kernel, as their --fib has it; false: the "
            "operator reports objects that accept routes as partially applied",
            flag="--fib",
            metavar="auto|true|false",
        ),
    ] = "auto"
    lease_namespace: Annotated[
        str,
        setting("namespace of the Lease by which one operator leads", flag="--lease-namespace"),
    ] = "kube-system"
    identity: Annotated[
        str | None,
        setting(
            "name of this candidate in the Lease; the host's name and a random part by default"
        ),
    ] = None
    lease_duration_seconds: Annotated[
        int,
        msgspec.Meta(ge=1),
        setting(
            "how long a Lease lasts that is not renewed: until another leads when a leader dies",
            flag="--lease-duration-seconds",
        ),
    ] = 15
    renew_deadline_seconds: Annotated[
        float,
        msgspec.Meta(gt=0.0),
        setting(
            "for how long renewing may fail before a leader ends; less than the Lease lasts",
            flag="--renew-deadline-seconds",
        ),
    ] = 10.0
    lease_retry_seconds: Annotated[
        float,
        msgspec.Meta(gt=0.0),
        setting("seconds between two reads of the Lease", flag="--lease-retry-seconds"),
    ] = 2.0
    deployment: Annotated[
        str | None,
        setting(
            "Deployment of the operator, in the namespace of the Lease: it owns the Lease and the "
            "webhook's Secret, which are deleted with it",
            flag="--operator-deployment",
            metavar="NAME",
        ),
    ] = None
    status_report: Annotated[
        bool,
        setting(
            "write conditions; if false, written conditions are removed",
            flag="--status-report",
        ),
    ] = True
    migrate_storage_versions: Annotated[
        bool,
        setting(
            "rewrite objects that are stored in an old version of their kind",
            flag="--migrate-storage-versions",
        ),
    ] = True


class WebhookOptions(Options, frozen=True):
    """Options of the webhook cell."""

    address: Annotated[
        str | None,
        setting(
            "review objects before the API server stores them, over HTTPS here; "
            "a port alone means loopback",
            flag="--webhook",
            metavar="[HOST:]PORT",
        ),
    ] = None
    names: Annotated[
        tuple[str, ...],
        setting(
            "names and addresses by which the API server calls the webhook",
            flag="--webhook-names",
            metavar="NAME[,NAME...]",
        ),
    ] = ("waggle-webhook.kube-system.svc", "localhost", "127.0.0.1")
    stored_in: Annotated[
        str,
        setting(
            "Secret with the webhook's certificate, in the namespace of the Lease",
            flag="--webhook-secret",
            metavar="NAME",
        ),
    ] = "waggle-webhook"
    configuration: Annotated[
        str,
        setting(
            "ValidatingWebhookConfiguration that calls the webhook; its caBundle is written",
            flag="--webhook-configuration",
            metavar="NAME",
        ),
    ] = "waggle"
