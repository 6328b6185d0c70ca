"""Options of logs, spans, metrics and the HTTP server."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from resources.option_declarations import Options, setting


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
    ] = 5.0
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
