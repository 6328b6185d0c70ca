"""The history cell: the last changes of objects, routes and sessions, each with its cause.

`log` keeps entries within its limits, `rows` and `events` make them of rows of tables and of events of
the speaker, `following` reads both, `file` keeps them over a restart, and `api` answers.
"""
