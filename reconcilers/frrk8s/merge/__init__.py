"""Merges the objects of a node to its routers, or returns the conflicts. Pure.

The result does not depend on the order of the objects. Every conflict is found, not the first alone.

Objects of other dialects are merged by the same code, so that a conflict names both. Such a dialect
declares ``feeds = "frrk8s"`` and returns a `reconcilers.dialect.Feed` with a `Translated` for each
of its objects::

    Translated(
        origin=ref_to(BGP_PEER, row),  # named in conflicts, in place of the translated object
        row=FRRConfiguration(metadata=..., spec=...),  # its session, translated; one for each object
        fields={"spec.bgp.routers.neighbors.port": "spec.peerPort"},  # paths without indices
        rules=rules,  # of the feeding dialect's own routes for the neighbours of this row, or None
    )

* A BGPPeer is a router with one neighbour, a BFDProfile a BFD profile. Several with one origin are
  several entries of that object.
* A local preference that is to be compared with others is a further unit of the object that
  sets it, with the prefix and ``withLocalPref``.
* The age of the object, for ``isolate``, is ``row.metadata.creation_timestamp``.
* The feeding dialect's route sources contribute to the route sets of the peers: ``contributions`` is
  called with `reconcilers.frrk8s.route_sets.RouteSet`, whose ``translated`` has the rules of its
  peers. Rules have a ``name``, which changes with them.
* Passwords: a field is a ``SecretValue`` in the row, at the path that ``fields`` gives; a Secret is a
  ``passwordSecret``, read in the namespace of ``row.metadata``.
"""

from reconcilers.frrk8s.merge.merger import Merger
from reconcilers.frrk8s.merge.union import Merge, MergedNeighbor, MergedRouter

__all__ = ["Merge", "MergedNeighbor", "MergedRouter", "Merger"]
