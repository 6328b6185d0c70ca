"""The way to an API server: authentication and transport are kubernetes-asyncio's, kept fresh here.

The library is imported with the first connection: with its models it costs some 60 MiB, which an
agent that reads manifests does not pay. Its watch, its models and its time-outs are not used (it has
none by default, so that a connection that died half would hang for ever).
"""

from __future__ import annotations

import asyncio
import importlib
import os
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from resources.kubernetes.errors import Silent, Unconfigured, Unreachable

IN_CLUSTER = "in-cluster"
RENEW_PAUSE = 5.0
"""Seconds between two readings of the configuration at the least; it may run a program each time."""


class Access(msgspec.Struct, frozen=True):
    """Where the API server is, and who we are to it."""

    kubeconfig: str
    """A file, or `IN_CLUSTER` for the service account of the Pod that this is."""
    context: str | None = None

    def __str__(self) -> str:
        """Say it as it was given."""
        context = f" (context {self.context})" if self.context else ""
        return f"kubeconfig {self.kubeconfig}{context}" if not self.in_cluster else IN_CLUSTER

    @property
    def in_cluster(self) -> bool:
        """Whether it is the Pod's service account."""
        return self.kubeconfig == IN_CLUSTER


class _Client:
    """One client of the library, closed when it is replaced and nobody reads from it any more."""

    def __init__(self, api: Any) -> None:  # noqa: ANN401  an ApiClient, not imported
        self.api = api
        self.users = 0
        self.retired = False


class _Response(aiohttp.ClientResponse):
    """An answer that leaves no connection behind when it does not come."""

    async def start(self, connection: Any) -> aiohttp.ClientResponse:  # noqa: ANN401  not public
        """Wait for the head of the answer; who gives up hangs up."""
        try:
            return await super().start(connection)
        except BaseException:
            _hang_up(connection.transport)
            raise


class Connection:
    """Requests to one API server, with credentials that are read anew when they are refused."""

    def __init__(self, access: Access, timeout: float = 5.0) -> None:
        self._access = access
        self._timeout = timeout
        self._client: _Client | None = None
        self._lock = asyncio.Lock()
        self._made = float("-inf")

    @property
    def server(self) -> str:
        """The server's URL, or where it would have to be read from."""
        return str(self._client.api.configuration.host) if self._client else str(self._access)

    @asynccontextmanager
    async def get(
        self, path: str, parameters: Sequence[tuple[str, str]], *, silence: float
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Ask; see `request`."""
        async with self.request("GET", path, parameters, silence=silence) as response:
            yield response

    @asynccontextmanager
    async def request(
        self,
        method: str,
        path: str,
        parameters: Sequence[tuple[str, str]],
        *,
        silence: float,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request; ``silence`` is how long nothing may come, in seconds.

        Raises `Unreachable`, also while the answer is read, and `Silent` for a silence within it.
        """
        client = await self._current()
        client.users += 1
        response: aiohttp.ClientResponse | None = None
        timeout = aiohttp.ClientTimeout(
            total=None, connect=self._timeout, sock_connect=self._timeout, sock_read=silence
        )
        try:
            response = await client.api.call_api(
                path,
                method,
                query_params=list(parameters),
                header_params={"Accept": accept, "Content-Type": content_type},
                body=None if body is None else dict(body),
                auth_settings=["BearerToken"],
                _preload_content=False,
                _request_timeout=timeout,
            )
            yield response
        except (aiohttp.ClientError, TimeoutError, OSError, ssl.SSLError) as error:
            if response is not None and isinstance(error, TimeoutError):
                raise Silent(f"nothing came for {silence:g} s") from None
            raise Unreachable(self.server, _reason(error)) from None
        finally:
            if response is not None:
                _drop(response)
            client.users -= 1
            await self._close_unused(client)

    async def renew(self) -> None:
        """Read the configuration again before the next request: token, certificates, address."""
        if asyncio.get_running_loop().time() - self._made >= RENEW_PAUSE:
            await self._retire()

    async def close(self) -> None:
        """End it; requests still under way keep what they need until they are through."""
        await self._retire()

    async def _retire(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.retired = True
            await self._close_unused(client)

    async def _close_unused(self, client: _Client) -> None:
        if client.retired and not client.users:
            # As in `_hang_up`: nobody waits for the other side to say good-bye.
            await client.api.rest_client.pool_manager.connector.close(abort_ssl=True)
            await client.api.close()

    async def _current(self) -> _Client:
        async with self._lock:
            if self._client is None:
                self._client = _Client(await self._make())
                self._made = asyncio.get_running_loop().time()
            return self._client

    async def _make(self) -> Any:  # noqa: ANN401
        # It takes a second to import, in which sessions want to be heard.
        library: Any = await asyncio.to_thread(importlib.import_module, "kubernetes_asyncio")
        client, config = library.client, library.config
        settings = client.Configuration()
        try:
            if self._access.in_cluster:
                config.load_incluster_config(client_configuration=settings)
            else:
                _readable(self._access.kubeconfig)
                await config.load_kube_config(
                    config_file=self._access.kubeconfig,
                    context=self._access.context,
                    client_configuration=settings,
                    persist_config=False,
                )
            api = client.ApiClient(settings)
        except Exception as error:  # noqa: BLE001  the library lets a bad file fail in any way
            raise Unconfigured(str(self._access), _reason(error)) from None
        _replace_session(api.rest_client)
        return api


async def body_of(response: aiohttp.ClientResponse, most: int) -> bytes:
    """Read an answer's body, but not more than ``most`` octets of it; call it within `request`.

    One read alone gives what has come so far, which of a large answer is its beginning.
    """
    pieces: list[bytes] = []
    while most > 0 and (piece := await response.content.read(most)):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


def _drop(response: aiohttp.ClientResponse) -> None:
    """End an answer; one that was read whole has given its connection back already."""
    if response.connection is not None:
        _hang_up(response.connection.transport)
    response.close()


def _hang_up(transport: asyncio.Transport | None) -> None:
    """Close at once; in order, TLS would wait half a minute for a server that is silent."""
    # uvloop's transports have all of asyncio's methods, but are none by their class.
    if transport is not None:
        transport.abort()


def _replace_session(rest_client: Any) -> None:  # noqa: ANN401  the library's RESTClientObject
    """Take the library's connections, with its trust and its certificates, for answers of ours."""
    theirs = rest_client.pool_manager
    rest_client.pool_manager = aiohttp.ClientSession(
        connector=theirs.connector, trust_env=theirs.trust_env, response_class=_Response
    )
    theirs.detach()


def _readable(kubeconfig: str) -> None:
    """Raise `OSError` when there is no file; the library would go on, to fail in words of its own."""
    for path in kubeconfig.split(os.pathsep):
        if path:
            with Path(path).expanduser().open():
                return


def _reason(error: BaseException) -> str:
    """Say what is wrong in a few words; credentials are in none of these errors."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: {error.certificate_error}"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the answer broke off"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the connection was closed"
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        # The text is the event loop's, with the address once more, or the system's.
        return os.strerror(error.errno)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
