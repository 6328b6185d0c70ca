"""Deferred route selection after a restart (RFC 4724 section 4.1, the restarting speaker).

Only routes that depend on received routes wait; local routes are advertised at once. A timer bounds
the deferral.
"""

from __future__ import annotations

from typing import final

from speaker.negotiated import Negotiated
from speaker.nlri import Family
from speaker.peer.engine_context import EngineContext, Timer


def initial_update_complete(negotiated: Negotiated, ended: set[Family]) -> bool:
    """Return whether no further initial routing update is expected from an Established peer.

    It has sent End-of-RIB for every family (``ended``), or will not send any (no graceful restart),
    or has itself restarted and waits for this router (the R bit).
    """
    capability = negotiated.peer_graceful_restart
    if capability is None or capability.restarting:
        return True
    families = {family for family, _ in capability.families}
    return ended.issuperset(families & negotiated.families)


@final
class SelectionDeferral:
    """The selection deferral of one instance (`speaker.peer.engine_context.TimerOwner`)."""

    __slots__ = ("_context", "active", "where")

    def __init__(self, context: EngineContext, instance: str) -> None:
        self.where: tuple[str, str | None] = (instance, None)
        self.active = False
        """Whether received routes are not advertised yet."""
        self._context = context

    def start(self, seconds: float) -> None:
        """Defer selection, for at most ``seconds`` (Selection_Deferral_Timer)."""
        self.active = True
        self._context.timers.start((self, Timer.DEFERRAL), self._context.now + seconds)

    def end(self) -> None:
        """Select routes from now on."""
        self.active = False
        self._context.timers.stop((self, Timer.DEFERRAL))

    def expired(self, timer: Timer, due: float) -> None:
        """End the deferral without the remaining peers (`TimerOwner`)."""
        del timer, due
        self.end()
