"""The monitored peers of an engine: sessions and Loc-RIBs, each with a unique distinguisher.

RFC 7854 section 4.2 identifies a peer by its distinguisher and address; RFC 9069 section 4.2 a
Loc-RIB by its distinguisher.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import final

from speaker.engine.established_peer import EstablishedPeer
from speaker.engine.instance import Instance
from speaker.engine.monitoring.monitored_peers import (
    MonitoredLocRib,
    MonitoredPeer,
    MonitoredSession,
    distinguisher_of,
)


@final
class PeerRegistry:
    """The monitored peers that stations know, or will be sent."""

    def __init__(self, instances: Mapping[str, Instance]) -> None:
        """Start empty; ``instances`` are the engine's, by name, and are read only."""
        self._instances = instances
        self._sessions: dict[EstablishedPeer, MonitoredSession] = {}
        self._identities: set[tuple[int, bytes]] = set()
        self._loc_ribs: dict[str, MonitoredLocRib] = {}
        self._numbers: dict[str, int] = {}

    def _number(self, instance: Instance) -> int:
        """Return an instance's distinguisher: 0 for the default table, which one can be."""
        known = self._numbers.get(instance.name)
        if known is None:
            default = instance.vrf is None and 0 not in self._numbers.values()
            known = 0 if default else distinguisher_of(instance.name)
            self._numbers[instance.name] = known
        return known

    def loc_rib(self, instance: str) -> MonitoredLocRib:
        """Return an instance's Loc-RIB, registered on first use."""
        known = self._loc_ribs.get(instance)
        if known is None:
            config = self._instances[instance]
            known = self._loc_ribs[instance] = MonitoredLocRib(self._number(config), config)
        return known

    def session(self, established: EstablishedPeer) -> MonitoredSession:
        """Return a session, registered on first use."""
        known = self._sessions.get(established)
        if known is None:
            instance = established.peer.instance.name
            number = self._number(self._instances[instance])
            known = MonitoredSession(number, established)
            if known.identity in self._identities:
                # Peers may differ in their port or interface only, which BMP does not express.
                own = distinguisher_of(instance, established.peer.name)
                known = MonitoredSession(own, established)
            self._sessions[established] = known
            self._identities.add(known.identity)
        return known

    def find_session(self, established: EstablishedPeer) -> MonitoredSession | None:
        """Return a session that is registered, or None."""
        return self._sessions.get(established)

    def remove_session(self, established: EstablishedPeer) -> MonitoredSession | None:
        """Remove a session and return it; None where it was not registered."""
        removed = self._sessions.pop(established, None)
        if removed is not None:
            removed.present = False
            self._identities.discard(removed.identity)
        return removed

    def remove_instance(self, instance: str) -> MonitoredLocRib | None:
        """Remove an instance; return its Loc-RIB where that was registered."""
        removed = self._loc_ribs.pop(instance, None)
        if removed is not None:
            removed.present = False
        self._numbers.pop(instance, None)
        return removed

    def loc_ribs(self) -> Iterator[MonitoredPeer]:
        """Iterate over the registered Loc-RIBs."""
        yield from self._loc_ribs.values()

    def sessions(self) -> Iterator[MonitoredPeer]:
        """Iterate over the registered sessions."""
        yield from self._sessions.values()
