"""BMP (RFC 7854): exports sessions and routes to monitoring stations.

* `exporter`: the engine's observer: events into messages, once for all stations that want them
* `station`: one station's connection, its queue, its pauses, and its pending work
* `subjects`: who a message is about: per-peer headers, Peer Up, Peer Down
* `updates`: routes as they are held into UPDATEs
* `work`: whole tables and statistics, in slices

Part of the pure context. It reads sessions and RIBs and never changes them, and an error in it ends
connections to stations, never a session.
"""

from speaker.engine.monitoring.exporter import Exporter

__all__ = ["Exporter"]
