"""Sessions and routes of a speaker for its local API, and the paths that list them.

Knows the speaker alone: an agent adds what its intent has of them (`cells.serve.agent_routing`), a
router serves them as they are. Reads only.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from cells.api.model import PeerCountItem, RouteItem
from cells.api.resource import ApiResource, BadRequestError, NotFoundError, Query
from cells.serve.items import peer_count_items, peer_item, received_item, route_item
from speaker.api import (
    PeerStatus,
    PrefixFilter,
    RouteView,
    SpeakerPort,
    UnknownName,
    parse_prefix,
)
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family

TABLES: Final = ("available", "advertised", "received")

Chosen = Callable[[str, str | None, str | None], bool]
"""Whether a peer is the wanted one, by its instance, name and address."""


def peers_resource(routing: SpeakerRouting, **more: Any) -> ApiResource:  # noqa: ANN401
    """Return the path of the sessions; ``more`` are further fields of the resource."""
    return ApiResource(
        path="/v1/peers",
        kind="PeerList",
        parameters=("peer", "instance"),
        read=lambda query: routing.peers(peer=query.get("peer"), instance=query.get("instance")),
        **more,
    )


def peer_counts_resource(routing: SpeakerRouting) -> ApiResource:
    """Return the path of the counts of the sessions, which are read often."""
    return ApiResource(
        path="/v1/peer-counts", kind="PeerCountList", read=lambda _: routing.peer_counts()
    )


def routes_resource(routing: SpeakerRouting) -> ApiResource:
    """Return the path of the routes."""

    def read(query: Query) -> Iterator[Sequence[RouteItem]]:
        table = query.get("table", "advertised")
        if table not in TABLES:
            raise BadRequestError(f"table is none of {', '.join(TABLES)}: {table}")
        return routing.routes(
            table,
            family=query.get("family"),
            peer=query.get("peer"),
            instance=query.get("instance"),
            prefix=query.get("prefix"),
        )

    return ApiResource(
        path="/v1/routes",
        kind="RouteList",
        parameters=("table", "family", "peer", "instance", "prefix"),
        limited=True,
        read=read,
    )


class SpeakerRouting:
    """The sessions and routes of a program, read in one turn of the loop."""

    def __init__(
        self, speaker: SpeakerPort, bfd_state: Callable[[PeerStatus], str | None] = lambda _: None
    ) -> None:
        """``bfd_state``: of the BFD session of a peer, where it has one."""
        self._speaker = speaker
        self._bfd_state = bfd_state

    @property
    def node(self) -> str:
        """The name that each item has: the router ID. The speaker is asked for it."""
        return next((status.router_id for status in self._speaker.instances()), "")

    def peers(self, *, peer: str | None, instance: str | None) -> list[dict[str, Any]]:
        """Return the sessions, by instance and name; ``peer`` is a name or an address."""
        node = self.node
        return [
            peer_item(node, status, self._bfd_state(status))
            for status in self.sessions(peer, instance)
        ]

    def peer_counts(self) -> list[PeerCountItem]:
        """Return the counts of all sessions, by instance and name."""
        return peer_count_items(self.node, self._speaker.peer_counts())

    def sessions(self, peer: str | None, instance: str | None) -> list[PeerStatus]:
        """Return the status of the sessions that match."""
        chosen = self.chosen(peer, instance)
        return [
            status
            for status in self._speaker.peers()
            if chosen(status.instance, status.name, status.address)
        ]

    def names(self) -> list[str]:
        """Return the names of all peers."""
        return [status.name for status in self._speaker.peers()]

    def chosen(self, peer: str | None, instance: str | None) -> Chosen:
        """Return whether a peer is the wanted one; None is any."""
        names = (peer, None if peer is None else _address(peer))

        def chosen(of: str, name: str | None, address: str | None) -> bool:
            return instance in (None, of) and (peer is None or name == peer or address in names)

        return chosen

    def routes(
        self,
        table: str,
        *,
        family: str | None,
        peer: str | None,
        instance: str | None,
        prefix: str | None,
    ) -> Iterator[Sequence[RouteItem]]:
        """Yield the routes of a table in slices, by peer (or instance) and family.

        ``prefix`` is a prefix, or an address for the longest match of each table. Raises
        `NotFoundError`, and `BadRequestError` for a peer of several instances or a ``prefix`` that
        is neither, before the first slice.
        """
        families, wanted = selected_families(family, prefix)
        instances = [status.name for status in self._speaker.instances()]
        if instance is not None and instance not in instances:
            raise NotFoundError.of_name("instance", instance, instances)
        peers = self.sessions(peer, instance)
        if peer is not None and not peers:
            names = [status.name for status in self.sessions(None, instance)]
            raise NotFoundError.of_name("peer", peer, names, instance)
        among = sorted({status.instance for status in peers})
        if peer is not None and len(among) > 1:
            raise BadRequestError(
                f"{peer} is a peer of the instances {', '.join(among)}: add --instance"
            )
        if table == "available":
            of = instances if instance is None else [instance]
            name = None
            if peer is not None:
                of, name = among, peers[0].name
            return self._available(of, families, name, wanted)
        return self._by_peer(table, peers, families, wanted)

    def _available(
        self,
        instances: Sequence[str],
        families: Sequence[Family],
        peer: str | None,
        wanted: PrefixFilter | None,
    ) -> Iterator[Sequence[RouteItem]]:
        prefixes = None if wanted is None else wanted.prefixes
        node = self.node
        for instance in instances:
            for family in families:
                try:
                    routes = self._speaker.routes_available(instance, family, prefixes, peer=peer)
                except UnknownName:  # removed since the request
                    continue
                slices = routes.slices if wanted is None else wanted.first_match(routes.slices)
                for views in slices:
                    yield [route_item(node, instance, view) for view in views]

    def _by_peer(
        self,
        table: str,
        peers: Sequence[PeerStatus],
        families: Sequence[Family],
        wanted: PrefixFilter | None,
    ) -> Iterator[Sequence[RouteItem]]:
        received = table == "received"
        read = self._speaker.routes_received if received else self._speaker.routes_advertised
        prefixes = None if wanted is None else wanted.prefixes
        for status in peers:
            items = self.received_items(status) if received else self.advertised_items(status)
            for family in families:
                try:
                    routes = read(status.instance, status.name, family, prefixes)
                except UnknownName:  # removed since the request
                    continue
                slices = routes.slices if wanted is None else wanted.first_match(routes.slices)
                yield from map(items, slices)

    def received_items(
        self, status: PeerStatus
    ) -> Callable[[Sequence[RouteView]], list[RouteItem]]:
        """Return the translation of routes that a peer has advertised."""
        node = self.node
        return lambda views: [received_item(node, status.instance, view) for view in views]

    def advertised_items(
        self, status: PeerStatus
    ) -> Callable[[Sequence[RouteView]], list[RouteItem]]:
        """Return the translation of routes that are advertised to a peer."""
        node = self.node
        return lambda views: [route_item(node, status.instance, view) for view in views]


def selected_families(
    name: str | None, prefix: str | None
) -> tuple[list[Family], PrefixFilter | None]:
    """Return the families that are selected, and the prefixes of the only one.

    Raises `NotFoundError` for an unknown family, `BadRequestError` for an invalid prefix.
    """
    try:
        family = None if name is None else Family.parse(name)
    except ValueError:
        raise NotFoundError.of_name("family", name or "", ()) from None
    if prefix is None:
        return [IPV4_UNICAST, IPV6_UNICAST] if family is None else [family], None
    try:
        wanted = parse_prefix(prefix)
    except ValueError as error:
        raise BadRequestError(f"prefix: {error}") from None
    if family not in (None, wanted.family):
        raise BadRequestError(f"prefix: {prefix} is not of the family {name}")
    return [wanted.family], wanted


def _address(text: str) -> str:
    """Return an address in its usual form; another text unchanged."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return text
