"""Sessions in answers: members beside their status, BFD, passwords, and sessions that were reset."""

from __future__ import annotations

from datetime import datetime

import msgspec

from cells.api.model.envelope import Item
from cells.api.model.routes import FamilyCount


class PeerMembers(Item, frozen=True, kw_only=True):
    """The members of a session in answers that are no field of `speaker.api.PeerStatus`."""

    bfd: str | None = None
    """The state of its BFD session."""
    families: list[str]
    """By name; in a status they have counts."""
    received: list[FamilyCount] | None = None
    """While it is Established, as `advertised`."""
    advertised: list[FamilyCount] | None = None
    stale: list[FamilyCount] | None = None
    """Routes that are kept during a restart of the peer."""
    source: str | None = None
    """The status object that it is read from, where no agent answers."""
    status_time: datetime | None = None
    """The last change of that object."""


class PeerCountItem(Item, frozen=True, kw_only=True):
    """The counts of a session that change with routes."""

    node: str
    instance: str
    name: str
    routes_received: int | None = None
    """Of all families; absent while it is not Established, as `routes_advertised`."""
    routes_advertised: int | None = None
    updates_received: int
    updates_sent: int


class BfdIntervalsItem(Item, frozen=True, kw_only=True):
    """The required intervals of one end of a BFD session, and its detection multiplier."""

    transmit_seconds: float
    receive_seconds: float
    detect_multiplier: int


class BfdItem(Item, frozen=True, kw_only=True):
    """The BFD session of a peer; members that the BFD process has not reported are absent."""

    node: str
    instance: str
    peer: str
    address: str | None = None
    local_address: str | None = None
    device: str | None = None
    """The interface of link-local addresses, or the VRF."""
    multihop: bool = False
    profile: str | None = None
    strict: bool = False
    """Whether BGP waits until BFD is Up."""
    state: str
    """AdminDown, Down, Init, Up, or Unknown."""
    since_time: datetime | None = None
    diagnostic: str | None = None
    """Why the state changed last."""
    remote_state: str | None = None
    remote_diagnostic: str | None = None
    remote_independent: bool | None = None
    """The neighbor's C bit: its BFD continues while its control plane restarts."""
    local_discriminator: int | None = None
    remote_discriminator: int | None = None
    local_intervals: BfdIntervalsItem | None = None
    remote_intervals: BfdIntervalsItem | None = None
    transmit_interval_seconds: float | None = None
    """In use: packets are sent in this interval, less up to a quarter."""
    detection_seconds: float | None = None
    """In use: the path is down after this time without a packet."""
    passive: bool = False
    minimum_ttl: int | None = msgspec.field(name="minimumTTL", default=None)
    authentication: str | None = None
    ups: int = 0
    """How often the session came Up."""
    packets_sent: int | None = None
    packets_received: int | None = None
    echoes_sent: int | None = None
    """Echo packets; absent while none was sent."""
    echoes_received: int | None = None
    """Echo packets of this end that the neighbor has returned."""
    longest_gap_seconds: float | None = None
    """The longest time between two received packets while the session was Up."""
    lateness_seconds: float | None = None
    """The latest that the process met a deadline, of any session."""
    problem: str | None = None
    """Why there is no session, or why it sends nothing."""


class PasswordItem(Item, frozen=True, kw_only=True):
    """Whether a candidate is the TCP MD5 password of a peer."""

    node: str
    instance: str
    peer: str
    equal: bool


class ClearedItem(Item, frozen=True, kw_only=True):
    """A session that was to be reset, or whose routes were to be sent again."""

    node: str
    instance: str
    name: str
    done: bool
    message: str
    """The action, or the reason for none."""
