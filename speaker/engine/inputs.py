"""What can happen to the context, as values: the only way into the pure part.

Frozen, so that a run can be written down and played again. Bytes, times and random numbers come
from outside; nothing here has been interpreted yet.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from speaker.api import BmpCollector, DynamicPeerConfig, InstanceConfig, PeerConfig, RouteAttributes
from speaker.nlri import Family


class TransportConnected(msgspec.Struct, frozen=True):
    """A connection that the core asked for is up; addresses as the socket has them."""

    connection: int
    local: tuple[str, int]
    remote: tuple[str, int]


class TransportFailed(msgspec.Struct, frozen=True):
    """A connection that the core asked for could not be made."""

    connection: int
    reason: str


class TransportAccepted(msgspec.Struct, frozen=True):
    """Somebody connected to a listening socket of an instance."""

    connection: int
    instance: str
    local: tuple[str, int]
    remote: tuple[str, int]


class TransportClosed(msgspec.Struct, frozen=True):
    """A connection has ended without our doing."""

    connection: int
    reason: str


class BytesReceived(msgspec.Struct, frozen=True):
    """Octets in the order in which they came, cut anywhere."""

    connection: int
    data: bytes


class NeighborFound(msgspec.Struct, frozen=True):
    """Who is at the other end of an interface: a link-local address with its zone, or nobody."""

    interface: str
    address: str | None


class QueueChanged(msgspec.Struct, frozen=True):
    """How many octets wait to be sent on a connection, told when it stops and goes on again."""

    connection: int
    octets: int


class TimersDue(msgspec.Struct, frozen=True):
    """The time that `next_deadline` gave has come."""


class SetInstance(msgspec.Struct, frozen=True):
    """See `speaker.api.SpeakerPort.set_instance`."""

    config: InstanceConfig


class RemoveInstance(msgspec.Struct, frozen=True):
    """See `speaker.api.SpeakerPort.remove_instance`."""

    name: str


class SetPeer(msgspec.Struct, frozen=True):
    """See `speaker.api.SpeakerPort.set_peer`."""

    instance: str
    config: PeerConfig | DynamicPeerConfig


class RemovePeer(msgspec.Struct, frozen=True):
    """See `speaker.api.SpeakerPort.remove_peer`."""

    instance: str
    name: str


class ShutDownPeer(msgspec.Struct, frozen=True):
    """End a peer's session by hand, and keep it down, with a word to the other side (RFC 9003)."""

    instance: str
    peer: str
    communication: str = ""


class EnablePeer(msgspec.Struct, frozen=True):
    """Begin again after `ShutDownPeer`."""

    instance: str
    peer: str


class ResetPeer(msgspec.Struct, frozen=True):
    """End a peer's session and begin again at once; also out of a pause after too many prefixes."""

    instance: str
    peer: str
    communication: str = ""


class UpdateRoutes(msgspec.Struct, frozen=True):
    """A change of a route set, or of the instance's own routes (``route_set`` None)."""

    instance: str
    route_set: str | None
    changes: Mapping[Family, Mapping[bytes, RouteAttributes | None]]


class RequestRefresh(msgspec.Struct, frozen=True):
    """Ask a peer to say its routes again (RFC 2918); of all families where none is named."""

    instance: str
    peer: str
    families: tuple[Family, ...] = ()


class RemoveRouteSet(msgspec.Struct, frozen=True):
    """See `speaker.api.SpeakerPort.remove_route_set`."""

    instance: str
    route_set: str


class SetCollectors(msgspec.Struct, frozen=True):
    """All monitoring stations (BMP), in place of those that there were."""

    collectors: tuple[BmpCollector, ...]


class WallClock(msgspec.Struct, frozen=True):
    """Unix time less the core's time, for monitoring stations; told again when it has changed."""

    offset: float


class SendUpdates(msgspec.Struct, frozen=True):
    """Tell peers what changed since the last flush; once per turn of the event loop."""


class Shutdown(msgspec.Struct, frozen=True):
    """End all sessions; those with graceful restart without a word, so that routes are kept."""

    communication: str = ""


Transport = (
    TransportConnected | TransportFailed | TransportAccepted | TransportClosed | QueueChanged
)
PeerCommand = SetPeer | RemovePeer | ShutDownPeer | EnablePeer | ResetPeer | RequestRefresh
Command = (
    SetInstance
    | RemoveInstance
    | PeerCommand
    | RemoveRouteSet
    | SetCollectors
    | WallClock
    | Shutdown
)
Input = Transport | NeighborFound | Command | UpdateRoutes | BytesReceived | TimersDue | SendUpdates
