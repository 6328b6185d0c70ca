"""The page: a read-only dashboard of an agent for browsers, on its socket and on an address.

`files` are the static files, `live` the stream of revisions, `access` decides who
may see it on an address, and `server` bounds what a client there can take.
"""
