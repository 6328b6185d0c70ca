"""The report cell: writes an agent's status and Events into the cluster that it reads.

`statuses` writes the NodeConfig's status, `occurrences` finds what is worth an Event, `events` writes
those, `cell` puts them together. What an API server refuses, or that it is away, changes nothing of
what is advertised.
"""
