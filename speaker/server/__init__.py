"""The speaker on asyncio: sockets, listening sockets, and the clock around the pure core.

* `speaker`: the `Speaker` that programs use
* `input_loop`: inputs into the core, its actions out of it, once per turn of the event loop
* `transports`, `connection`, `read_queue`: TCP connections
* `instance_listeners`, `listener`, `sockets`: listening sockets, and socket options
* `discovery`: IPv6 neighbours of unnumbered peers
* `free_memory`: collections and free memory of the process, at times that delay no session
* `sliced_reader`: long reads in slices, in turn with the sessions
* `trace_links`, `received_spans`: spans of sent and of received UPDATEs
* `recording_file`: the file of a recording

Nothing here decides about BGP; docs/speaker.md has the contract of a shell.
"""

from speaker.rib.prefix_table import FORM as PREFIX_TABLE_FORM
from speaker.server.free_memory import (
    MemoryRelease,
    abandon_memory,
    bound_collections,
    postpone_collections,
    settle_memory,
)
from speaker.server.sliced_reader import SlicedReader
from speaker.server.speaker import Speaker

__all__ = [
    "PREFIX_TABLE_FORM",
    "MemoryRelease",
    "SlicedReader",
    "Speaker",
    "abandon_memory",
    "bound_collections",
    "postpone_collections",
    "settle_memory",
]
