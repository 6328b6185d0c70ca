"""After a restart of ours: wait for what the peers have to say before telling others the best of it.

RFC 4724 section 4.1, the restarting speaker. Only what depends on received routes waits; a node's
own routes are told at once. It must never wait without end: a timer bounds it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from speaker.negotiated import Negotiated
from speaker.nlri import Family
from speaker.peer.engine_context import EngineContext, Timer


def initial_update_complete(negotiated: Negotiated, ended: set[Family]) -> bool:
    """Tell whether nothing more is to be waited for from a peer that is Established.

    It has sent End-of-RIB for every family, or will not send any (no graceful restart), or has
    itself just restarted and waits for us (the R bit).
    """
    capability = negotiated.peer_graceful_restart
    if capability is None or capability.restarting:
        return True
    families = {family for family, _ in capability.families}
    return ended.issuperset(families & negotiated.families)


@final
class SelectionDeferral:
    """The wait of one instance (`speaker.peer.engine_context.TimerOwner`)."""

    __slots__ = ("_context", "_over", "where")

    def __init__(
        self, context: EngineContext, instance: str, seconds: float, over: Callable[[], None]
    ) -> None:
        self.where: tuple[str, str | None] = (instance, None)
        self._context = context
        self._over = over
        context.timers.start((self, Timer.DEFERRAL), context.now + seconds)

    def expired(self, timer: Timer, due: float) -> None:
        """Go on without those who have not said all."""
        del timer, due
        self._over()

    def stop(self) -> None:
        """Forget the timer."""
        self._context.timers.stop((self, Timer.DEFERRAL))
