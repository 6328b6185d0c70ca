"""One connection in the state machine, with its timers and the UPDATEs that it receives.

* `session`: the state machine's actions, the connection, and every message
* `session_owner`: what a session needs of its peer
* `event_tables`: the events of errors, and of timers that expire
* `session_timers`: the timers, by RFC 4271 section 8, and the actions that start and stop them
* `sent_notifications`: the NOTIFICATIONs of the state machine and of errors
* `message_fault`: the report of an internal error
* `update_receiver`: fast path for UPDATEs in Established
"""

from speaker.peer.session.session import Session
from speaker.peer.session.session_owner import SessionOwner
from speaker.peer.session.update_receiver import PlainUpdateHandler, RouteHandler

__all__ = [
    "PlainUpdateHandler",
    "RouteHandler",
    "Session",
    "SessionOwner",
]
