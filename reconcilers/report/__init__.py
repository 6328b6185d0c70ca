"""What a node reports to the API server: the statuses of objects, and Events.

`object_statuses` computes the statuses as rows and `status_writer` writes them; `occurrences` finds
what becomes an Event, `events` correlates and rate-limits, `event_writer` writes.
"""
