"""The server of the local API, from the socket to the items; `cells.api` is its interface.

`server` is the cell's lifecycle, `api_socket` the socket, `handlers` the HTTP side. `routing` are the
sessions and routes of any speaker. `agent_resources` are the paths of every agent, and what each of
them reads has a module: `status`, `agent_routing`, `missing_peers`, `explain`, `received`. Reads and
actions only: no request changes the configuration, and no secret is part of an answer.
"""
