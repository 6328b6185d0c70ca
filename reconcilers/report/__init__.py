"""What an agent says of itself: the status of its node's NodeConfig, and Events. Pure.

* `errors`: what could not be done, by instance
* `node`: the status
* `events`: what has happened, as Events with bounds
* `round`: the status worked out from the tables
"""
