"""The routing information bases of RFC 4271 section 3.2, and the decision process between them.

* `path`, `local`: shared attribute sets, received or our own
* `adj_in`, `accept`: what a peer said, and what of it may be used
* `decision`, `loc_rib`: the choice, with its reasons; also the table of a route set
* `export`, `adj_out`, `pack`: what is told to whom, encoded once for all who are told the same

Knows paths and prefixes, no sessions and no sockets.
"""
