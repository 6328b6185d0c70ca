"""The page cell: its files and its stream on the agent's socket, and the listener on an address."""

from __future__ import annotations

from cells.hive import Wiring
from cells.page.files import files
from cells.page.live import live_stream
from cells.page.server import PageServer

WIRING = Wiring(
    invokes=(PageServer,),
    contributes=(files, live_stream),
)
