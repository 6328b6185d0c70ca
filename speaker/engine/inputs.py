"""The inputs of the core, as values: the only way into the pure part.

Frozen, so that a run can be recorded and replayed. Octets, times and random numbers come from
outside; nothing in an input has been interpreted yet.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from speaker.api import (
    BmpCollector,
    DynamicPeerConfig,
    InstanceConfig,
    Multipath,
    PathDown,
    PeerConfig,
    RouteAttributes,
)
from speaker.nlri import Family


class TransportConnected(msgspec.Struct, frozen=True):
    """A connection attempt of the core succeeded; addresses and ports as the socket has them."""

    connection: int
    local: tuple[str, int]
    remote: tuple[str, int]
    interface_address: str | None = None
    """An address of the other IP version on the interface with the local address: a next hop."""


class TransportFailed(msgspec.Struct, frozen=True):
    """A connection attempt of the core failed."""

    connection: int
    reason: str


class TransportAccepted(msgspec.Struct, frozen=True):
    """A listening socket of an instance accepted a connection."""

    connection: int
    instance: str
    local: tuple[str, int]
    remote: tuple[str, int]
    interface_address: str | None = None
    """As in `TransportConnected`."""


class TransportClosed(msgspec.Struct, frozen=True):
    """A connection was lost, or closed by the peer."""

    connection: int
    reason: str


class BytesReceived(msgspec.Struct, frozen=True):
    """Received octets, in order, in pieces of any size."""

    connection: int
    data: bytes


class NeighborFound(msgspec.Struct, frozen=True):
    """The neighbour on an interface changed: its link-local address with the zone, or None."""

    interface: str
    address: str | None


class DeviceFound(msgspec.Struct, frozen=True):
    """An interface or VRF exists that connections were to be bound to: they are tried again."""

    device: str


class QueueChanged(msgspec.Struct, frozen=True):
    """The number of octets that wait to be sent, when sending stops and when it continues."""

    connection: int
    octets: int


class TimersDue(msgspec.Struct, frozen=True):
    """The time of `Engine.next_deadline` has come."""


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
    """Administratively shut a peer down, with a shutdown communication (RFC 9003)."""

    instance: str
    peer: str
    communication: str = ""


class EnablePeer(msgspec.Struct, frozen=True):
    """Start again after `ShutDownPeer`."""

    instance: str
    peer: str


class ResetPeer(msgspec.Struct, frozen=True):
    """End a peer's session and start again at once; also ends the pause of a prefix limit."""

    instance: str
    peer: str
    communication: str = ""


class PathsDown(msgspec.Struct, frozen=True):
    """BFD has found the paths to peers down."""

    paths: tuple[PathDown, ...]


class UpdateRoutes(msgspec.Struct, frozen=True):
    """A change of a route set, or of the instance's local routes (``route_set`` None).

    ``changes``: per family, the prefix as on the wire -> its attributes; None withdraws it.
    """

    instance: str
    route_set: str | None
    changes: Mapping[Family, Mapping[bytes, RouteAttributes | None]]


class RequestRefresh(msgspec.Struct, frozen=True):
    """Send a peer a ROUTE-REFRESH (RFC 2918); for all families where none is named."""

    instance: str
    peer: str
    families: tuple[Family, ...] = ()


class AdvertiseAgain(msgspec.Struct, frozen=True):
    """Send a peer all routes again, as an answer to a ROUTE-REFRESH of its own would."""

    instance: str
    peer: str


class RemoveRouteSet(msgspec.Struct, frozen=True):
    """See `speaker.api.SpeakerPort.remove_route_set`."""

    instance: str
    route_set: str


class SetCollectors(msgspec.Struct, frozen=True):
    """All monitoring stations (BMP), in place of the present ones."""

    collectors: tuple[BmpCollector, ...]


class WallClock(msgspec.Struct, frozen=True):
    """Unix time minus the core's time (seconds), for BMP; given again when it has changed."""

    offset: float


class SetNextHopMetrics(msgspec.Struct, frozen=True):
    """See `speaker.api.SpeakerPort.set_next_hop_metrics`."""

    instance: str
    metrics: Mapping[str, int]


class FollowBestPaths(msgspec.Struct, frozen=True):
    """Send a reader, by a number of its own, the best paths of an instance (`SendBestPaths`)."""

    reader: int
    instance: str
    multipath: Multipath


class BestPathsTaken(msgspec.Struct, frozen=True):
    """A reader has taken a number of batches, and has room for others."""

    reader: int
    batches: int


class UnfollowBestPaths(msgspec.Struct, frozen=True):
    """A reader of best paths has closed its stream."""

    reader: int


class SendUpdates(msgspec.Struct, frozen=True):
    """Send the changes since the last `SendUpdates`; once per turn of the event loop."""


class Shutdown(msgspec.Struct, frozen=True):
    """End all sessions.

    Peers with graceful restart get no NOTIFICATION, so that they keep the routes (RFC 4724).
    """

    communication: str = ""


Transport = (
    TransportConnected | TransportFailed | TransportAccepted | TransportClosed | QueueChanged
)
Following = FollowBestPaths | BestPathsTaken | UnfollowBestPaths
PeerCommand = (
    SetPeer
    | RemovePeer
    | ShutDownPeer
    | EnablePeer
    | ResetPeer
    | PathsDown
    | RequestRefresh
    | AdvertiseAgain
)
Command = (
    SetInstance
    | RemoveInstance
    | PeerCommand
    | RemoveRouteSet
    | SetCollectors
    | WallClock
    | SetNextHopMetrics
    | Following
    | Shutdown
)
Discovery = NeighborFound | DeviceFound
Input = Transport | Discovery | Command | UpdateRoutes | BytesReceived | TimersDue | SendUpdates
