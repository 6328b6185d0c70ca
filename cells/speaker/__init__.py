"""The speaker cell: the BGP speaker of this process, its events, health and metrics.

`events` publishes session events, `sessions` keeps the state of each session, `metrics` exports both,
and `cell` composes them. Nothing here calls back into the speaker. Labels of metrics are names of the
configuration, never text of a peer.
"""
