"""One connection's run through the state machine, and the timers that it runs by."""

from speaker.peer.session.session import COLLISION_WAIT, Session

__all__ = ["COLLISION_WAIT", "Session"]
