"""Snapshots of the tables on the node's disk, for a start without an API server.

Rows as they are in the tables, of every kind but Secrets: nothing secret is ever in a snapshot.
"""

from resources.snapshot.codec import Snapshot, SnapshotError, decode, encode
from resources.snapshot.files import read, write

__all__ = ["Snapshot", "SnapshotError", "decode", "encode", "read", "write"]
