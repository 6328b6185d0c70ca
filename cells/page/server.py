"""The page on an address: where it may listen, TLS, and who is admitted.

The same answers as on the socket, without actions.
"""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from cells.api.resource import ApiFile, ApiResource, ApiStream
from cells.hive import Group, Health, SettingError, StartError
from cells.hive.lifecycle import Lifecycle
from cells.observability.listen_address import cannot_listen, is_loopback, parse_address
from cells.observability.token_file import TokenFile
from cells.options import PageOptions
from resources.given_file import NAMED_PIPE, is_named_pipe

if TYPE_CHECKING:
    from cells.page.listener import BoundedListener
    from cells.serve.handlers import Listener

log = structlog.get_logger("waggle.page")


class PageServer:
    """The listener on ``--page-address``; none without one."""

    def __init__(
        self,
        lifecycle: Lifecycle,
        health: Health,
        options: PageOptions,
        resources: Group[ApiResource],
        streams: Group[ApiStream],
        files: Group[ApiFile],
    ) -> None:
        self._health = health
        self._answers = (resources, streams, files)
        self._running: tuple[BoundedListener, Listener] | None = None
        if options.address is None:
            health.ok("on the agent's socket")
            return
        self._host, self._port = parse_address(options.address, "--page-address")
        self._local = self._host == "localhost" or _is_local(self._host)
        self._token = None
        if options.token_file is not None:
            path = Path(options.token_file)
            self._token = TokenFile(path, self._token_changed)
        self._tls = _tls(options)
        if not self._local and self._token is None and options.client_ca is None:
            raise SettingError(
                "",
                "--page-address",
                f"{options.address} is not on loopback: set --page-token-file or --page-client-ca",
            )
        lifecycle.append("page", reserve=self.start, stop=self.stop)

    @property
    def address(self) -> tuple[str, int]:
        """Address and port; once started the port that the kernel chose, where 0 is configured."""
        return self._host, self._port

    async def start(self) -> None:
        """Listen. An address that is in use is the start's failure and names the address."""
        bounds, listener = await asyncio.to_thread(self._construct)
        try:
            inner = await listener.protocol()
            address = await bounds.listen(inner, self._host, self._port, self._tls)
        except OSError as error:
            await listener.close()
            text = cannot_listen(self._host, self._port, error)
            raise StartError(f"--page-address: {text}") from error
        self._host, self._port = address
        self._running = bounds, listener
        self._token_changed("")
        if self._token is not None:
            self._token.read()
        log.info(
            "serving the page", event_name="page.listening", address=self._host, port=self._port
        )

    def _construct(self) -> tuple[BoundedListener, Listener]:
        """Import the HTTP library and return what uses it: that takes as long as the first session."""
        from cells.page.access import Access
        from cells.page.listener import BoundedListener
        from cells.serve.handlers import Listener

        resources, streams, files = self._answers
        bounds = BoundedListener({stream.path for stream in streams})
        token = None if self._token is None else self._token.read
        access = Access(token, secure=self._tls is not None, local=self._local)
        middlewares = (bounds.once, access.middleware, bounds.admitted)
        return bounds, Listener(resources, streams, (), (), files, middlewares=middlewares)

    async def stop(self) -> None:
        """Close the listener and what is open."""
        running, self._running = self._running, None
        if running is not None:
            bounds, listener = running
            await bounds.close()
            await listener.close()

    def _token_changed(self, trouble: str) -> None:
        if trouble and self._token is not None:
            reason = f"--page-token-file: {self._token.path} {trouble}"
            self._health.degraded(f"{reason}; without a token the page shows nothing")
            log.warning("no token for the page", event_name="page.token", reason=reason)
        else:
            self._health.ok(f"listening on {self._host}:{self._port}")


def _is_local(host: str) -> bool:
    try:
        return is_loopback(host)
    except ValueError:
        return False  # a name


def _tls(options: PageOptions) -> ssl.SSLContext | None:
    """Return the TLS context of the options; None without a certificate."""
    if options.certificate is None or options.key is None:
        if options.certificate or options.key or options.client_ca:
            raise SettingError(
                "", "--page-certificate", "needs --page-key, as --page-client-ca needs both"
            )
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    for path in (options.certificate, options.key, options.client_ca):
        if path is not None and is_named_pipe(path):
            # OpenSSL would wait for its writer.
            raise SettingError("", "--page-certificate", f"cannot be used: {path}: {NAMED_PIPE}")
    try:
        context.load_cert_chain(options.certificate, options.key)
        if options.client_ca is not None:
            context.load_verify_locations(options.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as error:
        text = error.strerror or str(error)
        raise SettingError("", "--page-certificate", f"cannot be used: {text}") from error
    return context
