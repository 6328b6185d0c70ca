"""The speaker as its users see it: the methods for reconcilers, cells and programs.

A `typing.Protocol`, so that tests can pass a stand-in; `speaker.server.Speaker` is the implementation
that speaks BGP. All methods are quick, never block, and belong to the event loop's thread.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from speaker.api.best_paths import BestPathSource
from speaker.api.config import DynamicPeerConfig, InstanceConfig, PeerConfig, RouteAttributes
from speaker.api.routes import Routes
from speaker.api.status import InstanceStatus, PeerCounts, PeerStatus
from speaker.nlri import Family

RouteChanges = Mapping[Family, Mapping[bytes, RouteAttributes | None]]
"""Per family: the prefix as on the wire -> its attributes; None withdraws it."""


UNREACHABLE: Final = 1 << 32
"""The metric of a next hop to which no route leads."""


class UnknownName(LookupError):  # noqa: N818  named after the fault
    """An unknown instance or peer; names it."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"there is no {kind} {name!r}")
        self.kind = kind
        self.name = name


class PathDown(msgspec.Struct, frozen=True):
    """The path to a peer is down, as BFD has found (RFC 5882 section 4.2)."""

    instance: str
    peer: str
    reason: str = ""
    """BFD's diagnostic, as text."""
    independent: bool = True
    """The peer's BFD does not depend on its control plane (the C bit): the peer does not restart."""


class SpeakerPort(BestPathSource, Protocol):
    """Instances, peers and route-set changes in; sessions, routes and streams of best paths out."""

    def set_instance(self, config: InstanceConfig) -> None:
        """Create an instance, or recreate it where its identity changed; otherwise no effect."""

    def remove_instance(self, name: str) -> None:
        """Remove an instance with its sessions (Cease, peer de-configured) and route sets."""

    def set_peer(self, instance: str, config: PeerConfig | DynamicPeerConfig) -> None:
        """Create or change a peer; the effect on its session depends on the changed fields.

        Another identity makes another peer (removed and added). For another route set, export or
        import only the difference is sent or applied. The connect-retry time has no effect on a
        running session. Any other change resets it, with the reason "configuration changed".
        Raises `UnknownName` for the instance.
        """

    def remove_peer(self, instance: str, name: str) -> None:
        """Remove a peer (Cease, peer de-configured)."""

    def paths_down(self, paths: Sequence[PathDown]) -> None:
        """End the Established sessions whose paths BFD has found down (RFC 5882, RFC 9384).

        All NOTIFICATIONs are sent before the first event is reported. A peer with graceful restart
        and without `PathDown.independent` may be restarting, and its routes are kept. Unknown peers
        are ignored.
        """

    def reset_peer(self, instance: str, peer: str, communication: str = "") -> None:
        """End a session (Cease, administrative reset) and start again at once (RFC 9003).

        Also ends the pause of a peer beyond its prefix limit. Raises `UnknownName` for the instance.
        """

    def request_refresh(self, instance: str, peer: str, families: Sequence[Family] = ()) -> None:
        """Send a peer a ROUTE-REFRESH, for all families where none is named (RFC 2918).

        None is sent without an Established session, or without the capability. Raises `UnknownName`
        for the instance.
        """

    def advertise_again(self, instance: str, peer: str) -> None:
        """Send a peer all routes again, if its session is Established.

        Raises `UnknownName` for the instance.
        """

    def update_routes(self, instance: str, route_set: str, changes: RouteChanges) -> None:
        """Change a route set, created on first use.

        Unchanged routes cost nothing on the wire. Every peer of the set is sent the changes once per
        turn of the event loop. Raises `UnknownName` for the instance.
        """

    def remove_route_set(self, instance: str, route_set: str) -> None:
        """Remove a route set; its routes are withdrawn from its peers."""

    def update_local(self, instance: str, changes: RouteChanges) -> None:
        """Change the local routes of the instance's Loc-RIB (for export all and local)."""

    def set_next_hop_metrics(self, instance: str, metrics: Mapping[str, int]) -> None:
        """Set the IGP metrics of next hops, by address as text, in place of the former ones.

        For route selection (RFC 4271 section 9.1.2.2 e); the lower one is preferred, and a path whose
        next hop is `UNREACHABLE` is selected only where all are. Beside any metric a next hop without
        one has 0; with none, as at the beginning, all are equal. Raises `UnknownName`.
        """

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
        """Return the status of all peers, by instance and name."""

    def peer_slices(self) -> Iterator[Sequence[PeerStatus]]:
        """Iterate over the same in slices, between which the speaker may go on.

        A peer that is removed meanwhile is omitted.
        """

    def peer_counts(self) -> Sequence[PeerCounts]:
        """Return the counts of all peers, by instance and name."""

    def instances(self) -> Sequence[InstanceStatus]:
        """Return the status of all instances, by name."""

    def routes_available(
        self,
        instance: str,
        family: Family,
        prefixes: Iterable[bytes] | None = None,
        *,
        peer: str | None = None,
    ) -> Routes:
        """Return Loc-RIB and route sets: every path, with the reason why it is not the best.

        ``prefixes`` limits this view and the two below to some prefixes in wire form, in their
        order, at the cost of a lookup each; ``peer`` to the paths from one peer. Raises
        `UnknownName`.
        """

    def routes_advertised(
        self,
        instance: str,
        peer: str | None,
        family: Family,
        prefixes: Iterable[bytes] | None = None,
    ) -> Routes:
        """Return the Adj-RIB-Out of one peer, or of all. Raises `UnknownName`."""

    def routes_received(
        self,
        instance: str,
        peer: str | None,
        family: Family,
        prefixes: Iterable[bytes] | None = None,
    ) -> Routes:
        """Return the Adj-RIB-In of one peer, or of all, with why a route is not used.

        Raises `UnknownName`.
        """
