"""The report cell: writes an agent's status and Events into the cluster that it reads.

`statuses` writes the status of the objects that the node reports on, `occurrences` finds occurrences
for Events, `events` writes them, `cell` composes them. A failed write changes no advertised route.
"""
