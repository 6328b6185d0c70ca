"""BFD for BGP peers: the sessions of the intent, and what a path that is down does to BGP.

* `process`: the program ``waggle-bfd``, which has the sessions, and the messages that it understands
* `wanted_session`: the session of a peer, from its settings and addresses
* `reconciler`: keeps the sessions of the process as they are wanted
* `coupling`: which changes of state end a BGP session (RFC 5882)
* `rows`: what is known of sessions, as rows of StateDB
"""
