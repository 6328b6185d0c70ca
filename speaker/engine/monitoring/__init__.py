"""BMP (RFC 7854): exports sessions and routes to monitoring stations.

* `bmp_observer`: the engine's observer: events into messages, once for all stations that want them
* `station`: one station's connection, its queue, its retry backoff, and its pending table dumps
* `monitored_peers`: sessions and Loc-RIBs as BMP peers: per-peer headers, Peer Up, Peer Down
* `peer_registry`: which of them exist, and their distinguishers
* `routes_as_updates`: routes as they are held into UPDATEs
* `table_dump`: whole tables and statistics, in slices

Part of the pure core. Reads sessions and RIBs and never changes them; an error in it ends
connections to stations, never a session.
"""

from speaker.engine.monitoring.bmp_observer import Exporter

__all__ = ["Exporter"]
