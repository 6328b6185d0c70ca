"""One BGP instance: its peers and their sessions, from the configuration to the routes.

The context of its peers (`speaker.peer.peer_context.PeerContext`). An error in one peer ends at that
peer's fence; an instance never touches another.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Final

from speaker.api import DynamicPeerConfig, InstanceConfig, PeerConfig, UnknownName
from speaker.engine.effect_of_change import Effect, effect_of
from speaker.engine.established_peer import EstablishedPeer
from speaker.engine.instance.changed_settings import (
    apply_soft_change,
    apply_to_kept_routes,
    send_refresh_requests,
)
from speaker.engine.instance.dynamic_peers import DynamicPeers
from speaker.engine.instance.kept_routes import KeptRoutes
from speaker.engine.instance.originated_prefixes import OriginatedPrefixes
from speaker.engine.instance.outbound_updates import OutboundUpdates
from speaker.engine.instance.peers_by_address import PeersByAddress
from speaker.engine.instance.plain_updates import PlainUpdates
from speaker.engine.instance.route_exchange import RouteExchange
from speaker.engine.instance.session_setup import SessionSetup
from speaker.engine.observer import ObserverSlot
from speaker.engine.rejected_connections import RejectedConnections
from speaker.engine.selection_deferral import SelectionDeferral, initial_update_complete
from speaker.engine.sliced_work import SlicedWork
from speaker.iana import CeaseSubcode
from speaker.message import Notification
from speaker.nlri import Family
from speaker.peer.actions import Close, Write
from speaker.peer.engine_context import EngineContext
from speaker.peer.peer import CONFIGURATION_CHANGED, Peer
from speaker.peer.session import Session
from speaker.rib.policy import compile_export, compile_import

DECONFIGURED: Final = Notification.cease(CeaseSubcode.PEER_DECONFIGURED)
REJECTED: Final = Notification.cease(CeaseSubcode.CONNECTION_REJECTED)


class Instance:
    """One BGP instance."""

    def __init__(
        self,
        context: EngineContext,
        config: InstanceConfig,
        slot: ObserverSlot,
        work: SlicedWork,
        *,
        neighbors: Mapping[str, str | None],
        restarting: bool = False,
    ) -> None:
        """Start without peers.

        ``slot`` holds the engine's observer, ``work`` what it does in slices, ``neighbors`` the
        addresses that were discovered, by interface. ``restarting``: peers may keep routes from before
        a restart of this process.
        """
        self.config = config
        self.name = config.name
        self.local_asn = config.local_asn
        self.router_id = int(ipaddress.IPv4Address(config.router_id))
        self.confederation = config.confederation
        self.vrf = config.vrf
        self.peers: dict[str, Peer] = {}
        """The configured and dynamic peers, by name."""
        self.established: dict[Peer, EstablishedPeer] = {}
        """The peers with an Established session."""
        self.rejected_connections = RejectedConnections(config.name)
        self._context = context
        self._slot = slot
        self._neighbors = neighbors
        self._by_address = PeersByAddress()
        self.dynamic_peers = DynamicPeers(
            context, self, deconfigured=DECONFIGURED, rejected=REJECTED
        )
        self._deferral = SelectionDeferral(context, self.name)
        if restarting:
            self._deferral.start(config.selection_deferral_time)
        self.outbound = OutboundUpdates(context, self.name, self._deferral, slot, work)
        self.kept_routes = KeptRoutes(work)
        self._originated = OriginatedPrefixes(self.outbound.update_routes, work)
        self._session_setup = SessionSetup(
            context,
            work,
            self.outbound.loc,
            self._no_stale_routes,
            self._stale_routes_removed,
            self._routes_departed,
        )

    def reconfigure(self, config: InstanceConfig) -> None:
        """Apply a configuration of the same router; `InstanceImports` follows its imports."""
        before, self.config = self.config, config
        self.originate(before.originate, config.originate)

    def originate(self, before: Sequence[str], after: Sequence[str]) -> None:
        """Originate other prefixes than before; in slices where they are many."""
        self._originated.change(before, after)

    def next_path_id(self) -> int:
        """Return a path identifier for another source of paths (RFC 7911)."""
        return self._session_setup.next_path_id()

    # ------------------------------------------------------------------ peers

    def peer(self, name: str) -> Peer:
        """Return a peer. Raises `UnknownName`."""
        try:
            return self.peers[name]
        except KeyError:
            raise UnknownName("peer", name) from None

    def set_peer(self, config: PeerConfig | DynamicPeerConfig) -> None:
        """Create or change a peer; for the effect see `speaker.engine.effect_of_change`."""
        compile_import(config.name, config.import_)
        compile_export(config.name, config.export_policy)
        if isinstance(config, DynamicPeerConfig):
            self.dynamic_peers.set(config)
            return
        self._leave_range(config)
        peer = self.peers.get(config.name)
        if peer is None:
            self._add(Peer(self._context, self, config))
        else:
            self.change_peer(peer, config)

    def _leave_range(self, config: PeerConfig) -> None:
        """Have the dynamic peer with the address, or the name, of a configured one make way for it.

        With the same address and name it keeps its session.
        """
        named = self.peers.get(config.name)
        if config.address is not None:
            for peer in self._by_address.peers_at(config.address):
                if peer.dynamic is not None and peer is named:
                    self.dynamic_peers.release(peer, config)
                elif peer.dynamic is not None:
                    self._remove(peer)
        if named is not None and named.dynamic is not None:
            self._remove(named)

    def change_peer(self, peer: Peer, config: PeerConfig) -> None:
        """Apply another configuration to a peer (`DynamicPeersOwner`)."""
        before = peer.config
        match effect_of(before, config):
            case Effect.NONE:
                peer.config = config
            case Effect.REPLACE:
                self._remove(peer)
                # A dynamic peer connects again.
                if peer.dynamic is None:
                    successor = Peer(self._context, self, config)
                    successor.down = peer.down
                    self._add(successor)
            case Effect.RESET:
                peer.reconfigure(config)
                self._configure_kept_routes(peer, before)
            case Effect.SOFT:
                peer.config = config
                self._apply_soft_change(peer, before)

    def _add(self, peer: Peer) -> None:
        self.peers[peer.name] = peer
        if peer.config.address is None and peer.config.interface is not None:
            peer.neighbor = self._neighbors.get(peer.config.interface)
        self._by_address.add(peer)
        self._end_dynamic_beside(peer)
        peer.start()

    def _end_dynamic_beside(self, peer: Peer) -> None:
        """End the dynamic peer at an address that was discovered for a configured one."""
        if peer.dynamic is None and peer.neighbor is not None:
            for other in self._by_address.peers_at(peer.neighbor):
                if other.dynamic is not None:
                    self._remove(other)

    def neighbor_found(self, interface: str, address: str | None) -> None:
        """Apply the address that was discovered on an interface (None: none is left)."""
        for peer in list(self.peers.values()):
            config = peer.config
            if (
                config.address is None
                and config.interface == interface
                and peer.neighbor != address
            ):
                self._by_address.discard(peer)
                peer.neighbor_changed(address)
                self._by_address.add(peer)
                self._end_dynamic_beside(peer)

    def device_found(self, device: str) -> None:
        """Try the peers again whose connections are bound to a device that exists now."""
        for peer in list(self.peers.values()):
            if (peer.config.interface or self.vrf) == device:
                peer.retry()

    def _remove(self, peer: Peer) -> None:
        self.end_peer(peer, DECONFIGURED)

    def end_peer(self, peer: Peer, cease: Notification) -> None:
        """Remove a peer and end its session (`DynamicPeersOwner`)."""
        self._discard(peer)
        peer.stop(cease)

    def _discard(self, peer: Peer) -> None:
        del self.peers[peer.name]
        if peer.dynamic is not None and peer.address is not None and not peer.was_established:
            self.dynamic_peers.sources.failed(peer.address, self._context.now)
        self._remove_kept_routes(peer)
        self._by_address.discard(peer)

    def remove_peer(self, name: str) -> None:
        """Remove a peer, or a range. Where a range has the peer's address, it is a dynamic one then."""
        self.dynamic_peers.remove(name)
        peer = self.peers.get(name)
        if peer is not None and (
            peer.dynamic is not None or not self.dynamic_peers.take_over(peer)
        ):
            self._remove(peer)
        self._end_deferral_if_complete()

    def shut_down_peer(self, name: str, communication: str) -> None:
        """Administratively shut a peer down (RFC 9003). Raises `UnknownName`."""
        peer = self.peer(name)
        peer.shut_down(communication)
        self._remove_kept_routes(peer)
        self._end_deferral_if_complete()

    def path_down(self, name: str, reason: str, *, independent: bool) -> None:
        """End the session of a peer that BFD has lost, and the wait for a restarting peer.

        RFC 5882 sections 4.2 and 4.3. Raises `UnknownName`.
        """
        peer = self.peer(name)
        peer.path_down(reason, independent=independent)
        if independent:
            self._remove_kept_routes(peer)
            self._end_deferral_if_complete()

    def dynamic(self) -> Sequence[DynamicPeerConfig]:
        """Return the dynamic peer configurations."""
        return list(self.dynamic_peers.ranges.values())

    def _apply_soft_change(self, peer: Peer, before: PeerConfig) -> None:
        """Apply a change that needs no new session; only differences are sent."""
        if before.maximum_prefixes != peer.config.maximum_prefixes:
            peer.prefix_limit_changed()
        up = peer in self.established
        established = self.established.get(peer) or self.kept_routes.peers.get(peer)
        if established is not None:
            apply_soft_change(self._context, self.outbound, established, before, up=up)

    def _configure_kept_routes(self, peer: Peer, before: PeerConfig) -> None:
        """Apply a changed configuration to the routes that outlive the session (RFC 4724)."""
        kept = self.kept_routes.peers.get(peer)
        if kept is not None and not apply_to_kept_routes(self.outbound, kept, before):
            self._remove_kept_routes(peer)

    def _remove_kept_routes(self, peer: Peer) -> None:
        """Remove the routes of a peer without a session."""
        if self.kept_routes.remove(peer) and peer.dynamic is not None:
            peer.remove_if_idle()

    def inherit(self, before: Instance) -> None:
        """Take over the configuration and local routes of an instance with the same name."""
        self.outbound.inherit(before.outbound)
        self._originated = before._originated.moved(self.outbound.update_routes)
        self.originate(before.config.originate, self.config.originate)
        self.rejected_connections = before.rejected_connections
        self.dynamic_peers.inherit(before.dynamic_peers)
        for peer in before.peers.values():
            if peer.dynamic is None:
                successor = Peer(self._context, self, peer.config)
                successor.session_end.failed(CONFIGURATION_CHANGED)
                successor.down = peer.down
                self._add(successor)

    # ------------------------------------------------------------ connections

    def accept(
        self,
        connection: int,
        local: tuple[str, int],
        remote: tuple[str, int],
        interface_address: str | None = None,
    ) -> bool:
        """Take over an incoming connection; False: the caller aborts it."""
        peer = self._by_address.peer_at(remote[0])
        if peer is None:
            config = self.dynamic_peers.range_of(remote[0])
            if config is None:
                self.reject(remote[0], "no peer has this address")
                return False
            if remote[0] in self.peers:
                self.reject(remote[0], "a peer with another address has this name")
                return False
            refusal = self.dynamic_peers.admit(config, remote[0])
            if refusal:
                # With a Cease, so that the peer's operator does not suspect a firewall (RFC 4486).
                self.reject(remote[0], refusal)
                self._context.out.append(Write(connection, (REJECTED.encode(),)))
                self._context.out.append(Close(connection))
                return True
            peer = Peer(self._context, self, config.for_address(remote[0]), dynamic=config.name)
            self._add(peer)
        return peer.connections.accepted(connection, local, remote, interface_address)

    def reject(self, address: str, reason: str) -> None:
        """Count and report a rejected connection (`DynamicPeersOwner`)."""
        event = self.rejected_connections.add(address, reason, self._context.now)
        if event is not None:
            self._context.report(event)

    def remove_dynamic_peer(self, peer: Peer) -> None:
        """Remove a dynamic peer whose session has ended (`PeerContext`)."""
        if self.peers.get(peer.name) is peer:
            self._discard(peer)

    def stop(self, cease: Notification, *, keep_routes: bool = False) -> None:
        """End all sessions.

        With ``keep_routes`` peers with graceful restart get no NOTIFICATION, so that they keep the
        routes (RFC 4724 section 4).
        """
        self._deferral.end()
        self.kept_routes.remove_all()
        for peer in list(self.peers.values()):
            graceful = keep_routes and peer.config.graceful_restart is not None
            peer.stop(None if graceful else cease)

    # --------------------------------------------------------------- sessions

    def session_up(self, peer: Peer, session: Session) -> None:
        """Start the exchange of routes (`PeerContext`)."""
        before, departed = self.kept_routes.resume(peer)
        established = self._session_setup.established(peer, session, before, departed)
        self.established[peer] = established
        if peer.dynamic is not None and peer.address is not None:
            self.dynamic_peers.sources.established(peer.address)
        session.updates.start(
            PlainUpdates(self._context, established, self._slot),
            RouteExchange(
                self._context,
                established,
                self.outbound,
                self._slot,
                self._end_deferral_if_complete,
            ),
        )
        self.outbound.join(established)
        if established.adj_in.reapplying:
            self.outbound.policy_changed(established)
        if self._slot.observer is not None:
            self._slot.observer.peer_up(established)
        self._end_deferral_if_complete()

    def session_down(self, peer: Peer, *, restart: bool) -> int:
        """Remove the session's routes, or keep them as stale; returns their number (`PeerContext`)."""
        established = self.established.pop(peer, None)
        if established is None:
            return 0
        routes = sum(map(established.adj_in.received, established.adj_in.families))
        if self._slot.observer is not None:
            self._slot.observer.peer_down(established)
        self.outbound.leave(established)
        self.kept_routes.session_lost(established, restart=restart)
        self._follow_neighbor(peer)
        return routes

    def advertised(self, peer: Peer) -> tuple[tuple[Family, int], ...]:
        """Return the number of prefixes that the peer is sent, by family (`PeerContext`)."""
        established = self.established.get(peer)
        group = None if established is None else established.group
        if established is None or group is None:
            return ()
        families = group.rules.families
        return tuple((family, group.advertised_count(family, established)) for family in families)

    def _follow_neighbor(self, peer: Peer) -> None:
        """Apply, after a session, the address that was discovered last on the interface."""
        interface = peer.config.interface
        if peer.config.address is not None or interface is None or peer.name not in self.peers:
            return
        address = self._neighbors.get(interface)
        if address is not None and address != peer.neighbor:
            self._by_address.discard(peer)
            peer.neighbor = address
            self._by_address.add(peer)
            self._end_dynamic_beside(peer)

    def keeps_routes(self, peer: Peer) -> bool:
        """Return whether routes of the peer are kept without a session (`PeerContext`)."""
        return peer in self.kept_routes.peers

    def _stale_routes_removed(self, peer: Peer, family: Family, keys: Sequence[bytes]) -> None:
        established = self.established.get(peer)
        if self._slot.observer is not None and established is not None:
            self._slot.observer.routes_changed(established, family, keys)

    def _routes_departed(self) -> None:
        """Release what refers to sessions without routes."""
        self.kept_routes.release()
        self.outbound.forget_received()

    def _no_stale_routes(self, peer: Peer) -> None:
        self.kept_routes.remove(peer)
        if peer.dynamic is not None and peer not in self.established:
            peer.remove_if_idle()

    # ---------------------------------------------------------------- deferral

    @property
    def restarting(self) -> bool:
        """Whether selection is deferred after a restart (RFC 4724 section 4.1; `PeerContext`)."""
        return self._deferral.active

    def _end_deferral_if_complete(self) -> None:
        if self._deferral.active and all(
            (established := self.established.get(peer)) is not None
            and initial_update_complete(established.negotiated, established.inbound.end_of_rib)
            for peer in self.peers.values()
            if peer.config.graceful_restart is not None and peer.may_come_up
        ):
            self._deferral.end()

    # ----------------------------------------------------------------- refresh

    def request_refresh(self, name: str, families: Sequence[Family]) -> None:
        """Send a peer a ROUTE-REFRESH for families, or for all (RFC 2918). Raises `UnknownName`.

        None is sent without an Established session, or without the capability.
        """
        established = self.established.get(self.peer(name))
        if established is not None:
            send_refresh_requests(established, families)

    def advertise_again(self, name: str) -> None:
        """Send a peer all routes again, if its session is Established. Raises `UnknownName`."""
        established = self.established.get(self.peer(name))
        if established is not None:
            for family in established.negotiated.families:
                self.outbound.answer_route_refresh(established, family)
