"""The speaker cell: the BGP speaker of this process, its events, health and metrics.

`events` tells what happens at sessions, `sessions` how each one is, `metrics` both in numbers, and
`cell` puts them together. What the speaker says only flows out of here. Labels of metrics are names
that our own configuration gives, never text of a peer.
"""
