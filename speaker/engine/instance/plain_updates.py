"""Fast path for a run of plain UPDATEs of one Established session.

Plain UPDATEs announce IPv4 prefixes with common attributes, or withdraw IPv4 prefixes, and nothing
else (`speaker.rib.inbound`). Slow path: `RouteExchange.update` for each of them; both must leave the
same routes and cause the same actions (tests/speaker/engine/test_plain_updates.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from speaker.engine.established_peer import EstablishedPeer
from speaker.engine.instance.route_exchange import enforce_limits
from speaker.engine.observer import ObserverSlot
from speaker.peer.engine_context import EngineContext


@final
class PlainUpdates:
    """Processes runs of plain UPDATEs (`speaker.peer.session.PlainUpdateHandler`)."""

    __slots__ = ("_context", "_established", "_slot")

    def __init__(
        self, context: EngineContext, established: EstablishedPeer, slot: ObserverSlot
    ) -> None:
        self._context = context
        self._established = established
        self._slot = slot

    def receive(self, bodies: Sequence[bytes], start: int) -> int:
        """Process the run of plain UPDATEs from an index on and return its length, 0 for none."""
        established = self._established
        limits = established.limits
        # With a prefix limit every UPDATE is checked.
        end = len(bodies) if limits is None else start + 1
        taken = established.inbound.fast_path.process_run(bodies, start, end)
        if taken:
            observer = self._slot.observer
            if observer is not None:
                for body in bodies[start : start + taken]:
                    observer.plain_update_received(established, body)
            if limits is not None:
                enforce_limits(self._context, established)
        return taken
