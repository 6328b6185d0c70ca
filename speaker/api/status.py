"""The status of a speaker: its sessions, its routes and its events, as frozen values.

For operators, and for programs that show them: a reason is text, never empty while a session is not
Established. Text of a peer is already escaped. Nothing here is read back by the speaker.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from speaker.api.monitoring import CollectorChanged
from speaker.api.policy import PolicyDecision
from speaker.nlri import Family

ESTABLISHED = "Established"
NOT_ACCEPTED = "not accepted by the import policy"
"""The reason of a received route that the import policy rejects."""


Obstacle = Literal["", "FamilyNotNegotiated", "NoNextHop", "NotEncodable"]
"""Why a session does not carry routes that are exported to its peer; empty without any."""


class FamilyStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One family of one session. All counts are 0 while it is not Established."""

    family: Family
    negotiated: bool
    received: int
    """Prefixes that the peer announces: in the Adj-RIB-In, or not kept."""
    accepted: int
    """Prefixes that entered the Loc-RIB."""
    advertised: int
    left_out: int = 0
    """Prefixes that are to be advertised and are not; `obstacle` is why."""
    obstacle: Obstacle = ""
    """Why exported prefixes are not advertised on the session, as one word: empty where all are."""
    stale: int = 0
    """Stale prefixes, kept from before a restart of the peer (RFC 4724, 9494), also without a
    session."""
    not_kept: int = 0
    """Received prefixes that are counted only (`PeerSettings.keep_received`)."""
    note: str = ""
    """Why routes are not advertised, for an obstacle; otherwise why stale ones are kept. As text."""


class MessageCounts(msgspec.Struct, frozen=True, rename="camel"):
    """Messages of one direction, by type (RFC 4271 section 4.1, RFC 2918)."""

    open: int = 0
    update: int = 0
    notification: int = 0
    keepalive: int = 0
    route_refresh: int = 0

    @property
    def total(self) -> int:
        """Messages of all types."""
        return self.open + self.update + self.notification + self.keepalive + self.route_refresh


class PeerStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One session. The encoded names are used by the local API, whose answers have these fields."""

    instance: str
    name: str
    address: str | None
    interface: str | None
    port: int
    local_address: str | None
    """Of the connection; without a connection, as configured."""
    local_asn: int = msgspec.field(name="localASN")
    peer_asn: int = msgspec.field(name="peerASN", default=0)
    """The configured AS number, or that of the peer's OPEN; 0 while unknown."""
    peer_type: str | None = None
    """``internal`` or ``external``, where that is configured in place of a number."""
    state: str
    """Idle, Connect, Active, OpenSent, OpenConfirm or Established (RFC 4271 section 8.2.2)."""
    since: float = msgspec.field(name="sinceTime")
    """When it became Established; where it is not, when it last was, or when the peer was configured.
    As Unix time."""
    families: tuple[FamilyStatus, ...]
    reason: str = ""
    """Why it is not Established, as text; empty when it is. It has no countdown: see `retry_in`."""
    peer_router_id: str | None = msgspec.field(name="peerRouterID")
    hold_time: int | None = msgspec.field(name="holdSeconds")
    """Negotiated; None without a session."""
    keepalive_time: int | None = msgspec.field(name="keepaliveSeconds")
    retry_in: float | None = msgspec.field(name="retrySeconds")
    """Seconds until the next connection attempt, where one is due."""
    likely_cause: str = ""
    """A text with things to check where the peer does not come up; empty if none is known."""
    messages_received: int
    messages_sent: int
    updates_received: int
    updates_sent: int
    received_by_type: MessageCounts = MessageCounts()
    """Of all sessions since the peer was configured."""
    sent_by_type: MessageCounts = MessageCounts()
    malformed_updates: int = 0
    """Malformed UPDATEs of this session, which cost their routes only (RFC 7606)."""
    malformed: str = ""
    """The faults of the last reported UPDATE, as text (`SessionError`)."""
    flaps: int
    """How often the session has left Established."""
    last_error: str | None
    """The last NOTIFICATION sent or received, or the last loss of the transport."""
    authentication: str | None
    """"TCP MD5" where a password is set."""
    graceful_restart_time: int | None = msgspec.field(name="gracefulRestartSeconds")
    capabilities: tuple[str, ...] = ()
    """The capabilities of the peer's OPEN, as text."""
    dynamic: bool = False
    """Whether it is a neighbour of a prefix (`DynamicPeerConfig`)."""
    route_set: str | None
    failures: int = 0
    """Failed attempts since the session was last Established."""
    queued_octets: int = 0
    """Octets that were written and not yet accepted by the kernel."""
    next_hops: tuple[str, ...] = ()
    """The next hops of the routes that the peer has announced, accepted or not: the first 256."""
    initial_table_sent: bool = False
    """Whether the initial table, up to End-of-RIB, was written since Established; the kernel has
    accepted it once `queued_octets` is 0."""

    @property
    def established(self) -> bool:
        """Whether the session is Established."""
        return self.state == ESTABLISHED


class PeerCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of one session that change with routes: a tenth of the cost of its `PeerStatus`."""

    instance: str
    name: str
    received: int | None
    """Prefixes that the peer announces, of all families; None while it is not Established."""
    advertised: int | None
    updates_received: int
    updates_sent: int


class InstanceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One router."""

    name: str
    local_asn: int
    router_id: str
    vrf: str | None
    listening: tuple[tuple[str, int], ...]
    """Addresses and ports that the kernel assigned."""
    listen_error: str | None
    """Why it does not listen on a configured address, which is retried."""
    peers: int
    refused: int
    """Rejected connections: of no peer's address, or of a dynamic peer beyond the limit."""


class RouteView(msgspec.Struct, frozen=True, kw_only=True):
    """One route of a table, in text."""

    family: Family
    prefix: str
    next_hop: str | None
    """None is a local route: the local address of each session."""
    as_path: str
    origin: str
    med: int | None
    local_preference: int | None
    communities: tuple[str, ...]
    large_communities: tuple[str, ...]
    extended_communities: tuple[str, ...]
    peer: str | None
    """The peer that it was received from (received, available), or is advertised to (advertised)."""
    best: bool
    reason: str
    """Why it is not the best, or not used; "best" or "advertised" otherwise."""
    path_id: int | None = None
    """The path identifier, where negotiated (RFC 7911)."""
    decision: PolicyDecision | None = None
    """Of a received route: the decision of the import policy. An accepted route may still be
    ineligible; `reason` is then the cause."""
    used: bool = False
    """Whether a received route is in the Loc-RIB."""
    imported_from: str | None = None
    """The instance that it is imported from (available)."""
    kept: bool = False
    """Whether a received route is kept while the peer is away (RFC 4724)."""


class PeerPrefixLimit(msgspec.Struct, frozen=True, kw_only=True):
    """The peer ended a session as it was sent more prefixes than it accepts (Cease 6/1, RFC 4486)."""

    family: Family | None = None
    """The address family of the limit; None where the NOTIFICATION has no data."""
    limit: int | None = None
    """The prefix upper bound of the peer; None where the NOTIFICATION has no data."""
    advertised: tuple[tuple[Family, int], ...] = ()
    """The number of prefixes that the peer was sent, by family."""


class StateChanged(msgspec.Struct, frozen=True, kw_only=True):
    """A session entered another state."""

    instance: str
    peer: str
    address: str | None
    old: str
    new: str
    reason: str
    routes: int = 0
    """The received routes that the session held, where it left Established."""
    local_address: str = ""
    """Of the connection; empty without one."""
    peer_limit: PeerPrefixLimit | None = None
    """The exceeded limit if it left Established because the peer was sent too many prefixes."""


class SessionError(msgspec.Struct, frozen=True, kw_only=True):
    """A NOTIFICATION was sent or received, or an UPDATE was malformed (RFC 7606)."""

    instance: str
    peer: str
    address: str | None
    sent: bool
    code: int
    subcode: int
    text: str
    """Decoded and escaped."""
    data: str = ""
    """The first octets of the malformed attribute, or of the NOTIFICATION's data, as hex digits."""
    survived: bool = False
    """A malformed UPDATE that cost its routes only (RFC 7606); the first, second, fourth ... one."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """An internal error that a fence caught; it ended at most one session."""

    instance: str
    peer: str | None
    where: str
    error: str


class ListenChanged(msgspec.Struct, frozen=True, kw_only=True):
    """A listening socket was opened, or could not be opened."""

    instance: str
    address: str
    port: int
    error: str | None


class PrefixLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A peer reached the warning threshold of its prefix limit, or exceeded the limit."""

    instance: str
    peer: str
    family: Family
    received: int
    limit: int
    ended: bool
    """Whether the session was ended."""


class RouteLeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A route is not advertised because it cannot be encoded for a session.

    Its attributes are too long for a message, for example. The first, second, fourth ... one of the
    sessions that share their updates is reported.
    """

    instance: str
    peers: tuple[str, ...]
    """The peers that do not get it."""
    family: Family
    prefix: str
    count: int
    """Prefixes that were not advertised so far."""
    reason: str


class ConnectionsRefused(msgspec.Struct, frozen=True, kw_only=True):
    """Connections were rejected; at most one event per minute."""

    instance: str
    address: str
    """The source of the last rejected connection."""
    reason: str
    count: int
    """Number of rejected connections so far."""


class RecordingEnded(msgspec.Struct, frozen=True, kw_only=True):
    """The recording of inputs ended; the speaker runs on."""

    reason: str


Event = (
    StateChanged
    | SessionError
    | PrefixLimit
    | RouteLeftOut
    | Fault
    | ListenChanged
    | CollectorChanged
    | ConnectionsRefused
    | RecordingEnded
)
