"""The socket of the router's API, its clients, and the answers to their requests."""

from __future__ import annotations

import asyncio
import functools
import ipaddress
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from cells.unix_socket import Bound, UnixSocketError, bind
from speaker.api import Limited, RouteAttributes, Routes, UnknownName, parse_prefix
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family
from speaker.server import SlicedReader, Speaker
from waggle.router.api.connection import Connection
from waggle.router.api.items import collector_object, peer_object, route_object
from waggle.router.api.requests import Request, attributes, check_next_hop_of, decode_request
from waggle.router.config import INSTANCE, route_to_wire

MAX_CLIENTS: Final = 64

_to_wire: Final = functools.lru_cache(1024)(route_to_wire)
"""Cached: the text of an announced prefix returns in its withdrawal."""


class ApiError(OSError):
    """A socket that cannot be opened, with the reason."""


class Api:
    """Serves one speaker's instance."""

    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker
        self._server: asyncio.Server | None = None
        self._clients: dict[Connection, None] = {}
        """By their last request, the oldest first."""
        self._bound: Bound | None = None
        self._reader = SlicedReader()

    @property
    def reader(self) -> SlicedReader:
        """Reads answers in slices, in turn with the sessions."""
        return self._reader

    def admit(self, client: Connection) -> bool:
        """Add a client; beyond the limit in place of the longest idle one. Returns False for none."""
        if len(self._clients) >= MAX_CLIENTS:
            idle = next((one for one in self._clients if one.idle), None)
            if idle is None:
                return False
            self.remove(idle)
            idle.close()
        self._clients[client] = None
        return True

    def used(self, client: Connection) -> None:
        """Note a request."""
        if client in self._clients:
            del self._clients[client]
            self._clients[client] = None

    def remove(self, client: Connection) -> None:
        """Remove a client."""
        self._clients.pop(client, None)

    async def start(self, path: Path) -> None:
        """Open the socket. Raises `ApiError`."""
        try:
            self._bound = bind(path, "router")
        except UnixSocketError as error:
            raise ApiError(f"apiSocket: {error}") from None
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(
            lambda: Connection(self), sock=self._bound.sock
        )

    async def stop(self) -> None:
        """Close and remove the socket."""
        bound, self._bound = self._bound, None
        if bound is not None:
            bound.unlink()
        if self._server is not None:
            self._server.close()
        for client in list(self._clients):
            client.close()

    def answer(self, line: bytes) -> dict[str, Any] | Limited[dict[str, Any]]:
        """Answer one line; routes are still to be read."""
        try:
            found = self._perform(decode_request(line))
            return {"ok": True, **found} if isinstance(found, dict) else found
        except (msgspec.DecodeError, ValueError, UnknownName) as error:
            return {"ok": False, "error": str(error)}

    def _perform(self, request: Request) -> dict[str, Any] | Limited[dict[str, Any]]:
        if request.peer is not None:
            request = replace(request, peer=self._name_of(request.peer))
        match request.op:
            case "announce":
                return self._change(request.prefixes, attributes(request))
            case "withdraw":
                return self._withdraw(request.prefixes)
            case "refresh" | "reset" | "shutdown" | "enable":
                return self._change_session(request)
            case "peers":
                return {"peers": [peer_object(status) for status in self._speaker.peers()]}
            case "collectors":
                found = [collector_object(status) for status in self._speaker.collectors()]
                return {"collectors": found}
            case "routes":
                return self._routes(request)

    def _name_of(self, peer: str) -> str:
        """Return the name of the peer of this name or address; an unknown one unchanged."""
        names = {status.address: status.name for status in self._speaker.peers()}
        if peer in names.values():
            return peer
        try:
            return names.get(str(ipaddress.ip_address(peer)), peer)
        except ValueError:
            return peer

    def _change(self, prefixes: list[str], value: RouteAttributes | None) -> dict[str, Any]:
        changes: dict[Family, dict[bytes, RouteAttributes | None]] = {}
        for text in prefixes:
            family, nlri = _to_wire(text)
            if value is not None:
                check_next_hop_of(family, value.next_hop)
            changes.setdefault(family, {})[nlri] = value
        self._speaker.update_local(INSTANCE, changes)
        return {"changed": len(prefixes)}

    def _withdraw(self, prefixes: list[str]) -> dict[str, Any]:
        """Withdraw prefixes; those that the router does not originate are in ``absent``."""
        wanted: dict[Family, dict[bytes, str]] = {}
        for text in prefixes:
            family, nlri = _to_wire(text)
            wanted.setdefault(family, {})[nlri] = text
        absent: list[str] = []
        for family, texts in wanted.items():
            views = self._speaker.routes_available(INSTANCE, family, list(texts))
            own = {_to_wire(view.prefix)[1] for view in views if not view.peer}
            absent += [text for nlri, text in texts.items() if nlri not in own]
        present = set(prefixes) - set(absent)
        changed = self._change(list(present), None)
        return {**changed, "absent": absent} if absent else changed

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
                peers = [status.name for status in self._speaker.peers()]
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
