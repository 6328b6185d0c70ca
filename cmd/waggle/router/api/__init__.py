"""The router's API: one JSON object per line over a Unix socket with access for its owner only.

For tests, the demo's live table and benchmarks. Requests have ``op``: ``announce`` and
``withdraw`` (with ``prefixes`` and attributes), ``peers``, ``routes`` (with ``table``, ``family``,
``peer``, ``prefix``, ``limit``); answers have ``ok``, and ``error`` if that is false. Routes are read
and sent in slices, in turn with the sessions. The length of lines and the number of clients are
limited: the longest idle client makes room.
"""

from waggle.router.api.server import Api, ApiError

__all__ = ["Api", "ApiError"]
