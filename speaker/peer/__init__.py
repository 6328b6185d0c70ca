"""One peer: its sessions through the state machine, collisions, damping, and what people see.

* `session`, `stream`: one connection, and its octets into messages
* `peer`: the peer, with one connection or, while they collide, two; how sessions end, and when
  the next one is tried
* `opening`: our OPEN, and the judgement of the peer's
* `collision`, `damping`: pure rules
* `telling`, `addresses`: words and octets
* `core`, `actions`: what all peers share, and the way out to the shell

Nothing here knows a socket, a clock, or another peer.
"""
