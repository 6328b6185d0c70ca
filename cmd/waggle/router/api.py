"""The router's API: one JSON object per line over a Unix socket with access for its owner only.

For tests, the demo's live table and benchmarks. Requests have ``op``: ``announce`` and
``withdraw`` (with ``prefixes`` and attributes), ``peers``, ``routes`` (with ``table``, ``family``,
``peer``, ``prefix``, ``limit``); answers have ``ok``, and ``error`` if that is false. Routes are read
and sent in slices, in turn with the sessions. The length of lines and the number of clients are
limited: the longest idle client makes room.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import socket
import stat
from collections.abc import Sequence
from contextlib import aclosing
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal, cast

import msgspec

from speaker.api import (
    CollectorStatus,
    Limited,
    PeerStatus,
    RouteAttributes,
    Routes,
    RouteView,
    UnknownName,
    parse_prefix,
)
from speaker.iana import WELL_KNOWN_COMMUNITIES
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family
from speaker.server import SlicedReader, Speaker
from waggle.router.config import INSTANCE, route_to_wire

MAX_LINE: Final = 16 * 1024 * 1024
MAX_CLIENTS: Final = 64


class Request(
    msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True
):
    """One request of a client."""

    op: Literal[
        "announce",
        "withdraw",
        "refresh",
        "reset",
        "shutdown",
        "enable",
        "peers",
        "collectors",
        "routes",
    ]
    prefixes: list[str] = []
    next_hop: str | None = None
    med: int | None = None
    local_preference: int | None = None
    communities: list[str] = []
    large_communities: list[str] = []
    table: Literal["available", "received", "advertised"] = "available"
    family: str | None = None
    peer: str | None = None
    prefix: str | None = None
    limit: int | None = None
    message: str = ""


_requests: Final = msgspec.json.Decoder(Request)
_to_wire: Final = functools.lru_cache(1024)(route_to_wire)
"""Cached: the text of an announced prefix returns in its withdrawal."""


class ApiError(OSError):
    """A socket that cannot be opened, with the reason."""


class _Client(asyncio.Protocol):
    """One client: each line is answered immediately; a client that does not read its answers waits."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._transport: asyncio.Transport | None = None
        self._lines = bytearray()
        self._searched = 0
        """The number of octets that were searched for the end of a line."""
        self._writable = asyncio.Event()
        self._writable.set()
        self._sending: asyncio.Task[None] | None = None
        """The task of an answer that is sent in slices."""

    @property
    def idle(self) -> bool:
        """Whether no answer is being sent."""
        return self._sending is None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the transport, if the number of clients permits (asyncio)."""
        self._transport = cast("asyncio.Transport", transport)
        if not self._api.admit(self):
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """Remove the client, and end its answer (asyncio)."""
        del error
        self._api.remove(self)
        if self._sending is not None:
            self._sending.cancel()

    def data_received(self, data: bytes) -> None:
        """Answer the complete lines (asyncio)."""
        self._api.used(self)
        if self._reading and not self._lines and data.find(b"\n") + 1 == len(data):
            # Fast path for one complete request, the usual case.
            self._reply(data)
            return
        self._lines += data
        self._answer_lines()

    def pause_writing(self) -> None:
        """Stop reading while the client does not read its answers (asyncio)."""
        self._writable.clear()
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Continue with the answer, or with the requests that arrived meanwhile (asyncio)."""
        self._writable.set()
        self._continue()

    @property
    def _reading(self) -> bool:
        return self._writable.is_set() and self._sending is None

    def _continue(self) -> None:
        if self._transport is not None and not self._transport.is_closing() and self._reading:
            self._transport.resume_reading()
            self._answer_lines()

    def _answer_lines(self) -> None:
        transport = self._transport
        while transport is not None and self._reading and not transport.is_closing():
            end = self._lines.find(b"\n", self._searched)
            if end < 0:
                self._searched = len(self._lines)
                if self._searched > MAX_LINE:
                    transport.close()
                return
            line = bytes(self._lines[:end])
            del self._lines[: end + 1]
            self._searched = 0
            self._reply(line)

    def _reply(self, line: bytes) -> None:
        if self._transport is None:
            return
        answer = self._api.answer(line)
        if isinstance(answer, dict):
            self._transport.write(msgspec.json.encode(answer) + b"\n")
            return
        self._transport.pause_reading()
        self._sending = asyncio.create_task(self._send(self._transport, answer))
        self._sending.add_done_callback(self._sent)

    async def _send(self, transport: asyncio.Transport, routes: Limited[dict[str, Any]]) -> None:
        """Send the answer with routes, no faster than the client reads."""
        transport.write(b'{"ok":true,"routes":[')
        separator = b""
        async with aclosing(self._api.reader.read(iter(routes))) as slices:
            async for items in slices:
                await self._writable.wait()
                transport.write(separator + msgspec.json.encode(items)[1:-1])
                separator = b","
        transport.write(b'],"truncated":true}\n' if routes.truncated else b"]}\n")

    def _sent(self, task: asyncio.Task[None]) -> None:
        self._sending = None
        if task.cancelled() or task.exception() is not None:
            self.close()
        else:
            self._continue()

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.abort()


class Api:
    """Serves one speaker's instance."""

    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker
        self._server: asyncio.Server | None = None
        self._clients: dict[_Client, None] = {}
        """By their last request, the oldest first."""
        self._path: Path | None = None
        self.reader: Final = SlicedReader()

    def admit(self, client: _Client) -> bool:
        """Add a client; beyond the limit in place of the longest idle one. Returns False for none."""
        if len(self._clients) >= MAX_CLIENTS:
            idle = next((one for one in self._clients if one.idle), None)
            if idle is None:
                return False
            self.remove(idle)
            idle.close()
        self._clients[client] = None
        return True

    def used(self, client: _Client) -> None:
        """Note a request."""
        if client in self._clients:
            del self._clients[client]
            self._clients[client] = None

    def remove(self, client: _Client) -> None:
        """Remove a client."""
        self._clients.pop(client, None)

    async def start(self, path: Path) -> None:
        """Open the socket. Raises `ApiError`."""
        sock = _bind(path)
        self._path = path
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: _Client(self), sock=sock)

    async def stop(self) -> None:
        """Close and remove the socket."""
        if self._server is not None:
            self._server.close()
        for client in list(self._clients):
            client.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def answer(self, line: bytes) -> dict[str, Any] | Limited[dict[str, Any]]:
        """Answer one line; routes are still to be read."""
        try:
            found = self._perform(_requests.decode(line))
            return {"ok": True, **found} if isinstance(found, dict) else found
        except (msgspec.DecodeError, ValueError, UnknownName) as error:
            return {"ok": False, "error": str(error)}

    def _perform(self, request: Request) -> dict[str, Any] | Limited[dict[str, Any]]:
        match request.op:
            case "announce":
                return self._change(request.prefixes, attributes(request))
            case "withdraw":
                return self._change(request.prefixes, None)
            case "refresh" | "reset" | "shutdown" | "enable":
                return self._change_session(request)
            case "peers":
                return {"peers": [peer_object(status) for status in self._speaker.peers()]}
            case "collectors":
                found = [collector_object(status) for status in self._speaker.collectors()]
                return {"collectors": found}
            case "routes":
                return self._routes(request)

    def _change(self, prefixes: list[str], value: RouteAttributes | None) -> dict[str, Any]:
        changes: dict[Family, dict[bytes, RouteAttributes | None]] = {}
        for text in prefixes:
            family, nlri = _to_wire(text)
            if value is not None:
                check_next_hop_of(family, value.next_hop)
            changes.setdefault(family, {})[nlri] = value
        self._speaker.update_local(INSTANCE, changes)
        return {"changed": len(prefixes)}

    def _change_session(self, request: Request) -> dict[str, Any]:
        name = request.peer
        if name is None:
            raise ValueError("peer: the name of a peer is required")
        match request.op:
            case "reset":
                self._speaker.reset_peer(INSTANCE, name, request.message)
            case "shutdown":
                self._speaker.shut_down_peer(INSTANCE, name, request.message)
            case "enable":
                self._speaker.enable_peer(INSTANCE, name)
            case _:
                families = () if request.family is None else (Family.parse(request.family),)
                self._speaker.request_refresh(INSTANCE, name, families)
        return {}

    def _routes(self, request: Request) -> Limited[dict[str, Any]]:
        """Return the routes of a request. Raises `UnknownName`, ValueError."""
        if request.limit is not None and request.limit < 1:
            raise ValueError(f"limit: a number of at least 1, not {request.limit}")
        families = [IPV4_UNICAST, IPV6_UNICAST]
        if request.family is not None:
            families = [Family.parse(request.family)]
        wanted = None if request.prefix is None else parse_prefix(request.prefix)
        if wanted is None:
            slices = [self._table(request, request.peer, f, None).slices for f in families]
        else:
            if request.family is not None and wanted.family not in families:
                raise ValueError(f"prefix: {request.prefix} is not of the family {request.family}")
            peers = [request.peer]
            if request.peer is None and request.table != "available":
                # The longest match at each peer.
                peers = [status.name for status in self._speaker.peers() if status.established]
            slices = [
                wanted.first_match(self._table(request, peer, *wanted).slices) for peer in peers
            ]
        objects = ([route_object(view) for view in some] for some in chain.from_iterable(slices))
        return Limited(objects, request.limit)

    def _table(
        self, request: Request, peer: str | None, family: Family, prefixes: Sequence[bytes] | None
    ) -> Routes:
        speaker = self._speaker
        match request.table:
            case "available":
                return speaker.routes_available(INSTANCE, family, prefixes, peer=peer)
            case "received":
                return speaker.routes_received(INSTANCE, peer, family, prefixes)
            case "advertised":
                return speaker.routes_advertised(INSTANCE, peer, family, prefixes)


def check_next_hop_of(family: Family, next_hop: str | None) -> None:
    """Reject a link-local next hop for IPv4 prefixes. Raises ValueError."""
    if next_hop is None or family != IPV4_UNICAST:
        return
    address = ipaddress.ip_address(next_hop)
    if address.version == 6 and address.is_link_local:
        raise ValueError(
            f"nextHop: {next_hop} is a link-local address; an IPv4 prefix needs another"
        )


def attributes(request: Request) -> RouteAttributes:
    """Return the attributes of announced prefixes. Raises ValueError naming the text."""
    return RouteAttributes(
        next_hop=request.next_hop,
        med=request.med,
        local_preference=request.local_preference,
        communities=tuple(map(_community, request.communities)),
        large_communities=tuple(map(_large, request.large_communities)),
    )


def _numbers(text: str, count: int, limit: int) -> list[int]:
    parts = text.split(":")
    if len(parts) != count or not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"{text!r} is not {count} numbers separated by colons")
    numbers = [int(part) for part in parts]
    if max(numbers) > limit:
        raise ValueError(f"{text!r}: a number is above {limit}")
    return numbers


def _community(text: str) -> int:
    known = WELL_KNOWN_COMMUNITIES.get(text)
    if known is not None:
        return known
    high, low = _numbers(text, 2, 0xFFFF)
    return high << 16 | low


def _large(text: str) -> tuple[int, int, int]:
    one, two, three = _numbers(text, 3, 0xFFFFFFFF)
    return (one, two, three)


def peer_object(status: PeerStatus) -> dict[str, Any]:
    """Return a session as a JSON object."""
    return {
        "name": status.name,
        "address": status.address,
        "asn": status.peer_asn,
        "type": status.peer_type,
        "state": status.state,
        "reason": status.reason,
        "likelyCause": status.likely_cause,
        "retryIn": status.retry_in,
        "since": status.since,
        "routerID": status.peer_router_id,
        "holdTime": status.hold_time,
        "keepaliveTime": status.keepalive_time,
        "capabilities": status.capabilities,
        "lastError": status.last_error,
        "flaps": status.flaps,
        "updatesReceived": status.updates_received,
        "updatesSent": status.updates_sent,
        "dynamic": status.dynamic,
        "families": {
            str(family.family): {
                "negotiated": family.negotiated,
                "received": family.received,
                "accepted": family.accepted,
                "advertised": family.advertised,
                "leftOut": family.left_out,
            }
            for family in status.families
        },
    }


def collector_object(status: CollectorStatus) -> dict[str, Any]:
    """Return a BMP monitoring station as a JSON object."""
    return {
        "name": status.name,
        "address": status.address,
        "port": status.port,
        "connected": status.connected,
        "synchronized": status.synchronized,
        "reason": status.reason,
        "since": status.since,
        "retryIn": status.retry_in,
        "octetsSent": status.octets_sent,
        "queuedOctets": status.queued_octets,
        "connections": status.connections,
    }


def route_object(route: RouteView) -> dict[str, Any]:
    """Return a route as a JSON object."""
    return {
        "family": str(route.family),
        "prefix": route.prefix,
        "nextHop": route.next_hop,
        "asPath": route.as_path,
        "origin": route.origin,
        "med": route.med,
        "localPreference": route.local_preference,
        "communities": route.communities,
        "largeCommunities": route.large_communities,
        "peer": route.peer,
        "best": route.best,
        "reason": route.reason,
        "pathID": route.path_id,
    }


def _bind(path: Path) -> socket.socket:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        pass
    else:
        if not stat.S_ISSOCK(mode):
            raise ApiError(f"apiSocket {path}: exists and is not a socket")
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(path))
            except OSError:
                path.unlink()
            else:
                raise ApiError(f"apiSocket {path}: another router uses it")
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.setblocking(False)
        sock.bind(str(path))
        # Before it listens, so that no other user can connect.
        path.chmod(0o600)
    except OSError as error:
        sock.close()
        raise ApiError(f"apiSocket {path}: {error.strerror or error}") from None
    return sock
