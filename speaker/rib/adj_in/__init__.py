"""The Adj-RIB-In of one session (RFC 4271 section 3.2): all that a peer announced.

* `adj_rib_in`: sessions that begin and end, another import policy
* `announced_routes`: announcements and withdrawals
* `held_routes`: what is held, and how it is read
* `shared`: routes held in the Loc-RIB alone, where the import policy leaves them unchanged;
  `prefix_log` lists their prefixes
* `path_ids`: path identifiers (RFC 7911) and their sources
* `counted_prefixes`: routes that are counted and not kept
* `marked_routes`, `stale_mark`: which routes are stale
* `departed`: the routes of an ended session, which leave the Loc-RIB in steps
* `reapply`: the keys to which a changed policy is still to be applied
"""

from speaker.rib.adj_in.adj_rib_in import AdjRibIn
from speaker.rib.adj_in.departed import DepartedRoutes
from speaker.rib.adj_in.stale_mark import StaleMark

__all__ = ["AdjRibIn", "DepartedRoutes", "StaleMark"]
