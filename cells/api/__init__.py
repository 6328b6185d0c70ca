"""The api cell: what ``waggle`` asks a running agent, over a Unix socket that only its user opens.

`model` is the stable interface, `client` asks, `server` is the HTTP side, `facts` what is told, and
`cell` puts them together. Reads only; nothing can be changed through it, and no secret is part
of an answer.
"""
