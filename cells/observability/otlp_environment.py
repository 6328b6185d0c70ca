"""OpenTelemetry's environment variables for its exporters over OTLP."""

from __future__ import annotations

import os
from collections.abc import Iterator

from resources.given_file import is_named_pipe

PREFIXES = ("OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_")
"""Of the variables, the preferred one first."""


def setting(name: str) -> str | None:
    """Return the value of a variable, by the end of its name; None without one."""
    return next((value for _, value in _given(name)), None)


def named_pipe() -> tuple[str, str] | None:
    """Return a variable with the path of a named pipe, and the path: OpenSSL waits for its writer."""
    for name in ("CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"):
        for variable, path in _given(name):
            if is_named_pipe(path):
                return variable, path
            break
    return None


def _given(name: str) -> Iterator[tuple[str, str]]:
    for prefix in PREFIXES:
        if value := os.environ.get(prefix + name):
            yield prefix + name, value
