"""The Jaeger that go.mod pins: where `install-jaeger` left it, and as a process; builds nothing.

It receives spans over OTLP/HTTP, keeps them in memory, and answers Jaeger's query API. Loopback only.
"""

from __future__ import annotations

import hashlib
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import builds
from tests.support.daemon import Daemon
from tests.support.ports import free_port
from tests.support.wait import eventually

_HERE = Path(__file__).parent
CONFIG = """
service:
  extensions: [jaeger_storage, jaeger_query]
  pipelines:
    traces: {{receivers: [otlp], exporters: [jaeger_storage_exporter]}}
  telemetry:
    metrics: {{level: none}}
    logs: {{level: warn}}
extensions:
  jaeger_query:
    storage: {{traces: memory}}
    http: {{endpoint: "127.0.0.1:{query}"}}
    grpc: {{endpoint: "127.0.0.1:{grpc}"}}
  jaeger_storage:
    backends:
      memory: {{memory: {{max_traces: 10000}}}}
receivers:
  otlp:
    protocols:
      http: {{endpoint: "127.0.0.1:{otlp}"}}
exporters:
  jaeger_storage_exporter: {{trace_storage: memory}}
"""


def find() -> Path | str:
    """Return the program, or one sentence with the reason why there is none."""
    pinned = (_HERE / "go.mod").read_bytes() + (_HERE / "go.sum").read_bytes()
    found = builds.cache() / f"jaeger-{hashlib.sha256(pinned).hexdigest()[:16]}"
    if os.access(found, os.X_OK):
        return found
    return "no Jaeger: tests/support/install-jaeger builds it where Go is installed"


@dataclass(frozen=True, slots=True)
class Span:
    """A span of an answer of the query API."""

    trace_id: str
    span_id: str
    name: str
    references: tuple[tuple[str, str, str], ...]
    """Type (CHILD_OF, FOLLOWS_FROM), trace and span: its parent, and its links."""
    attributes: Mapping[str, Any]
    resource: Mapping[str, Any]
    """Of the process, with the service's name."""
    start: int
    """Microseconds since 1970."""
    duration: int
    """Microseconds."""
    events: tuple[Mapping[str, Any], ...] = ()
    """The attributes of each, with its name as ``event``."""

    @property
    def parent(self) -> str | None:
        """The span that it is below, of the same trace."""
        return next(
            (
                span
                for kind, trace, span in self.references
                if kind == "CHILD_OF" and trace == self.trace_id
            ),
            None,
        )

    @property
    def links(self) -> tuple[tuple[str, str], ...]:
        """Trace and span of its causes, where it has several."""
        return tuple(
            (trace, span) for kind, trace, span in self.references if kind == "FOLLOWS_FROM"
        )


class Jaeger:
    """One Jaeger; ``directory`` has its configuration and log."""

    def __init__(self, program: Path, directory: Path) -> None:
        self.otlp_port, self.query_port, grpc = (free_port("127.0.0.1") for _ in range(3))
        config = directory / "jaeger.yaml"
        config.write_text(CONFIG.format(otlp=self.otlp_port, query=self.query_port, grpc=grpc))
        self._daemon = Daemon(
            "jaeger", [program, "--config", f"file:{config}"], log=directory / "jaeger.log"
        )

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._daemon.start()
        eventually(self.services, context=self._daemon.tail)

    def stop(self) -> None:
        """End it politely."""
        self._daemon.stop()

    def services(self) -> list[str]:
        """Return the services with spans."""
        return sorted(self._get("/api/services") or ())

    def traces(self, service: str, operation: str, tags: Mapping[str, str]) -> list[list[Span]]:
        """Find the traces with a span of a name and these attributes."""
        query = {
            "service": service,
            "operation": operation,
            "tags": json.dumps(tags),
            "limit": "100",
        }
        found = self._get(f"/api/traces?{urllib.parse.urlencode(query)}") or ()
        return [list(_spans(each)) for each in found]

    def trace(self, trace_id: str) -> list[Span]:
        """Return the spans of a trace, in the order of their begin."""
        found = self._get(f"/api/traces/{trace_id}") or ()
        return sorted((span for each in found for span in _spans(each)), key=lambda s: s.start)

    def _get(self, path: str) -> Any:  # noqa: ANN401  JSON
        self._daemon.check()
        url = f"http://127.0.0.1:{self.query_port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise
        except OSError as error:
            raise AssertionError(str(error)) from error


def _spans(trace: Mapping[str, Any]) -> Iterator[Span]:
    for span in trace["spans"]:
        process = trace["processes"][span["processID"]]
        yield Span(
            span["traceID"],
            span["spanID"],
            span["operationName"],
            tuple((r["refType"], r["traceID"], r["spanID"]) for r in span["references"]),
            _values(span["tags"]),
            {"service.name": process["serviceName"], **_values(process["tags"])},
            span["startTime"],
            span["duration"],
            tuple(_values(event["fields"]) for event in span["logs"]),
        )


def _values(tags: list[dict[str, Any]]) -> dict[str, Any]:
    return {tag["key"]: tag["value"] for tag in tags}
