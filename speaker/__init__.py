"""A BGP-4 speaker: a pure core that never touches sockets, clocks or chance, and an asyncio shell.

A library of its own: it knows nothing of Kubernetes, of databases or of the rest of this project.
From top to bottom, and imports go only downwards: ``server``, ``engine``, ``peer``, ``rib``,
``api``, ``fsm`` and ``timers``, ``message``, ``attribute``, ``nlri``, ``negotiated``, ``capability``,
``wire``, ``errors`` and ``iana``. ``bfd`` stands apart: it imports none of these, and none imports it.
docs/speaker.md describes the core and what a shell has to do.
"""
