"""The api cell: the agent's local API for ``waggle``, over a Unix socket that only its user opens.

`model` is the stable interface, `client` sends requests, `server` is the HTTP side, `resource` what a
path is, `agent_resources` the paths of every agent, `facts` the state that they return, and `cell` puts
them together. Reads only; no request changes anything, and no secret is part of an answer.
"""
