"""The ranges of one instance: prefixes from which any address may connect, and their dynamic peers.

A dynamic peer exists while it has a connection, or routes that are kept for it. It belongs to the range
with the longest prefix. A peer whose address gets a configuration of its own leaves its range with its
session, and comes back to it when that configuration goes.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Final, Protocol, final

from msgspec.structs import replace

from speaker.api import DynamicPeerConfig, PeerConfig
from speaker.fsm import State
from speaker.message import Notification
from speaker.peer.engine_context import EngineContext
from speaker.peer.peer import Peer

SILENT_SECONDS: Final = 2.0
"""How long a dynamic peer may keep its place without an OPEN while other addresses wait for one."""


class DynamicPeersOwner(Protocol):
    """What the ranges need of their instance."""

    @property
    def peers(self) -> Mapping[str, Peer]:
        """The configured and dynamic peers, by name."""

    def keeps_routes(self, peer: Peer) -> bool:
        """Return whether routes of the peer are kept without a session."""

    def change_peer(self, peer: Peer, config: PeerConfig) -> None:
        """Apply another configuration to a peer."""

    def end_peer(self, peer: Peer, cease: Notification) -> None:
        """Remove a peer and end its session."""

    def reject(self, address: str, reason: str) -> None:
        """Count and report a rejected connection."""


@final
class DynamicPeers:
    """The ranges of one instance."""

    def __init__(
        self,
        context: EngineContext,
        owner: DynamicPeersOwner,
        *,
        deconfigured: Notification,
        rejected: Notification,
    ) -> None:
        """Start without ranges; ``deconfigured`` and ``rejected`` end sessions of dynamic peers."""
        self.ranges: dict[str, DynamicPeerConfig] = {}
        """The configurations, by name."""
        self._context = context
        self._owner = owner
        self._deconfigured = deconfigured
        self._rejected = rejected

    # ---------------------------------------------------------- configuration

    def set(self, config: DynamicPeerConfig) -> None:
        """Create or change a range."""
        before = self.ranges.get(config.name)
        self.ranges[config.name] = config
        if before != config:
            self._follow_ranges()

    def remove(self, name: str) -> None:
        """Remove a range; its peers move to another one that contains them, or end."""
        if self.ranges.pop(name, None) is not None:
            self._follow_ranges()

    def _follow_ranges(self) -> None:
        """Have each dynamic peer follow the range that it belongs to now."""
        for peer in [peer for peer in self._owner.peers.values() if peer.dynamic is not None]:
            address = peer.config.address
            config = None if address is None else self.range_of(address)
            if config is None or (config.name != peer.dynamic and self._is_full(config)):
                self._owner.end_peer(peer, self._deconfigured)
            elif address is not None:
                peer.dynamic = config.name
                self._owner.change_peer(peer, config.for_address(address))

    def range_of(self, address: str) -> DynamicPeerConfig | None:
        """Return the range with the longest prefix that contains an address."""
        host = ipaddress.ip_address(address)
        best: DynamicPeerConfig | None = None
        for config in self.ranges.values():
            network = ipaddress.ip_network(config.prefix)
            if host in network and (
                best is None or network.prefixlen > ipaddress.ip_network(best.prefix).prefixlen
            ):
                best = config
        return best

    # ------------------------------------------- a peer gets a configuration, and loses it

    def release(self, peer: Peer, config: PeerConfig) -> None:
        """Make a dynamic peer a configured one; the caller applies ``config`` to it."""
        peer.dynamic = None
        peer.config = _with_attempt_of(config, peer)

    def take_over(self, peer: Peer) -> bool:
        """Make a configured peer a dynamic one; False where it is in no range, and without a session.

        A peer with another name than its address is another peer for policies, events and status.
        """
        address = peer.config.address
        if address is None or not peer.may_come_up:
            return False
        config = self.range_of(address)
        if config is None or self._is_full(config):
            return False
        after = config.for_address(address)
        if after.name != peer.name or not (_is_connected(peer) or self._owner.keeps_routes(peer)):
            return False
        peer.dynamic = config.name
        peer.config = _with_attempt_of(after, peer)
        self._owner.change_peer(peer, after)
        return True

    # ------------------------------------------------------------ connections

    def has_room(self, config: DynamicPeerConfig) -> bool:
        """Return whether a range takes another peer; a silent one may have to go."""
        return not self._is_full(config) or self._end_silent(config)

    def _is_full(self, config: DynamicPeerConfig) -> bool:
        peers = self._owner.peers.values()
        return sum(peer.dynamic == config.name for peer in peers) >= config.limit

    def _end_silent(self, config: DynamicPeerConfig) -> bool:
        """End the dynamic peer that has sent no OPEN for the longest time; False without one.

        Silent connections from many addresses must not keep peers out of a limited range.
        """
        owner = self._owner
        latest = self._context.now - SILENT_SECONDS
        silent: Peer | None = None
        for peer in owner.peers.values():
            if peer.dynamic == config.name and peer.is_silent and not owner.keeps_routes(peer):
                since = peer.connections.primary.since
                if since <= latest and (silent is None or since < silent.connections.primary.since):
                    silent = peer
        if silent is None:
            return False
        if silent.address is not None:
            owner.reject(silent.address, f"no OPEN came, and {config.name} is at its limit")
        owner.end_peer(silent, self._rejected)
        return True


def _is_connected(peer: Peer) -> bool:
    """Return whether a peer has a connection, and not only an attempt."""
    primary = peer.connections.primary
    return primary.connection is not None and primary.state is not State.CONNECT


def _with_attempt_of(config: PeerConfig, peer: Peer) -> PeerConfig:
    """Return a peer's configuration with another one's settings of connection attempts.

    To a connection that exists they are no difference.
    """
    before = peer.config
    if not _is_connected(peer):
        return before
    same = config.local_address in (None, peer.connections.primary.local[0])
    return replace(
        before,
        passive=config.passive,
        port=config.port,
        local_port=config.local_port,
        local_address=config.local_address if same else before.local_address,
    )
