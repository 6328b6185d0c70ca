"""Route selection (RFC 4271 section 9.1.2), with the reason of each choice.

Pure functions over the eligible paths of one prefix. MED is compared only between paths from the same
neighbouring AS, and over the whole set at once, so that the result does not depend on the order in
which the paths were received.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from speaker.rib.path import Path


class Reason(enum.Enum):
    """Why a path is best, or the first rule by which it lost; the value is shown to operators."""

    BEST = "best"
    LOCAL = "a route of this router is preferred"
    LONG_LIVED_STALE = "long-lived stale"
    LOCAL_PREFERENCE = "lower local preference"
    AS_PATH = "longer AS path"
    ORIGIN = "worse origin"
    MED = "higher MED"
    EBGP = "an eBGP path is preferred over iBGP"
    ROUTER_ID = "higher router ID"
    CLUSTER_LIST = "longer cluster list"
    ADDRESS = "higher peer address"
    IMPORTED = "a route of the instance itself is preferred over an imported one"
    EQUAL = "same peer, higher path identifier"


_EARLY = (
    Reason.LOCAL,
    Reason.LONG_LIVED_STALE,
    Reason.LOCAL_PREFERENCE,
    Reason.AS_PATH,
    Reason.ORIGIN,
)
_LATE = (
    Reason.EBGP,
    Reason.ROUTER_ID,
    Reason.CLUSTER_LIST,
    Reason.ADDRESS,
    Reason.ADDRESS,
    Reason.IMPORTED,
    Reason.EQUAL,
)


def best(paths: Sequence[Path]) -> Path:
    """Return the best path; ``paths`` is not empty."""
    ranks = [path.rank for path in paths]
    early = min([rank.early for rank in ranks])
    candidates = [path for path, rank in zip(paths, ranks, strict=True) if rank.early == early]
    if len(candidates) == 1:
        return candidates[0]
    return min(_without_higher_med(candidates), key=_late_key)


def order(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return the same paths, best first; ``paths`` is not empty."""
    first = best(paths)
    return (first, *(path for path in paths if path is not first))


def explain(path: Path, paths: Sequence[Path]) -> Reason:
    """Return why one of ``paths`` is best, or the first rule by which it lost to the best one."""
    first = best(paths)
    if path is first:
        return Reason.BEST
    for reason, ours, theirs in zip(_EARLY, path.rank.early, first.rank.early, strict=True):
        if ours != theirs:
            return reason
    if any(
        other.rank.neighbor_as == path.rank.neighbor_as and other.rank.med < path.rank.med
        for other in paths
        if other.rank.early == path.rank.early
    ):
        return Reason.MED
    for reason, mine, its in zip(_LATE, path.rank.late, first.rank.late, strict=True):
        if mine != its:
            return reason
    return Reason.EQUAL


def _late_key(path: Path) -> tuple[object, ...]:
    return path.rank.late


def _without_higher_med(paths: Sequence[Path]) -> list[Path]:
    lowest: dict[int, int] = {}
    for path in paths:
        known = lowest.get(path.rank.neighbor_as)
        if known is None or path.rank.med < known:
            lowest[path.rank.neighbor_as] = path.rank.med
    return [path for path in paths if path.rank.med == lowest[path.rank.neighbor_as]]
