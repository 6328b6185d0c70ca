"""One BGP instance: its peers and sessions, inbound and outbound updates.

* `instance`: peers, incoming connections, sessions up and down
* `session_setup`: an Established session's Adj-RIB-In, with the stale routes of the last one
* `kept_routes`: the last sessions of peers whose routes are stale, or being removed
* `originated_prefixes`: changes of the originated prefixes, in slices
* `route_exchange`, `plain_updates`: received UPDATEs, one at a time and in runs
* `outbound_updates`: Loc-RIB, route sets, update groups, route refresh
* `peers_by_address`: which peer an incoming connection belongs to
* `changed_settings`: the effect of a changed configuration on routes
* `dynamic_peers`: ranges, from which any address may connect; `source_history`: sessions that failed
"""

from speaker.engine.instance.instance import DECONFIGURED, Instance

__all__ = ["DECONFIGURED", "Instance"]
