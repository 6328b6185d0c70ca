"""The database cell: the one in-memory database that all tables live in.

It holds no table of its own; every room that has tables makes them in its own cell.
"""

from __future__ import annotations

from cells.hive import Wiring
from statedb import Database

WIRING = Wiring(
    provides=(Database,),
)
