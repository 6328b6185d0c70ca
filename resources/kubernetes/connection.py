"""Connections to an API server: kubernetes-asyncio's authentication and transport, renewed on errors.

The library is imported with the first connection, as it takes some 60 MiB that an agent on manifests
does not need. Its watch, models and timeouts are not used; without a timeout, its default, a half-open
connection would never fail.
"""

from __future__ import annotations

import asyncio
import binascii
import contextlib
import os
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import aiohttp
import msgspec

from resources.given_file import NAMED_PIPE, is_named_pipe
from resources.kubernetes import client_library
from resources.kubernetes.errors import ReadTimeout, StatusError, Unconfigured, Unreachable

IN_CLUSTER = "in-cluster"
JSON = "application/json"
RENEW_PAUSE = 5.0
"""Minimum seconds between two loads of the configuration, which may run a credential plugin."""


MAX_MESSAGE: Final = 4 << 20
"""Octets of a message of a WebSocket; kubelets send 32 KiB."""
MAX_KUBECONFIG: Final = 1 << 20
"""Octets that are read to see whether there are any."""


class Access(msgspec.Struct, frozen=True):
    """The address of the API server and the credentials."""

    kubeconfig: str
    """A file, or `IN_CLUSTER` for the service account of this Pod."""
    context: str | None = None

    def __str__(self) -> str:
        """Return file and context, or `IN_CLUSTER`."""
        context = f" (context {self.context})" if self.context else ""
        return f"kubeconfig {self.kubeconfig}{context}" if not self.in_cluster else IN_CLUSTER

    @property
    def in_cluster(self) -> bool:
        """True if the connection to the API server uses the service account of this Pod."""
        return self.kubeconfig == IN_CLUSTER


class _Client:
    """One client of the library; closed once it is replaced and has no requests."""

    def __init__(self, api: Any) -> None:  # noqa: ANN401  an ApiClient, not imported
        self.api = api
        self.users = 0
        self.retired = False


class _Response(aiohttp.ClientResponse):
    """A response that closes its connection at once, unless it has been read completely.

    The library closes it, also when a request is cancelled or fails, and with a WebSocket. An orderly
    TLS close would wait half a minute for a silent server.
    """

    def close(self) -> None:
        """Abort the connection; a completely read response has released its own."""
        transport = None if self.connection is None else self.connection.transport
        # Not checked by class: uvloop's transports are no subclasses of asyncio's.
        if transport is not None:
            transport.abort()
        super().close()


class Connection:
    """Requests to one API server; `renew` reloads rejected credentials."""

    def __init__(self, access: Access, timeout: float = 5.0) -> None:
        self._access = access
        self._timeout = timeout
        self._client: _Client | None = None
        self._lock = asyncio.Lock()
        self._loaded_at = float("-inf")
        self.certificate_ends: Mapping[str, float] = {}
        """When the certificates of the configuration end, as Unix time: ``client``, the agent's own,
        and ``api-server-authority``, the first of its trusted authorities."""

    @property
    def server(self) -> str:
        """The server's URL, or the source of the configuration before the first connection."""
        return str(self._client.api.configuration.host) if self._client else str(self._access)

    @asynccontextmanager
    async def get(
        self,
        path: str,
        parameters: Sequence[tuple[str, str]],
        *,
        silence: float,
        accept: str = JSON,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a GET on the connection; see `request`."""
        request = self.request("GET", path, parameters, silence=silence, accept=accept)
        async with request as response:
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
        content_type: str = JSON,
        accept: str = JSON,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request on the connection; ``silence``: the timeout of each read, in seconds.

        Raises `Unreachable`, also while the response is read, and `ReadTimeout` within the response.
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
                raise ReadTimeout(f"nothing came for {silence:g} s") from None
            raise Unreachable(self.server, _reason(error)) from None
        finally:
            if response is not None:
                response.close()
            client.users -= 1
            await self._close_unused(client)

    @asynccontextmanager
    async def websocket(
        self, path: str, parameters: Sequence[tuple[str, str]], protocols: Sequence[str]
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """Open a WebSocket connection with the first subprotocol that the server has.

        Raises `Unreachable`, also while it is read, and `StatusError` for a rejected handshake, whose
        reason the HTTP client does not read.
        """
        client = await self._current()
        client.users += 1
        socket: aiohttp.ClientWebSocketResponse | None = None
        headers: dict[str, str] = {}
        try:
            await client.api.update_params_for_auth(headers, [], ["BearerToken"])
            url = f"{client.api.configuration.host}{path}?{urlencode(parameters)}"
            async with asyncio.timeout(self._timeout):
                socket = await client.api.rest_client.pool_manager.ws_connect(
                    url,
                    headers=headers,
                    protocols=protocols,
                    max_msg_size=MAX_MESSAGE,
                    autoclose=False,
                )
            yield socket
        except aiohttp.WSServerHandshakeError as error:
            raise StatusError(error.status, error.message) from None
        except (aiohttp.ClientError, TimeoutError, OSError, ssl.SSLError) as error:
            raise Unreachable(self.server, _reason(error)) from None
        finally:
            if socket is not None:
                # Without waiting for the other end, which may be silent.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await socket.close()
            client.users -= 1
            await self._close_unused(client)

    async def renew(self) -> None:
        """Load the connection's configuration again before the next request: token, address."""
        if asyncio.get_running_loop().time() - self._loaded_at >= RENEW_PAUSE:
            await self._retire()

    async def close(self) -> None:
        """Close the connection; the client of pending requests is closed after the last of them."""
        await self._retire()

    async def _retire(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.retired = True
            await self._close_unused(client)

    async def _close_unused(self, client: _Client) -> None:
        if client.retired and not client.users:
            # As in `_Response`: without waiting for the peer's TLS close notification.
            await client.api.rest_client.pool_manager.connector.close(abort_ssl=True)
            await client.api.close()

    async def _current(self) -> _Client:
        async with self._lock:
            if self._client is None:
                self._client = _Client(await self._make())
                self._loaded_at = asyncio.get_running_loop().time()
            return self._client

    async def _make(self) -> Any:  # noqa: ANN401
        # In a thread: the import takes a while, in which BGP sessions need the event loop.
        library = await asyncio.to_thread(client_library.load)
        config = library.config
        settings = library.configuration()
        try:
            if self._access.in_cluster:
                config.load_incluster_config(client_configuration=settings)
            else:
                await asyncio.to_thread(_readable, self._access.kubeconfig)
                try:
                    await config.load_kube_config(
                        config_file=self._access.kubeconfig,
                        context=self._access.context,
                        client_configuration=settings,
                        persist_config=False,
                    )
                except (AttributeError, IndexError, KeyError, TypeError):
                    # Of the library: it expects mappings and lists.
                    raise _UnusableError("it is no kubeconfig") from None
            ends = self._ends_of_authorities(settings.ssl_ca_cert)
            if settings.cert_file:
                ends["client"] = await asyncio.to_thread(_end_of, settings.cert_file)
            api = library.api_client(settings)
        except Exception as error:  # noqa: BLE001  the library lets a bad file fail in any way
            raise Unconfigured(str(self._access), _reason(error)) from None
        self.certificate_ends = ends
        _replace_session(api.rest_client, settings.host)
        return api

    def _ends_of_authorities(self, path: str | None) -> dict[str, float]:
        """Return when the first authority of a file ends.

        Raises `_UnusableError` for a file without a certificate: OpenSSL names no reason.
        """
        if path is None:
            return {}
        try:
            context = ssl.create_default_context(cafile=path)
        except ssl.SSLError:
            # The path of a kubeconfig's data is that of a temporary file.
            fields = "certificate-authority or certificate-authority-data"
            where = path if self._access.in_cluster else fields
            raise _UnusableError(f"no certificate in {where}") from None
        ends = [str(authority["notAfter"]) for authority in context.get_ca_certs()]
        return {"api-server-authority": min(map(ssl.cert_time_to_seconds, ends))} if ends else {}


def _end_of(path: str) -> float:
    """Return when a certificate ends, as Unix time."""
    # Slow to import, and few agents have one: in the cluster they have a token.
    from cryptography import x509

    certificate = x509.load_pem_x509_certificate(Path(path).read_bytes())
    return certificate.not_valid_after_utc.timestamp()


async def read_limited_body(response: aiohttp.ClientResponse, most: int) -> bytes:
    """Read the body of a connection's response, at most ``most`` octets; within `request`.

    One read returns only the octets that have arrived.
    """
    pieces: list[bytes] = []
    while most > 0 and (piece := await response.content.read(most)):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


def _replace_session(rest_client: Any, server: str) -> None:  # noqa: ANN401  a RESTClientObject
    """Replace the library's session by one with its connector and our response class.

    The environment is read once. The library's session reads it with each request, in a thread, and
    ``~/.netrc`` as well, whose default entry would be a second set of credentials.
    """
    theirs = rest_client.pool_manager
    rest_client.pool_manager = aiohttp.ClientSession(
        connector=theirs.connector,
        proxy=rest_client.proxy or _proxy_of_environment(server),
        response_class=_Response,
    )
    theirs.detach()


def _proxy_of_environment(server: str) -> str | None:
    """Return the URL of the environment's proxy for a server: ``HTTPS_PROXY``, ``NO_PROXY``."""
    from urllib.request import getproxies, proxy_bypass  # aiohttp imports it, too

    address = urlsplit(server)
    if proxy_bypass(address.hostname or ""):
        return None
    return getproxies().get(address.scheme)


FILES_OF_KUBECONFIG: Final = frozenset(
    {
        "certificate-authority",
        "client-certificate",
        "client-key",
        "idp-certificate-authority",
        "tokenFile",
    }
)
"""The members with the path of a file."""


def _readable(kubeconfig: str) -> None:
    """Raise `OSError` if there is no file, and `_UnusableError` for an empty one.

    The library's own errors name neither. It would wait for the writer of a named pipe, as which
    a kubeconfig or a file of its members may be given.
    """
    paths = [Path(path).expanduser() for path in kubeconfig.split(os.pathsep) if path]
    for number, path in enumerate(paths):
        if is_named_pipe(path):
            raise _UnusableError(NAMED_PIPE)
        if number and not path.exists():
            continue
        with path.open("rb") as file:
            content = file.read(MAX_KUBECONFIG)
        if not number and not content.strip():
            raise _UnusableError("it is empty")
        for field, named in _files_of(content):
            # As the library reads it: from the directory of the kubeconfig.
            if is_named_pipe(path.parent / named):
                raise _UnusableError(f"{field}: {path.parent / named}: {NAMED_PIPE}")


def _files_of(content: bytes) -> Iterator[tuple[str, str]]:
    """Yield the files that a kubeconfig names, by member; none of what is no kubeconfig."""
    import yaml  # as in `_reason`

    from resources.kubernetes import kubeconfig_yaml

    try:
        waiting: list[Any] = [kubeconfig_yaml.safe_load(content.decode())]
    except (yaml.YAMLError, ValueError, RecursionError):
        return
    read: set[int] = set()
    while waiting:
        value = waiting.pop()
        if id(value) in read:
            continue  # by an alias, which may be within its own value
        if isinstance(value, list | dict):
            read.add(id(value))
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            waiting += value.values()
            for field in FILES_OF_KUBECONFIG & value.keys():
                if isinstance(value[field], str):
                    yield field, value[field]


class _UnusableError(Exception):
    """A configuration that cannot be used, with the reason as a sentence."""


def _reason(error: BaseException) -> str:
    """Return a short reason; none of these errors contains credentials."""
    if isinstance(error, _UnusableError):
        return str(error)
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: {error.certificate_error}"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    tls = error if isinstance(error, ssl.SSLError) else getattr(error, "os_error", None)
    if isinstance(tls, ssl.SSLError):
        # Its number is OpenSSL's, and none of the system's errors.
        reason = (tls.reason or "unknown error").replace("_", " ").lower()
        return f"TLS or its certificates: {reason}"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the answer broke off"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the connection was closed"
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        # The event loop's own text would repeat the address.
        return os.strerror(error.errno)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    import yaml  # here, as an agent with service account does not need it

    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark
        where = f" in line {mark.line + 1}" if mark is not None else ""
        return f"it is not YAML{where}: {error.problem}"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    text = " ".join(str(error).split())
    if isinstance(error, binascii.Error):
        return f"a value that ends in -data is not base64: {text}"
    if text and type(error).__name__ == "ConfigException":
        # Of the library, which is not imported here: a sentence.
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
