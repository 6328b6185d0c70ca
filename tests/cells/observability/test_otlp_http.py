"""Batches reach a collector over a connection that is kept, and an attempt that fails is bounded."""

from __future__ import annotations

import base64
import contextlib
import gzip
import os
import socket
import ssl
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from structlog.testing import capture_logs

from cells.observability import otlp_environment, otlp_http
from cells.observability.otlp_http import OtlpHttpExporter
from tests.support.certificates import authority_and_server

SUCCESS, FAILURE = SpanExportResult.SUCCESS, SpanExportResult.FAILURE
TIMEOUT = 30.0


class Server(ThreadingHTTPServer):
    """A collector that keeps connections, and answers with one status after the other."""

    daemon_threads = True

    def __init__(self, statuses: Iterator[int], answer: bytes = b"") -> None:
        self.connections = 0
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                server.connections += 1
                super().setup()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                server.requests.append((self.path, headers, body))
                status = next(statuses)
                # Closed without a word, as of a collector that has waited for long enough.
                self.close_connection = status < 0
                self.send_response(abs(status))
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Stay silent."""

        super().__init__(("127.0.0.1", 0), Handler)


@contextmanager
def collector(
    *statuses: int, answer: bytes = b"", context: ssl.SSLContext | None = None
) -> Iterator[Server]:
    """Run a collector; a negative status closes the connection after it."""
    server = Server(iter(statuses), answer)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def exporter(server: Server, *, scheme: str = "http", user: str = "") -> OtlpHttpExporter:
    return OtlpHttpExporter(
        f"{scheme}://{user}127.0.0.1:{server.server_address[1]}/v1/traces", TIMEOUT
    )


def span(name: str = "apply.round") -> ReadableSpan:
    made = TracerProvider(shutdown_on_exit=False).get_tracer("test").start_span(name)
    made.end()
    assert isinstance(made, ReadableSpan)
    return made


def names(body: bytes) -> list[str]:
    request = ExportTraceServiceRequest.FromString(body)
    return [s.name for group in request.resource_spans for x in group.scope_spans for s in x.spans]


@pytest.fixture(autouse=True)
def _pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_http, "FIRST_PAUSE", 0.001)


def test_batches_use_one_connection() -> None:
    with collector(200, 202) as server:
        sending = exporter(server)
        assert [sending.export([span("a"), span("b")]), sending.export([span("c")])] == [
            SUCCESS
        ] * 2
        assert sending.force_flush()
        sending.shutdown()
    assert [names(body) for _, _, body in server.requests] == [["a", "b"], ["c"]]
    assert server.connections == 1
    path, headers, _ = server.requests[0]
    assert (path, headers["content-type"]) == ("/v1/traces", "application/x-protobuf")
    assert headers["user-agent"].startswith("waggle/")


@pytest.mark.parametrize("answer", [b"", bytes(2 * otlp_http.MAX_ANSWER)], ids=["closed", "long"])
def test_a_connection_that_the_collector_closed_is_replaced(answer: bytes) -> None:
    with collector(-200 if not answer else 200, 200, answer=answer) as server:
        sending = exporter(server)
        assert [sending.export([span()]) for _ in range(2)] == [SUCCESS] * 2
        sending.shutdown()
    assert (server.connections, len(server.requests)) == (2, 2)


@pytest.mark.parametrize("status", sorted(otlp_http.RETRIED))
def test_a_busy_collector_is_sent_the_batch_again(status: int) -> None:
    with collector(status, status, 200) as server:
        sending = exporter(server)
        assert sending.export([span()]) is SUCCESS
        sending.shutdown()
    assert len({body for _, _, body in server.requests}) == 1
    assert len(server.requests) == 3


@pytest.mark.parametrize("beginning", [b"", b"HTTP/1.1 200 OK\r\nx: "], ids=["nothing", "octets"])
def test_an_answer_that_does_not_end_ends_with_the_time_of_its_batch(beginning: bytes) -> None:
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        ended = threading.Event()

        def drip() -> None:
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    connection.sendall(beginning)
                    while not ended.wait(0.05):
                        connection.sendall(beginning[-1:])

        dripping = threading.Thread(target=drip)
        dripping.start()
        stack.callback(dripping.join)
        # The time of the batch may be over before it is sent.
        stack.callback(listener.shutdown, socket.SHUT_RDWR)
        stack.callback(ended.set)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1/traces"
        assert OtlpHttpExporter(url, 0.4).export([span()]) is FAILURE


def test_a_header_that_http_does_not_permit_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "good=one,bad=x%0d%0aHost%3a%20x")
    with collector(200) as server, capture_logs() as logs:
        sending = exporter(server)
        assert sending.export([span()]) is SUCCESS
        sending.shutdown()
    headers = server.requests[0][1]
    assert headers["good"] == "one"
    assert "bad" not in headers
    assert [(line["event_name"], line["header"]) for line in logs] == [
        ("telemetry.invalid_header", "bad")
    ]


@pytest.mark.parametrize("status", [302, 400, 403, 500])
def test_a_batch_that_is_refused_is_not_sent_again(status: int) -> None:
    with collector(status) as server:
        sending = exporter(server)
        assert sending.export([span()]) is FAILURE
        sending.shutdown()
    assert len(server.requests) == 1


@pytest.mark.parametrize(("timeout", "attempts"), [(0.0, 0), (0.5, 1), (1.5, 2), (60.0, 6)])
def test_attempts_end_with_the_time_of_the_batch(
    timeout: float, attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pauses of 1, 2, 4 ... seconds, in virtual time."""
    now = 0.0

    class Pauses(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            nonlocal now
            assert timeout is not None
            now += timeout
            return False

    monkeypatch.setattr(otlp_http, "FIRST_PAUSE", 1.0)
    monkeypatch.setattr(otlp_http, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(otlp_http, "_ended_after", lambda *_: contextlib.nullcontext())
    with collector(*[503] * 1000) as server:
        sending = OtlpHttpExporter(f"http://127.0.0.1:{server.server_address[1]}/x?y=z", timeout)
        sending._ended = Pauses()
        connect = sending._new_connection
        monkeypatch.setattr(sending, "_new_connection", lambda _: connect(TIMEOUT))
        assert sending.export([span()]) is FAILURE
        sending.shutdown()
    assert [path for path, _, _ in server.requests] == ["/x?y=z"] * attempts


def test_without_a_collector_a_batch_fails() -> None:
    with collector() as server:
        sending = exporter(server)
    sending.shutdown()
    assert sending.export([span()]) is FAILURE, "the end of the process ends the pause"


@pytest.mark.parametrize(
    ("compression", "unpack"),
    [("gzip", gzip.decompress), ("deflate", zlib.decompress), ("none", bytes), ("brotli", bytes)],
)
def test_the_environment_has_compression_and_headers(
    compression: str, unpack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", compression)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=all")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-tenant=east, x-other=a%20b")
    with collector(200) as server:
        sending = exporter(server, user="me:s%40cret@")
        assert sending.export([span("a")]) is SUCCESS
        sending.shutdown()
    ((_, headers, body),) = server.requests
    assert names(unpack(body)) == ["a"]
    is_known = compression in {"gzip", "deflate"}
    assert headers.get("content-encoding") == (compression if is_known else None)
    assert (headers["x-tenant"], headers["x-other"]) == ("east", "a b")
    assert headers["authorization"] == f"Basic {base64.b64encode(b'me:s@cret').decode()}"


def test_the_certificate_of_the_collector_is_checked_by_that_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, context = authority_and_server(tmp_path, "127.0.0.1")
    with collector(200, context=context) as server:
        sending = exporter(server, scheme="https")
        sending.shutdown()
        assert sending.export([span()]) is FAILURE
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(tmp_path / "none"))
        assert sending.export([span()]) is FAILURE
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", str(authority))
        assert sending.export([span()]) is SUCCESS
        sending.shutdown()
    assert len(server.requests) == 1


@pytest.mark.parametrize("name", ["CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"])
def test_a_certificate_that_is_a_named_pipe_is_not_waited_for(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenSSL would wait for its writer."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", str(tmp_path / "c"))
    monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_{name}", str(path))
    assert otlp_environment.named_pipe() == (f"OTEL_EXPORTER_OTLP_{name}", str(path))
    with collector(200) as server:
        sending = exporter(server, scheme="https")
        sending.shutdown()
        assert sending.export([span()]) is FAILURE
    # The variable for traces alone precedes it.
    monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_TRACES_{name}", str(tmp_path / "none"))
    assert otlp_environment.named_pipe() is None
