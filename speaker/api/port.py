"""The speaker as its users see it: the methods that are called from reconcilers, cells and programs.

A `typing.Protocol`, so that their tests can hand in a recording stand-in;
`speaker.server.Speaker` is the one that speaks BGP. All methods are quick, never block, and belong
to the event loop's thread.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

from speaker.api.config import DynamicPeerConfig, InstanceConfig, PeerConfig, RouteAttributes
from speaker.api.status import InstanceStatus, PeerStatus, RouteView
from speaker.nlri import Family

RouteChanges = Mapping[Family, Mapping[bytes, RouteAttributes | None]]
"""Per family: the prefix as its wire bytes -> what it carries; None withdraws it."""


class UnknownName(LookupError):  # noqa: N818  the name says what is wrong with what
    """An instance or a peer that is not there; names it."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"there is no {kind} {name!r}")
        self.kind = kind
        self.name = name


class SpeakerPort(Protocol):
    """Instances, peers and route-set changes in; sessions and routes out."""

    def set_instance(self, config: InstanceConfig) -> None:
        """Create an instance, or recreate it where its identity changed; else nothing happens."""

    def remove_instance(self, name: str) -> None:
        """Take an instance away with its sessions (Cease, peer de-configured) and route sets."""

    def set_peer(self, instance: str, config: PeerConfig | DynamicPeerConfig) -> None:
        """Create or change a peer; what happens to its session depends on what changed.

        Another identity is another peer (removed and added). Another route set, export or import
        rule is soft: only differences are told. The connect-retry time changes nothing that runs.
        Anything else resets the session, with the reason "configuration changed".
        Raises `UnknownName` for the instance.
        """

    def remove_peer(self, instance: str, name: str) -> None:
        """Take a peer away (Cease, peer de-configured)."""

    def update_routes(self, instance: str, route_set: str, changes: RouteChanges) -> None:
        """Change a route set, made when it is new.

        What is already so costs nothing on the wire. Every peer of the set is told once per turn
        of the event loop. Raises `UnknownName` for the instance.
        """

    def remove_route_set(self, instance: str, route_set: str) -> None:
        """Forget a route set; its peers are told that its routes are gone."""

    def update_local(self, instance: str, changes: RouteChanges) -> None:
        """Change the routes that the instance itself puts into its Loc-RIB (export all, local)."""

    def instance_configs(self) -> Mapping[str, InstanceConfig]:
        """Return the configured instances by name; a new mapping."""

    def peer_configs(self, instance: str) -> Mapping[str, PeerConfig | DynamicPeerConfig]:
        """Return the configured peers of an instance by name; a new mapping.

        Sessions that a dynamic peer accepted are not among them. Empty without the instance.
        """

    def instance_config(self, name: str) -> InstanceConfig | None:
        """Return one instance's configuration; None without the instance."""

    def peer_config(self, instance: str, name: str) -> PeerConfig | DynamicPeerConfig | None:
        """Return one peer's configuration; None without the peer or the instance."""

    def route_sets(self, instance: str) -> Sequence[str]:
        """Return the names of an instance's route sets; none without the instance."""

    def route_set_prefixes(
        self, instance: str, route_set: str
    ) -> Mapping[Family, Sequence[bytes]] | None:
        """Return the prefixes of a route set at this moment; None without the set.

        One list of references per family: half a millisecond for 100,000 prefixes.
        """

    def routes_of_set(
        self, instance: str, route_set: str, prefixes: Mapping[Family, Collection[bytes]]
    ) -> RouteChanges | None:
        """Return the attributes that a route set holds for these prefixes.

        Every prefix has an entry; the value is None where the set has no route. Attributes come as
        the speaker holds them: communities without repetition, addresses in canonical text. Costs
        a lookup per prefix, whatever the size of the set. None without the set.
        """

    def peers(self) -> Sequence[PeerStatus]:
        """All sessions, by instance and name."""

    def instances(self) -> Sequence[InstanceStatus]:
        """All instances, by name."""

    def routes_available(self, instance: str, family: Family) -> Iterator[RouteView]:
        """The Loc-RIB and the route sets: every path, with why it is not best."""

    def routes_advertised(
        self, instance: str, peer: str | None, family: Family
    ) -> Iterator[RouteView]:
        """The Adj-RIB-Out of one peer, or of all."""

    def routes_received(
        self, instance: str, peer: str | None, family: Family
    ) -> Iterator[RouteView]:
        """The Adj-RIB-In of one peer, or of all, with why a route is not used."""
