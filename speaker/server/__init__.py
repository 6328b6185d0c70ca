"""The speaker on asyncio: sockets, the listening ones too, and the clock around the pure core.

* `speaker`: the `Speaker` that programs use
* `transports`, `connection`: TCP connections
* `instances`, `listener`, `sockets`: listening, and socket options
* `causes`: spans of what was told to whom

Nothing here decides about BGP; docs/speaker.md says what a shell must do.
"""

from speaker.server.speaker import Speaker

__all__ = ["Speaker"]
