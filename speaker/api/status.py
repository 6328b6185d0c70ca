"""What the speaker tells: the state of its sessions, its routes and what happened, as frozen values.

Made for people and for programs that show them: a reason is a sentence, never empty while a
session is not Established. Text that a peer sent is already escaped here. Nothing here is read
back by the speaker.
"""

from __future__ import annotations

import msgspec

from speaker.api.monitoring import CollectorChanged
from speaker.nlri import Family

ESTABLISHED = "Established"


class FamilyStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One family of one session. All counts are 0 while it is not Established."""

    family: Family
    negotiated: bool
    received: int
    """Prefixes in the Adj-RIB-In."""
    accepted: int
    """Those of them that entered the Loc-RIB."""
    advertised: int
    stale: int = 0
    """Prefixes that are kept from before a restart of the peer (RFC 4724, 9494), also without a
    session."""
    note: str = ""
    """Why less flows than one could expect."""


class PeerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One session."""

    instance: str
    name: str
    address: str | None
    interface: str | None
    port: int
    local_address: str | None
    """Of the connection; the configured one while there is none."""
    local_asn: int
    peer_asn: int
    """The configured one, or the one learnt from the OPEN; 0 while unknown."""
    state: str
    """Idle, Connect, Active, OpenSent, OpenConfirm or Established (RFC 4271 section 8.2.2)."""
    reason: str
    """Why it is not Established; empty when it is."""
    since: float
    """When it entered its state, as Unix time."""
    families: tuple[FamilyStatus, ...]
    peer_router_id: str | None
    hold_time: int | None
    """Negotiated; None without a session."""
    keepalive_time: int | None
    retry_in: float | None
    """Seconds until the next attempt of ours to connect, where one is due."""
    capabilities: tuple[str, ...]
    """The peer's, from its OPEN, for people to read."""
    last_error: str | None
    """The last NOTIFICATION sent or received, or the last loss of the transport."""
    flaps: int
    """How often the session has been lost after it was Established."""
    messages_received: int
    messages_sent: int
    updates_received: int
    updates_sent: int
    queued_octets: int
    """Written and not yet taken by the kernel."""
    authentication: str | None
    """"TCP MD5" where a password is set."""
    graceful_restart_time: int | None
    dynamic: bool
    route_set: str | None
    initial_table_sent: bool = False
    """Whether it has been told everything since it was Established, up to End-of-RIB: all of that is
    written, and taken by the kernel once `queued_octets` is 0."""

    @property
    def established(self) -> bool:
        """Whether routes flow."""
        return self.state == ESTABLISHED


class InstanceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One router."""

    name: str
    local_asn: int
    router_id: str
    vrf: str | None
    listening: tuple[tuple[str, int], ...]
    """Addresses and ports as the kernel gave them."""
    listen_error: str | None
    """Why it does not listen somewhere where it should; it is tried again."""
    peers: int
    refused: int
    """Connections that were turned away: nobody's address, or a neighbour too many."""


class RouteView(msgspec.Struct, frozen=True, kw_only=True):
    """One route of a table, in text."""

    family: Family
    prefix: str
    next_hop: str | None
    """None is a local route: each session's own address."""
    as_path: str
    origin: str
    med: int | None
    local_preference: int | None
    communities: tuple[str, ...]
    large_communities: tuple[str, ...]
    extended_communities: tuple[str, ...]
    peer: str | None
    """From whom it was received (received, available) or to whom it is told (advertised)."""
    best: bool
    reason: str
    """Why it is not best, or not used; "best" or "advertised" otherwise."""
    path_id: int | None = None
    """The path identifier where the session has them (RFC 7911)."""


class StateChanged(msgspec.Struct, frozen=True, kw_only=True):
    """A session entered another state."""

    instance: str
    peer: str
    address: str | None
    old: str
    new: str
    reason: str


class SessionError(msgspec.Struct, frozen=True, kw_only=True):
    """A NOTIFICATION was sent or received, or a malformed UPDATE was survived (RFC 7606)."""

    instance: str
    peer: str
    address: str | None
    sent: bool
    code: int
    subcode: int
    text: str
    """Decoded and escaped."""
    data: str = ""
    """The first octets of what was wrong, or of the NOTIFICATION's data, as hex."""
    survived: bool = False
    """No NOTIFICATION, but an UPDATE that cost no more than its routes: told now and then."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """An error of our own that a fence caught; it cost at most the one session."""

    instance: str
    peer: str | None
    where: str
    error: str


class ListenChanged(msgspec.Struct, frozen=True, kw_only=True):
    """A listening socket was opened, or could not be."""

    instance: str
    address: str
    port: int
    error: str | None


class PrefixLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A peer has sent so many prefixes that its limit is near, or has been reached."""

    instance: str
    peer: str
    family: Family
    received: int
    limit: int
    ended: bool
    """Whether the session ended by it."""


class ConnectionsRefused(msgspec.Struct, frozen=True, kw_only=True):
    """Connections were turned away; told of one, and then of another no sooner than in a minute."""

    instance: str
    address: str
    """Whose connection was turned away now."""
    reason: str
    count: int
    """How many there have been."""


class RecordingEnded(msgspec.Struct, frozen=True, kw_only=True):
    """Inputs are not written down any more, though the speaker runs on."""

    reason: str


Event = (
    StateChanged
    | SessionError
    | PrefixLimit
    | Fault
    | ListenChanged
    | CollectorChanged
    | ConnectionsRefused
    | RecordingEnded
)
