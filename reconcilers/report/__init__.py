"""Reports of a node to the API server: the statuses of objects, and Events.

`status_rows` computes the statuses as rows and `statuses` writes them; `occurrences` finds what
becomes an Event, `events` correlates and rate-limits, `event_objects` writes.
"""
