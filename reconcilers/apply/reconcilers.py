"""The steps of an apply round, in their order, for one instance at a time.

Instances first, then routes by what they come from, peers last: a session never opens on a route set
that is half filled. What has gone is taken away in the opposite order. Each step only calls the
speaker for what differs from what it was told before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconcilers.apply.convert import route_attributes
from reconcilers.model import Route, Source
from speaker.api import InstanceConfig, PeerConfig, RouteAttributes
from speaker.api.port import RouteChanges, SpeakerPort
from speaker.nlri import Family

INSTANCE = "instance"
NEIGHBOR = "neighbor"
ROUTES: tuple[tuple[Source, str], ...] = (
    (Source.INTERFACE, "interface"),
    (Source.POD_CIDR, "pod-cidr"),
    (Source.SERVICE, "service"),
    (Source.POD_IP_POOL, "pod-ip-pool"),
    (Source.STATIC, "static"),
)
"""The reconcilers of routes, in their order."""


class Applied:
    """What the speaker was told of one instance."""

    def __init__(self, config: InstanceConfig) -> None:
        self.config = config
        self.peers: dict[str, PeerConfig] = {}
        self.route_sets: set[str] = set()

    @property
    def route_sets_in_use(self) -> set[str]:
        """The route sets of its peers."""
        return {peer.route_set for peer in self.peers.values() if peer.route_set is not None}


RouteUpdate = dict[tuple[str, Family, bytes], Route | None]
"""Changed routes by key; None is gone."""
RouteChange = tuple[Family, bytes, Route | None]
"""One of them, within its route set."""


def by_source(update: Iterable[RouteChange]) -> Iterator[RouteChanges]:
    """Split changes into one call per reconciler, withdrawals with the first one that has any."""
    calls: dict[Source, dict[Family, dict[bytes, RouteAttributes | None]]] = {}
    gone: dict[Family, dict[bytes, RouteAttributes | None]] = {}
    for family, nlri, route in update:
        if route is None:
            gone.setdefault(family, {})[nlri] = None
        else:
            families = calls.setdefault(route.source, {})
            families.setdefault(family, {})[nlri] = route_attributes(route.attributes)
    if gone:
        yield gone
    for source, _ in ROUTES:
        if source in calls:
            yield calls[source]


def reconcile_peers(
    speaker: SpeakerPort, applied: Applied, desired: dict[str, PeerConfig]
) -> Iterator[tuple[str, Exception | None]]:
    """Remove, update, create; the outcome of each peer that differs."""
    name = applied.config.name
    for gone in [peer for peer in applied.peers if peer not in desired]:
        yield gone, _attempt_remove(speaker, applied, name, gone)
    changed = [p for p in desired if p in applied.peers and applied.peers[p] != desired[p]]
    created = [p for p in desired if p not in applied.peers]
    for peer in (*changed, *created):
        try:
            speaker.set_peer(name, desired[peer])
        except Exception as error:  # noqa: BLE001  one peer's error is that peer's
            yield peer, error
        else:
            applied.peers[peer] = desired[peer]
            yield peer, None


def _attempt_remove(
    speaker: SpeakerPort, applied: Applied, instance: str, peer: str
) -> Exception | None:
    try:
        speaker.remove_peer(instance, peer)
    except Exception as error:  # noqa: BLE001  one peer's error is that peer's
        return error
    del applied.peers[peer]
    return None
