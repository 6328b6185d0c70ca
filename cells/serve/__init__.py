"""The server of the local API, from the socket to the items; `cells.api` is its interface.

`server` is the cell's lifecycle, `api_socket` the socket, `handlers` the HTTP side. `speaker_facts` are
the sessions and routes of any speaker, `facts` those of an agent with their origins, `agent_resources`
the paths of every agent. Reads and actions only: no request changes the configuration, and no secret is
part of an answer.
"""
