"""The paths of the router's local API: sessions, routes, monitoring stations, and its actions.

The server, its socket and the items are shared with the agent's API (`cells.serve`, docs/local-api.md).
"""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

import msgspec

from cells.api.model import BfdItem, PrefixChangeItem
from cells.api.resource import ApiAction, ApiResource, BadRequestError, NoBody, NotFoundError
from cells.serve.api_socket import ApiSocket
from cells.serve.bfd import bfd_resource
from cells.serve.clear import ClearPeers, clear_action
from cells.serve.items import collector_item
from cells.serve.routing import Chosen, SpeakerRouting, peers_resource, routes_resource
from resources.schema import did_you_mean
from speaker.api import InvalidConfig, PeerStatus, RouteAttributes, UnknownName
from speaker.iana import WELL_KNOWN_COMMUNITIES
from speaker.nlri import IPV4_UNICAST, Family
from speaker.server import Speaker
from waggle.router_config import INSTANCE, route_to_wire
from waggle.router_config.file_values import with_key

if TYPE_CHECKING:
    from waggle.commands.router.kernel import RouterKernel

REMEMBERED: Final = 1024
"""Prefixes and sets of attributes: the text of an announced prefix returns in its withdrawal."""
COMMUNITIES: Final = "communities"
"""The key of communities, which may be names."""


class _Body(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    pass


class Withdraw(_Body, frozen=True):
    """Prefixes to withdraw."""

    prefixes: list[str]


class Announce(Withdraw, frozen=True):
    """Prefixes to announce, with their attributes."""

    next_hop: str | None = None
    med: int | None = None
    local_preference: int | None = None
    communities: tuple[str, ...] = ()
    large_communities: tuple[str, ...] = ()


class Enable(_Body, frozen=True):
    """A neighbour, by its name or address."""

    peer: str


class End(Enable, frozen=True):
    """A neighbour whose session ends, with a shutdown communication (RFC 9003)."""

    message: str = ""


B = TypeVar("B")
P = TypeVar("P", bound=Enable)


class BfdSessions(Protocol):
    """The BFD sessions of a router."""

    def items(self, peer: str | None, instance: str | None) -> list[BfdItem]:
        """Return the sessions as the API has them."""


def api_socket(
    path: Path,
    reported: Callable[[str], object],
    speaker: Speaker,
    bfd: BfdSessions,
    kernel: RouterKernel | None = None,
) -> ApiSocket:
    """Return the socket of a router's API; ``reported`` as for `ApiSocket`."""
    paths = RouterApi(speaker, bfd, kernel)
    return ApiSocket(
        path, paths.resources(), actions=paths.actions(), reported=reported, program="router"
    )


class _Router(NamedTuple):
    """The router in answers: its router ID, which another file may change."""

    routing: SpeakerRouting

    @property
    def name(self) -> str:
        return self.routing.node


class _Names(NamedTuple):
    """The neighbours in requests, by name or address."""

    routing: SpeakerRouting

    def check(self, peer: str | None, instance: str | None) -> None:
        if not self.routing.sessions(peer, instance):
            raise NotFoundError.of_name("peer", peer or "", self.routing.names())

    def chosen(self, peer: str | None, instance: str | None) -> Chosen:
        return self.routing.chosen(peer, instance)


class RouterApi:
    """Resources and actions of one speaker's instance."""

    def __init__(
        self, speaker: Speaker, bfd: BfdSessions, kernel: RouterKernel | None = None
    ) -> None:
        """``kernel``: None if the router installs no routes."""
        self._speaker = speaker
        self._bfd = bfd
        self._kernel = kernel
        self._routing = SpeakerRouting(speaker, self._bfd_state)

    def _bfd_state(self, status: PeerStatus) -> str | None:
        return next((session.state for session in self._bfd.items(status.name, None)), None)

    def resources(self) -> tuple[ApiResource, ...]:
        """Return what a GET reads."""
        return (
            peers_resource(self._routing),
            routes_resource(self._routing),
            bfd_resource(self._bfd.items, notes=lambda: ["no neighbor has bfd in the file"]),
            _no_kernel_routes() if self._kernel is None else self._kernel.resource,
            ApiResource(
                path="/v1/collectors",
                kind="CollectorList",
                read=lambda _: [
                    collector_item(self._routing.node, status)
                    for status in self._speaker.collectors()
                ],
            ),
        )

    def actions(self) -> tuple[ApiAction, ...]:
        """Return what a POST does."""
        speaker = self._speaker
        return (
            ApiAction(
                path="/v1/announce", kind="PrefixChangeList", body=Announce, run=self._announce
            ),
            ApiAction(
                path="/v1/withdraw", kind="PrefixChangeList", body=Withdraw, run=self._withdraw
            ),
            _no_approval() if self._kernel is None else self._kernel.approve,
            clear_action(ClearPeers(_Router(self._routing), speaker, _Names(self._routing))),
            self._of_peer(
                "shutdown", End, lambda name, b: speaker.shut_down_peer(INSTANCE, name, b.message)
            ),
            self._of_peer("enable", Enable, lambda name, _: speaker.enable_peer(INSTANCE, name)),
        )

    def _announce(self, body: Announce) -> Sequence[PrefixChangeItem]:
        value = _attributes(
            body.next_hop,
            body.med,
            body.local_preference,
            body.communities,
            body.large_communities,
        )
        changes: dict[Family, dict[bytes, RouteAttributes | None]] = {}
        for text in body.prefixes:
            family, nlri = _to_wire(text)
            if body.next_hop is not None and family == IPV4_UNICAST:
                _check_next_hop(body.next_hop)
            changes.setdefault(family, {})[nlri] = value
        self._speaker.update_local(INSTANCE, changes)
        return [PrefixChangeItem(changed=len(body.prefixes))]

    def _withdraw(self, body: Withdraw) -> Sequence[PrefixChangeItem]:
        """Withdraw prefixes; prefixes that the router does not originate are in ``absent``."""
        changes: dict[Family, dict[bytes, RouteAttributes | None]] = {}
        absent: list[str] = []
        wanted = dict.fromkeys(body.prefixes)
        for text in wanted:
            family, nlri = _to_wire(text)
            if self._speaker.originates(INSTANCE, family, nlri):
                changes.setdefault(family, {})[nlri] = None
            else:
                absent.append(text)
        self._speaker.update_local(INSTANCE, changes)
        return [PrefixChangeItem(changed=len(wanted) - len(absent), absent=absent)]

    def _of_peer(self, name: str, body: type[P], perform: Callable[[str, P], object]) -> ApiAction:
        """Return an action on a neighbour, whose session is the answer."""

        def run(request: P) -> list[dict[str, Any]]:
            _Names(self._routing).check(request.peer, None)
            (peer, *_) = (status.name for status in self._routing.sessions(request.peer, None))
            perform(peer, request)
            return self._routing.peers(peer=peer, instance=None)

        return _action(name, "PeerList", body, run)


def _action(
    name: str, kind: str, body: type[B], perform: Callable[[B], Sequence[Any]]
) -> ApiAction:
    def run(request: B) -> Sequence[Any]:
        try:
            return perform(request)
        except UnknownName as error:
            raise NotFoundError(str(error)) from None
        except ValueError as error:
            raise BadRequestError(str(error)) from None

    return ApiAction(path=f"/v1/{name}", kind=kind, body=body, run=run)


def _no_kernel_routes() -> ApiResource:
    """Return the list of a router that installs no routes."""
    return ApiResource(
        path="/v1/kernel-routes",
        kind="KernelRouteList",
        parameters=("family", "prefix"),
        limited=True,
        read=lambda _: (),
        notes=lambda: ["the file has no kernel: the router installs no routes"],
    )


def _no_approval() -> ApiAction:
    return _action("kernel-routes/approve", "KernelRouteList", NoBody, lambda _: ())


@functools.lru_cache(REMEMBERED)
def _to_wire(text: str) -> tuple[Family, bytes]:
    """Return the family and the wire form of a prefix. Raises `BadRequestError`."""
    try:
        return route_to_wire(text)
    except ValueError as error:
        raise BadRequestError(str(error)) from None


def _check_next_hop(text: str) -> None:
    """Reject a link-local next hop for IPv4 prefixes. Raises `BadRequestError`."""
    address = ipaddress.ip_address(text)
    if address.version == 6 and address.is_link_local:
        raise BadRequestError(
            f"nextHop: {text} is a link-local address; an IPv4 prefix needs another"
        )


@functools.lru_cache(REMEMBERED)
def _attributes(
    next_hop: str | None,
    med: int | None,
    local_preference: int | None,
    communities: tuple[str, ...],
    large_communities: tuple[str, ...],
) -> RouteAttributes:
    """Return the attributes of announced prefixes. Raises `BadRequestError` naming the text."""
    try:
        return RouteAttributes(
            next_hop=next_hop,
            med=med,
            local_preference=local_preference,
            communities=tuple(map(_community, communities)),
            large_communities=tuple(map(_large, large_communities)),
        )
    except InvalidConfig as error:
        raise BadRequestError(with_key(error)) from None
    except ValueError as error:
        raise BadRequestError(str(error)) from None


def _numbers(text: str, key: str, form: str, limit: int) -> list[int]:
    """Return the numbers of a community in the form ``A:B``. Raises ValueError naming the key."""
    parts = text.split(":")
    if len(parts) != form.count(":") + 1 or not all(p.isascii() and p.isdigit() for p in parts):
        named = did_you_mean(text, WELL_KNOWN_COMMUNITIES) if key == COMMUNITIES else ""
        raise ValueError(f"{key}: {text!r} is not in the form {form}{named}")
    numbers = [int(part) for part in parts]
    if max(numbers) > limit:
        raise ValueError(f"{key}: {text!r}: a number is above {limit}")
    return numbers


def _community(text: str) -> int:
    known = WELL_KNOWN_COMMUNITIES.get(text)
    if known is not None:
        return known
    high, low = _numbers(text, COMMUNITIES, "65000:1", 0xFFFF)
    return high << 16 | low


def _large(text: str) -> tuple[int, int, int]:
    administrator, first, second = _numbers(text, "largeCommunities", "65000:1:1", 0xFFFFFFFF)
    return (administrator, first, second)
