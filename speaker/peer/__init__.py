"""One peer: its connections through the state machine, collisions, damping, and its status.

* `session`, `message_stream`, `update_run`: one connection, and the messages in its octets
* `peer`, `peer_context`, `connections`: the peer, with one connection or, during a collision, two
* `session_end`, `retry_backoff`: how the last session ended, and when the next attempt is made
* `open_exchange`: the OPEN that is sent, and the validation of the one received
* `collision`, `damping`: pure rules
* `peer_status`, `addresses`: text for operators; addresses as octets
* `engine_context`, `actions`: what all peers share, and the actions for the shell

Imports go one way: a session states in a protocol what it needs of its peer, a peer what it needs of
its instance. Nothing here knows a socket, a clock, or another peer.
"""
