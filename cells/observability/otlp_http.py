"""Sends batches of spans to a collector over OTLP/HTTP, with one connection that is kept.

Of a batch of three spans the HTTP library of the SDK's exporter takes 1.1 ms, more than their encoding,
and holds the interpreter meanwhile; this one takes 0.3 ms. OpenTelemetry's environment variables for
headers, certificates and compression have effect, those for traces before those for all signals.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import gzip
import http.client
import re
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, final
from urllib.parse import SplitResult, unquote, urlsplit

import structlog
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.util.re import parse_env_headers

from cells.observability.otlp_environment import named_pipe, setting
from cells.version import version
from resources.given_file import NAMED_PIPE

log = structlog.get_logger("waggle.telemetry")

RETRIED: Final = frozenset({429, 502, 503, 504})
"""Statuses after which a batch is sent again (OTLP/HTTP, "Retryable Response Codes")."""
FIRST_PAUSE: Final = 1.0
"""Seconds before the second attempt; each further pause is twice as long."""
MAX_ANSWER: Final = 1 << 16
"""Octets of an answer that are read; its content has no effect."""
_FIELD_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
"""RFC 9110, 5.5, in latin-1."""
_COMPRESSIONS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
}


@final
class OtlpHttpExporter(SpanExporter):
    """An exporter for the SDK, which calls it in one thread at a time."""

    def __init__(self, url: str, timeout: float) -> None:
        """``url`` is complete; ``timeout`` is in seconds, of a batch with all its attempts."""
        parts = urlsplit(url)
        self._parts = parts
        self._target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        self._timeout = timeout
        compression = (setting("COMPRESSION") or "none").strip().lower()
        self._compress = _COMPRESSIONS.get(compression)
        self._headers = {
            "content-type": "application/x-protobuf",
            "user-agent": f"waggle/{version()}",
            **_authorization(parts),
            **({"content-encoding": compression} if self._compress else {}),
            **_of_environment(),
        }
        self._connection: http.client.HTTPConnection | None = None
        self._ended = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """See the SDK's SpanExporter."""
        body = encode_spans(spans).SerializeToString()
        if self._compress is not None:
            body = self._compress(body)
        deadline, pause = time.monotonic() + self._timeout, FIRST_PAUSE
        while True:
            status = self._send(body, deadline)
            if status is not None and status // 100 == 2:
                return SpanExportResult.SUCCESS
            is_final = status is not None and status not in RETRIED
            if is_final or pause > deadline - time.monotonic() or self._ended.wait(pause):
                return SpanExportResult.FAILURE
            pause *= 2

    def _send(self, body: bytes, deadline: float) -> int | None:
        """Return the status of the answer, None without one.

        A connection that was kept may have been closed by the collector: then with a new one.
        """
        for _ in range(1 if self._connection is None else 2):
            try:
                return self._exchange(body, deadline - time.monotonic())
            except (OSError, http.client.HTTPException):
                self._close()
        return None

    def _exchange(self, body: bytes, seconds: float) -> int:
        if seconds <= 0:
            raise TimeoutError
        connection = self._connection
        if connection is None:
            connection = self._connection = self._new_connection(seconds)
        if connection.sock is None:
            connection.connect()
        with _ended_after(connection.sock, seconds):
            connection.request("POST", self._target, body, self._headers)
            with connection.getresponse() as answer:
                answer.read(MAX_ANSWER)
                is_kept = answer.isclosed() and not answer.will_close
        if not is_kept:
            self._close()
        return answer.status

    def _new_connection(self, seconds: float) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=seconds)
        if pipe := named_pipe():
            raise OSError(errno.ENXIO, NAMED_PIPE, pipe[1])
        # Read for each connection: certificates are renewed.
        context = ssl.create_default_context(cafile=setting("CERTIFICATE"))
        if certificate := setting("CLIENT_CERTIFICATE"):
            context.load_cert_chain(certificate, setting("CLIENT_KEY"))
        return http.client.HTTPSConnection(host, port, timeout=seconds, context=context)

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.close()

    def shutdown(self) -> None:
        """See the SDK's SpanExporter."""
        self._ended.set()
        self._close()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """See the SDK's SpanExporter; nothing waits here."""
        del timeout_millis
        return True


@contextlib.contextmanager
def _ended_after(sock: socket.socket, seconds: float) -> Iterator[None]:
    """End a connection after a time, although octets arrive: each would extend a socket's time-out.

    Raises TimeoutError then: the library takes the end of a connection for the end of the fields.
    """
    is_over = threading.Event()

    def end() -> None:
        is_over.set()
        with contextlib.suppress(OSError):
            # Not that of an SSLSocket, under which a thread that reads loses its session.
            socket.socket.shutdown(sock, socket.SHUT_RDWR)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    if is_over.is_set():
        raise TimeoutError


def _of_environment() -> dict[str, str]:
    """Return the headers of the environment; the log names headers that HTTP does not permit."""
    headers = {}
    for name, value in parse_env_headers(setting("HEADERS") or "", liberal=True).items():
        if _FIELD_VALUE.fullmatch(value):
            headers[name] = value
        else:
            log.warning(
                "a header for the collector has characters that HTTP does not permit, and is not sent",
                event_name="telemetry.invalid_header",
                header=name,
            )
    return headers


def _authorization(parts: SplitResult) -> dict[str, str]:
    """Return the header for the credentials of a URL."""
    if parts.username is None:
        return {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
