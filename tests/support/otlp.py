"""A small OTLP/HTTP collector in this process: it keeps the spans that it is sent.

It runs in a thread of its own, so that an agent in the same process (whose exporter is also a
thread) can reach it however busy the event loop is. Loopback only.
"""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class Span(NamedTuple):
    """What tests look at; IDs are hexadecimal, times in nanoseconds since 1970."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    links: tuple[str, ...]
    """Span IDs of the linked spans."""
    attributes: dict[str, Any]
    start: int
    end: int
    resource: dict[str, Any]
    """What the span is of: the process and the node."""


class Collector:
    """Use as a context manager; `endpoint` is what an agent is given."""

    def __init__(self, *, status: int = 200) -> None:
        self.spans: list[Span] = []
        self.bodies: list[bytes] = []
        """All that it was sent, as it came."""
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                """Take one batch."""
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.bodies.append(body)
                if status == 200 and self.path == "/v1/traces":
                    collector.take(ExportTraceServiceRequest.FromString(body))
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(status if self.path == "/v1/traces" else 404)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401
                """Stay silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def endpoint(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        """Listen."""
        self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, request: ExportTraceServiceRequest) -> None:
        """Keep the spans of one request."""
        for group in request.resource_spans:
            resource = {a.key: _value(a.value) for a in group.resource.attributes}
            for scope in group.scope_spans:
                self.spans += [
                    Span(
                        span.name,
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        tuple(link.span_id.hex() for link in span.links),
                        {a.key: _value(a.value) for a in span.attributes},
                        span.start_time_unix_nano,
                        span.end_time_unix_nano,
                        resource,
                    )
                    for span in scope.spans
                ]

    def named(self, name: str) -> list[Span]:
        """Return the spans of that name, oldest first."""
        return sorted((s for s in self.spans if s.name == name), key=lambda span: span.start)

    def wait_for(self, name: str, count: int = 1, timeout: float = 60.0) -> list[Span]:
        """Return the spans of that name once there are enough; fails after ``timeout`` s."""
        deadline = time.monotonic() + timeout
        while len(self.named(name)) < count:
            assert time.monotonic() < deadline, (
                f"{len(self.named(name))} spans {name}, not {count}; "
                f"got {sorted({span.name for span in self.spans})}"
            )
            time.sleep(0.02)
        return self.named(name)


def _value(value: Any) -> Any:  # noqa: ANN401 - protobuf's AnyValue
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, kind) if kind else None
