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
from speaker.engine.instance.source_history import SourceHistory
from speaker.fsm import State
from speaker.message import Notification
from speaker.peer.engine_context import EngineContext
from speaker.peer.peer import Peer

SILENT_SECONDS: Final = 2.0
"""How long a dynamic peer may keep its place without an OPEN while other addresses wait for one."""
HANDSHAKE_SECONDS: Final = 5.0
"""The same for the KEEPALIVE after its OPEN."""
CONTENTION_SECONDS: Final = 60.0
"""How long after a range was full the addresses have to wait whose sessions failed."""


class DynamicPeersOwner(Protocol):
    """The instance, as the ranges use it."""

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
        self.sources = SourceHistory()
        """How sessions with the addresses of dynamic peers ended."""
        self._contended_until: dict[str, float] = {}
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
        """Remove a range; its peers move to another range that contains them, or end."""
        self._contended_until.pop(name, None)
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

    def inherit(self, before: DynamicPeers) -> None:
        """Take over the ranges and the history of an instance with the same name."""
        self.ranges, self.sources = before.ranges, before.sources

    # ------------------------------------------------------------ connections

    def admit(self, config: DynamicPeerConfig, address: str) -> str:
        """Return why a range does not take a connection from an address; empty if it does.

        In a full range a peer without a session makes room, if its time for one is over: at once for
        an address that has had a session. An address that took a place in vain waits before the next
        one, longer each time.
        """
        is_full = self._is_full(config)
        now = self._context.now
        if is_full:
            self._contended_until[config.name] = now + CONTENTION_SECONDS
        contended = now < self._contended_until.get(config.name, 0.0)
        if contended and self.sources.must_wait(address, now):
            return f"{config.name} is at its limit, and sessions with the address failed"
        if is_full and not self._make_room(config, known=self.sources.is_known(address)):
            return f"{config.name} is at its limit of {config.limit}"
        return ""

    def _is_full(self, config: DynamicPeerConfig) -> bool:
        peers = self._owner.peers.values()
        return sum(peer.dynamic == config.name for peer in peers) >= config.limit

    def _make_room(self, config: DynamicPeerConfig, *, known: bool) -> bool:
        """End the dynamic peer that has been without a session for the longest time; False without one.

        ``known``: for an address that has had a session.
        """
        owner = self._owner
        now = self._context.now
        last: tuple[bool, float] | None = None
        victim: Peer | None = None
        for peer in owner.peers.values():
            if (
                peer.dynamic != config.name
                or peer.state is State.ESTABLISHED
                or owner.keeps_routes(peer)
            ):
                continue
            had_session = peer.address is not None and self.sources.is_known(peer.address)
            since = peer.connections.primary.since
            is_late = now - since >= (SILENT_SECONDS if peer.is_silent else HANDSHAKE_SECONDS)
            if not (known and is_late if had_session else known or is_late):
                continue
            # Peers that have had no session go first.
            if last is None or (had_session, since) < last:
                last, victim = (had_session, since), peer
        if victim is None:
            return False
        if victim.address is not None:
            owner.reject(victim.address, f"no session came up, and {config.name} is at its limit")
        owner.end_peer(victim, self._rejected)
        return True


def _is_connected(peer: Peer) -> bool:
    """Return whether a peer has a connection, and not only an attempt."""
    primary = peer.connections.primary
    return primary.connection is not None and primary.state is not State.CONNECT


def _with_attempt_of(config: PeerConfig, peer: Peer) -> PeerConfig:
    """Return a peer's configuration with another peer's settings of connection attempts.

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
