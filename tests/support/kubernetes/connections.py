"""Requests over connections that stay open, as clients of an API server have them.

A connection of its own for each request would take both sides more processor time than the request.
"""

from __future__ import annotations

import http.client
import select
import ssl
from collections import deque
from collections.abc import Mapping
from pathlib import Path

SECONDS = 60.0
"""Timeout of a request."""


class Connections:
    """To a server on loopback with a certificate that is its own authority; for all threads."""

    def __init__(self, port: int, certificate: Path) -> None:
        self._port = port
        self._certificate = certificate
        self._trust: ssl.SSLContext | None = None
        self._idle: deque[http.client.HTTPSConnection] = deque()

    def request(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        """Return status and body of the answer; raises OSError where there is none."""
        connection = self._connection()
        try:
            connection.request(method, path, body, dict(headers))
            answer = connection.getresponse()
            content = answer.read()
        except BaseException:
            connection.close()
            raise
        if answer.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        return answer.status, content

    def close(self) -> None:
        """Close what is open; the next request opens another connection."""
        while self._idle:
            self._idle.pop().close()

    def _connection(self) -> http.client.HTTPSConnection:
        while True:
            try:
                kept = self._idle.pop()
            except IndexError:
                break
            # What can be read between two answers is the end of the connection.
            if not select.select([kept.sock], [], [], 0)[0]:
                return kept
            kept.close()
        if self._trust is None:
            self._trust = ssl.create_default_context(cafile=str(self._certificate))
        return http.client.HTTPSConnection(
            "127.0.0.1", self._port, timeout=SECONDS, context=self._trust
        )
