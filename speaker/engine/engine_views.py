"""Views of the instances of an engine, read between two inputs: sessions and routes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from speaker.api import InstanceStatus, PeerCounts, PeerStatus, Routes
from speaker.engine import views
from speaker.engine.established_peer import EstablishedPeer
from speaker.engine.instance import Instance
from speaker.nlri import Family
from speaker.peer.engine_context import EngineContext
from speaker.rib.local_routes import LOCAL


class EngineViews:
    """The sessions and routes of the instances of an engine. Changes nothing but the time."""

    def __init__(
        self,
        context: EngineContext,
        instances: Mapping[str, Instance],
        instance: Callable[[str], Instance],
    ) -> None:
        """``instances`` are the engine's, by name, and are read only.

        ``instance`` returns one of them, or raises `UnknownName`.
        """
        self._context = context
        self._instances = instances
        self._instance = instance

    def peers(self, now: float) -> Iterator[PeerStatus]:
        """Iterate over all sessions, by instance and name."""
        self._context.now = now
        return self._statuses()

    def _statuses(self) -> Iterator[PeerStatus]:
        for _, instance in sorted(self._instances.items()):
            for name, peer in sorted(instance.peers.items()):
                # A reader in slices gives peers the time to be removed.
                if instance.peers.get(name) is peer:
                    yield views.peer_status(instance, peer)

    def peer_counts(self) -> list[PeerCounts]:
        """Return the counts of all sessions, in the same order."""
        instances = sorted(self._instances.items())
        return [counts for _, instance in instances for counts in views.peer_counts(instance)]

    def instances(self) -> Iterator[InstanceStatus]:
        """Iterate over all instances, by name."""
        for _, instance in sorted(self._instances.items()):
            yield views.instance_status(instance)

    def routes_available(
        self,
        instance: str,
        family: Family,
        prefixes: Iterable[bytes] | None = None,
        *,
        peer: str | None = None,
    ) -> Routes:
        """See `speaker.api.SpeakerPort`."""
        known = self._instance(instance)
        name = None if peer is None else known.peer(peer).name
        return Routes(views.available(known, family, prefixes, name))

    def originates(self, instance: str, family: Family, nlri: bytes) -> bool:
        """Return whether a prefix is a local route of the Loc-RIB. Raises `UnknownName`."""
        table = self._instance(instance).outbound.loc.tables.get(family)
        best = None if table is None else table.best(nlri)
        return best is not None and best.source is LOCAL

    def _established(self, instance: str, peer: str | None) -> list[EstablishedPeer]:
        """Return the Established peers of an instance by name, or one. Raises `UnknownName`."""
        known = self._instance(instance)
        if peer is None:
            return sorted(known.established.values(), key=lambda member: member.peer.name)
        established = known.established.get(known.peer(peer))
        return [] if established is None else [established]

    def routes_advertised(
        self,
        instance: str,
        peer: str | None,
        family: Family,
        prefixes: Iterable[bytes] | None = None,
    ) -> Routes:
        """See `speaker.api.SpeakerPort`."""
        return Routes(
            routes
            for established in self._established(instance, peer)
            for routes in views.advertised(established, family, prefixes)
        )

    def routes_received(
        self,
        instance: str,
        peer: str | None,
        family: Family,
        prefixes: Iterable[bytes] | None = None,
    ) -> Routes:
        """See `speaker.api.SpeakerPort`."""
        known = self._instance(instance)
        names = sorted(known.peers) if peer is None else [known.peer(peer).name]
        holders = [
            established
            for session_peer in map(known.peer, names)
            if (
                established := known.established.get(session_peer)
                or known.kept_routes.peers.get(session_peer)
            )
        ]
        return Routes(
            routes
            for established in holders
            for routes in views.received(known, established, family, prefixes)
        )
