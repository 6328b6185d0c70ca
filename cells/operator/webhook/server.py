"""The HTTPS server of the webhook: AdmissionReviews in, verdicts out.

Every replica serves, the leader or not. The private key is handed to TLS through memory, not a file.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from typing import Final

import structlog
from aiohttp import web

from cells.hive import StartError
from cells.observability.listen_address import cannot_listen
from reconcilers.admission import Request, Reviewer, Verdict
from resources.kubernetes.admission import UnreadableReviewError, read_review, write_review
from resources.kubernetes.certificates import Certificates

PATH: Final = "/validate/{dialect}"
BODY_OCTETS: Final = 8 * 1024 * 1024
"""An object and its former version, each as large as an API server stores, and more."""
BODY_SECONDS: Final = 10.0

log = structlog.get_logger("waggle.webhook")


class WebhookServer:
    """The server; it listens once it has a certificate."""

    def __init__(
        self,
        host: str,
        port: int,
        reviewer: Reviewer,
        unready: Callable[[str], str],
        observe: Callable[[str, Verdict], None],
    ) -> None:
        """``unready`` takes a kind, and returns what its review has to wait for, empty if nothing."""
        self.host, self.port = host, port
        self._reviewer = reviewer
        self._unready = unready
        self._observe = observe
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.minimum_version = ssl.TLSVersion.TLSv1_2
        self._sockets: list[socket.socket] = []
        """Bound, and closed with the server."""
        self._runner: web.AppRunner | None = None

    @property
    def listens(self) -> bool:
        """Whether it has been started."""
        return self._runner is not None

    def load(self, certificates: Certificates) -> None:
        """Present this certificate from the next connection on."""
        descriptor = os.memfd_create("certificate")
        try:
            os.write(descriptor, (certificates.key + certificates.certificate).encode())
            self._tls.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)

    async def reserve(self) -> None:
        """Bind the address, on which nothing listens yet. Raises `StartError` with the address."""
        loop = asyncio.get_running_loop()
        try:
            for family, _, _, _, address in await loop.getaddrinfo(
                self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            ):
                bound = socket.socket(family, socket.SOCK_STREAM)
                self._sockets.append(bound)
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                bound.bind(address)
        except OSError as error:
            self._close_sockets()
            raise self._refused(error) from error

    def _refused(self, error: OSError) -> StartError:
        return StartError(f"--webhook: {cannot_listen(self.host, self.port, error)}")

    def _close_sockets(self) -> None:
        while self._sockets:
            self._sockets.pop().close()

    async def start(self) -> None:
        """Listen on the reserved address. Raises `StartError` with the address."""
        if not self._sockets:
            await self.reserve()
        app = web.Application(client_max_size=BODY_OCTETS)
        app.router.add_post(PATH, self._post)
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=2.0)
        await runner.setup()
        try:
            for bound in self._sockets:
                await web.SockSite(runner, bound, ssl_context=self._tls).start()
        except OSError as error:
            await runner.cleanup()
            self._close_sockets()
            raise self._refused(error) from error
        self._runner = runner
        self.host, self.port = runner.addresses[0][:2]
        log.info(
            "reviewing objects", event_name="webhook.listening", address=self.host, port=self.port
        )

    async def stop(self) -> None:
        """Answer what is in progress, and close the listener."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
        self._close_sockets()

    async def _post(self, request: web.Request) -> web.Response:
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await request.read()
        except TimeoutError:
            return _refused(408, f"the body did not arrive in {BODY_SECONDS:g} s")
        try:
            review = read_review(body)
        except UnreadableReviewError as error:
            return _refused(400, str(error))
        waits_for = self._unready(review.kind.kind)
        if waits_for:
            # An answer would be about a cluster without the objects that have not been read.
            return _refused(503, f"not ready: waits for {waits_for}")
        verdict = self._reviewer.review(
            Request(
                review.operation,
                review.kind.api_version,
                review.kind.kind,
                review.object,
                review.old_object,
            )
        )
        self._observe(review.kind.kind, verdict)
        answer = write_review(
            review.uid, allowed=verdict.allowed, message=verdict.message, warnings=verdict.warnings
        )
        return web.Response(body=answer, content_type="application/json")


def _refused(status: int, reason: str) -> web.Response:
    return web.Response(status=status, text=f"{reason}\n")
