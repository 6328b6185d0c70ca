"""One BGP router: its peers and their sessions, from their configuration to their routes.

The host of its peers (`speaker.peer.peer.PeerContext`). Errors of one peer end at that peer's fence; an
instance never touches another.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from speaker.api import (
    DynamicPeerConfig,
    InstanceConfig,
    PeerConfig,
    PrefixLimit,
    SessionError,
    UnknownName,
)
from speaker.engine.effect_of_change import Effect, effect_of
from speaker.engine.instance.established_peer import EstablishedPeer
from speaker.engine.instance.outbound_updates import OutboundUpdates
from speaker.engine.instance.peers_by_address import PeersByAddress
from speaker.engine.instance.session_setup import SessionSetup
from speaker.engine.observer import Observer
from speaker.engine.prefix_limits import prefix_limits_of
from speaker.engine.rejected_connections import RejectedConnections
from speaker.engine.selection_deferral import SelectionDeferral, initial_update_complete
from speaker.iana import CeaseSubcode, ErrorCode
from speaker.message import Notification, RefreshKind, RouteRefresh
from speaker.nlri import Family
from speaker.peer.actions import Close, Write
from speaker.peer.engine_context import EngineContext
from speaker.peer.peer import SHOWN, SHUTDOWN, Peer
from speaker.peer.session import Session
from speaker.rib.policy import compile_export, compile_import

DECONFIGURED: Final = Notification.cease(CeaseSubcode.PEER_DECONFIGURED)
CONFIGURATION: Final = Notification.cease(CeaseSubcode.OTHER_CONFIGURATION_CHANGE)
REJECTED: Final = Notification.cease(CeaseSubcode.CONNECTION_REJECTED)
CHANGED: Final = "configuration changed"


class Instance:
    """One router."""

    def __init__(
        self,
        context: EngineContext,
        config: InstanceConfig,
        *,
        neighbors: Mapping[str, str | None],
        restarting: bool = False,
    ) -> None:
        """Begin without peers; ``neighbors`` are the engine's, by interface."""
        self.context = context
        self.config = config
        self.name = config.name
        self.local_asn = config.local_asn
        self.router_id = int(ipaddress.IPv4Address(config.router_id))
        self.confederation = config.confederation
        self.vrf = config.vrf
        self.peers: dict[str, Peer] = {}
        self.members: dict[Peer, EstablishedPeer] = {}
        self.restarting_peers: dict[Peer, EstablishedPeer] = {}
        """Peers that restart: what they said is kept meanwhile."""
        self.outbound = OutboundUpdates(self)
        self.rejected_connections = RejectedConnections(config.name)
        """Connections from addresses that are nobody's, and of neighbours too many."""
        self.observer: Observer | None = None
        """Who is told of everything that happens to sessions and routes, where somebody is."""
        self._by_address = PeersByAddress()
        self._neighbors = neighbors
        self._session_setup = SessionSetup(
            context, self.outbound.loc, self._stale_over, self._swept
        )
        self._deferral: SelectionDeferral | None = None
        if restarting:
            seconds = config.selection_deferral_time
            self._deferral = SelectionDeferral(context, self.name, seconds, self._select)

    def same_router(self, config: InstanceConfig) -> bool:
        """Tell whether another configuration leaves all sessions as they are."""
        deferral = config.selection_deferral_time
        return replace(self.config, selection_deferral_time=deferral) == config

    # ------------------------------------------------------------------ peers

    def peer(self, name: str) -> Peer:
        """Return a peer. Raises `UnknownName`."""
        try:
            return self.peers[name]
        except KeyError:
            raise UnknownName("peer", name) from None

    def set_peer(self, config: PeerConfig | DynamicPeerConfig) -> None:
        """Create or change a peer; see `speaker.engine.effect_of_change`."""
        if isinstance(config, DynamicPeerConfig):
            self._set_dynamic(config)
            return
        compile_import(config.name, config.import_)
        compile_export(config.name, config.export_policy)
        peer = self.peers.get(config.name)
        if peer is None:
            self._add(Peer(self.context, self, config))
            return
        match effect_of(peer.config, config):
            case Effect.NONE:
                peer.config = config
            case Effect.REPLACE:
                self._remove(peer, DECONFIGURED)
                self._add(Peer(self.context, self, config))
            case Effect.RESET:
                if peer.config.disabled_reason is None and config.disabled_reason is not None:
                    peer.config = config
                    peer.disable()
                else:
                    peer.config = config
                    peer.reset(CONFIGURATION, CHANGED)
            case Effect.SOFT:
                before = peer.config
                peer.config = config
                self._soften(peer, before)

    def _add(self, peer: Peer) -> None:
        self.peers[peer.name] = peer
        if peer.config.address is None and peer.config.interface is not None:
            peer.neighbor = self._neighbors.get(peer.config.interface)
        self._by_address.add(peer)
        peer.start()

    def neighbor_found(self, interface: str, address: str | None) -> None:
        """Go on with who is at the other end of an interface now."""
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

    def _remove(self, peer: Peer, cease: Notification) -> None:
        self._forget(peer)
        peer.stop(cease)

    def _forget(self, peer: Peer) -> None:
        del self.peers[peer.name]
        kept = self.restarting_peers.pop(peer, None)
        if kept is not None:
            kept.stale.clear()
        self._by_address.discard(peer)

    def remove_peer(self, name: str) -> None:
        """Take a peer away; dynamic ones with all that came in by them."""
        if self._by_address.dynamic.pop(name, None) is not None:
            for peer in [p for p in self.peers.values() if p.dynamic == name]:
                self._remove(peer, DECONFIGURED)
        peer_ = self.peers.get(name)
        if peer_ is not None:
            self._remove(peer_, DECONFIGURED)
        self._select_if_all_is_said()

    def shut_down_peer(self, name: str, communication: str) -> None:
        """Keep a peer down by hand. Raises `UnknownName`."""
        self.peer(name).shut_down(communication)
        self._select_if_all_is_said()

    def _set_dynamic(self, config: DynamicPeerConfig) -> None:
        compile_import(config.name, config.import_)
        compile_export(config.name, config.export_policy)
        before = self._by_address.dynamic.get(config.name)
        self._by_address.dynamic[config.name] = config
        if before is None or before == config:
            return
        network = ipaddress.ip_network(config.prefix)
        for peer in [p for p in self.peers.values() if p.dynamic == config.name]:
            address = peer.config.address
            if address is None or ipaddress.ip_address(address) not in network:
                self._remove(peer, DECONFIGURED)
            else:
                self.set_peer(config.for_address(address))

    def dynamic(self) -> Sequence[DynamicPeerConfig]:
        """Return the dynamic peer configurations."""
        return list(self._by_address.dynamic.values())

    def _soften(self, peer: Peer, before: PeerConfig) -> None:
        """Apply what can be changed without a new session, telling only differences."""
        member = self.members.get(peer) or self.restarting_peers.get(peer)
        if member is None:
            return
        if before.import_ != peer.config.import_:
            member.adj_in.set_policy(compile_import(peer.name, peer.config.import_))
            if self.observer is not None and peer in self.members:
                self.observer.policy_changed(member)
        if before.maximum_prefixes != peer.config.maximum_prefixes:
            member.limits = prefix_limits_of(peer.config, member.adj_in.families)
        self.outbound.move(member)
        if peer in self.members:
            self._enforce(member)

    def inherit(self, before: Instance) -> None:
        """Take over what a router of the same name was configured with."""
        self.outbound.inherit(before.outbound)
        self.rejected_connections = before.rejected_connections
        self._by_address.dynamic = before._by_address.dynamic
        for peer in before.peers.values():
            if peer.dynamic is None:
                successor = Peer(self.context, self, peer.config)
                successor.session_end.failed(CHANGED)
                self._add(successor)

    # ------------------------------------------------------------ connections

    def accept(self, connection: int, local: tuple[str, int], remote: tuple[str, int]) -> bool:
        """Take a connection; False refuses it without a word."""
        peer = self._by_address.peer_at(remote[0])
        if peer is None:
            config = self._by_address.dynamic_at(remote[0])
            if config is None:
                self._refuse(remote[0], "nobody's address")
                return False
            if self._is_full(config):
                # Said, so that the other side's people do not look for a firewall (RFC 4486).
                self._refuse(remote[0], f"{config.name} is at its limit of {config.limit}")
                self.context.out.append(Write(connection, (REJECTED.encode(),)))
                self.context.out.append(Close(connection))
                return True
            peer = Peer(self.context, self, config.for_address(remote[0]), dynamic=config.name)
            self._add(peer)
        return peer.connections.accepted(connection, local, remote)

    def _refuse(self, address: str, reason: str) -> None:
        event = self.rejected_connections.add(address, reason, self.context.now)
        if event is not None:
            self.context.report(event)

    def _is_full(self, config: DynamicPeerConfig) -> bool:
        return sum(peer.dynamic == config.name for peer in self.peers.values()) >= config.limit

    def gone(self, peer: Peer) -> None:
        """Forget a dynamic peer whose session has ended (`PeerContext`)."""
        if self.peers.get(peer.name) is peer:
            self._forget(peer)

    def stop(self, cease: Notification = SHUTDOWN, *, keep_routes: bool = False) -> None:
        """End all sessions; with ``keep_routes`` those with graceful restart without a word."""
        self._select()
        for kept in self.restarting_peers.values():
            kept.stale.clear()
        self.restarting_peers.clear()
        for peer in list(self.peers.values()):
            silent = keep_routes and peer.config.graceful_restart is not None
            peer.stop(cease, silent=silent)

    # --------------------------------------------------------------- sessions

    def session_up(self, peer: Peer, session: Session) -> None:
        """Begin to exchange routes (`PeerContext`)."""
        member = self._session_setup.member(peer, session, self.restarting_peers.pop(peer, None))
        self.members[peer] = member
        self.outbound.join(member)
        if self.observer is not None:
            self.observer.peer_up(member)
        self._select_if_all_is_said()

    def session_down(self, peer: Peer, *, restart: bool) -> None:
        """Forget a session's routes, or keep them for a peer that restarts (`PeerContext`)."""
        member = self.members.pop(peer, None)
        if member is None:
            return
        if self.observer is not None:
            self.observer.peer_down(member)
        self.outbound.leave(member)
        if restart and member.stale.session_lost(member.negotiated):
            self.restarting_peers[peer] = member
        else:
            member.stale.clear()
        self._follow_neighbor(peer)

    def _follow_neighbor(self, peer: Peer) -> None:
        """Go on, after a session, with who was heard last at the interface."""
        interface = peer.config.interface
        if peer.config.address is not None or interface is None or peer.name not in self.peers:
            return
        heard = self._neighbors.get(interface)
        if heard is not None and heard != peer.neighbor:
            self._by_address.discard(peer)
            peer.neighbor = heard
            self._by_address.add(peer)

    def keeps(self, peer: Peer) -> bool:
        """Tell whether routes of a peer without session are kept (`PeerContext`)."""
        return peer in self.restarting_peers

    def _swept(self, peer: Peer, family: Family, keys: Sequence[bytes]) -> None:
        member = self.members.get(peer)
        if self.observer is not None and member is not None:
            self.observer.routes_changed(member, family, keys)

    def _stale_over(self, peer: Peer) -> None:
        self.restarting_peers.pop(peer, None)
        if peer.dynamic is not None and peer not in self.members:
            peer.given_up()

    # ---------------------------------------------------------------- deferral

    @property
    def restarting(self) -> bool:
        """Whether selection is deferred after a restart (RFC 4724 section 4.1; `PeerContext`)."""
        return self._deferral is not None

    def _select_if_all_is_said(self) -> None:
        if self._deferral is not None and all(
            (member := self.members.get(peer)) is not None
            and initial_update_complete(member.negotiated, member.inbound.end_of_rib)
            for peer in self.peers.values()
            if peer.config.graceful_restart is not None and peer.may_come_up
        ):
            self._select()

    def _select(self) -> None:
        if self._deferral is not None:
            self._deferral.stop()
            self._deferral = None

    def usual_updates(
        self, peer: Peer, session: Session, bodies: Sequence[bytes], start: int
    ) -> int:
        """Take in UPDATEs of which there is nothing to be said, and return how many (`PeerContext`)."""
        del session
        member = self.members[peer]
        # Who has a limit is looked at after each message.
        end = len(bodies) if member.limits is None else start + 1
        taken = member.inbound.fast_path.process_run(bodies, start, end)
        if taken and self.observer is not None:
            for body in bodies[start : start + taken]:
                self.observer.plain_update_received(member, body)
        if taken and member.limits is not None:
            self._enforce(member)
        return taken

    def update(self, peer: Peer, session: Session, body: bytes) -> None:
        """Take in an UPDATE (`PeerContext`). Raises `NotificationError`."""
        del session
        member = self.members[peer]
        inbound = member.inbound
        update = inbound.process(body)
        if self.observer is not None:
            self.observer.update_received(member, body, update)
        if inbound.last_end_of_rib is not None:
            member.stale.sweep(inbound.last_end_of_rib)
            inbound.last_end_of_rib = None
            self._select_if_all_is_said()
        self._enforce(member)
        fault = (
            inbound.malformed_report(update)
            if update.faults or inbound.path_limit_exceeded
            else None
        )
        if fault is not None:
            self.context.report(
                SessionError(
                    instance=self.name,
                    peer=peer.name,
                    address=peer.address,
                    sent=False,
                    code=int(ErrorCode.UPDATE_MESSAGE),
                    subcode=fault.subcode,
                    text=fault.text,
                    data=fault.data[:SHOWN].hex(),
                    survived=True,
                )
            )

    def _enforce(self, member: EstablishedPeer) -> None:
        """Warn, or end a session, whose peer has said more than it may."""
        limits = member.limits
        if limits is None or not limits.reached(member.adj_in):
            return
        peer = member.peer
        for reached in limits.take(member.adj_in):
            self.context.report(
                PrefixLimit(
                    instance=self.name,
                    peer=peer.name,
                    family=reached.family,
                    received=reached.received,
                    limit=reached.limit,
                    ended=reached.ends,
                )
            )
            if reached.ends:
                peer.over_limit(reached.reason, reached.cease, reached.restart_after)
                return

    def refresh(self, peer: Peer, session: Session, body: bytes) -> None:
        """Take in a ROUTE-REFRESH (`PeerContext`; RFC 2918, RFC 7313). Raises `NotificationError`."""
        del session
        member = self.members[peer]
        message = member.inbound.decode_route_refresh(body)
        if message is None:
            return
        family = message.family
        if message.subtype == RefreshKind.BEGIN:
            member.stale.refresh_begins(family)
        elif message.subtype == RefreshKind.END:
            member.stale.sweep(family)
        elif message.subtype == RefreshKind.REQUEST:
            self.outbound.answer_route_refresh(member, family)

    def request_refresh(self, name: str, families: Sequence[Family]) -> None:
        """Ask a peer to say a family's routes again, or those of all families (RFC 2918).

        Raises `UnknownName`. A peer that is not Established, or cannot, is not asked.
        """
        member = self.members.get(self.peer(name))
        if member is None or not member.negotiated.route_refresh:
            return
        for family in families or member.adj_in.families:
            if family in member.adj_in.families:
                member.session.send(RouteRefresh(family).encode())
