"""Route selection (RFC 4271 section 9.1.2), with the reason of each choice, and equal paths.

Pure functions over the eligible paths of one prefix. MED is compared only between paths from the same
neighbouring AS, and over the whole set at once, so that the result does not depend on the order in
which the paths were received. The interior cost (section 9.1.2.2 e) is a function from outside: a path
to the metric of its next hop.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import TypeAlias

from speaker.api.port import UNREACHABLE
from speaker.rib.path import Path

Metric: TypeAlias = Callable[[Path], int]
"""The IGP metric of a path's next hop; the smaller one is better."""


class Reason(enum.Enum):
    """Why a path is best, or the first rule by which it lost; the value is shown to operators."""

    BEST = "best"
    UNREACHABLE = "no route leads to the next hop"
    LOCAL = "a route of this router is preferred"
    LONG_LIVED_STALE = "long-lived stale"
    LOCAL_PREFERENCE = "lower local preference"
    AS_PATH = "longer AS path"
    ORIGIN = "worse origin"
    MED = "higher MED"
    EBGP = "an eBGP path is preferred over iBGP"
    IGP_METRIC = "higher metric to the next hop"
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
    Reason.IGP_METRIC,
    Reason.ROUTER_ID,
    Reason.CLUSTER_LIST,
    Reason.ADDRESS,
    Reason.ADDRESS,
    Reason.IMPORTED,
    Reason.EQUAL,
)


def best(paths: Sequence[Path], metric: Metric | None = None) -> Path:
    """Return the best path; ``paths`` is not empty."""
    paths = _reachable(paths, metric)
    ranks = [path.rank for path in paths]
    early = min([rank.early for rank in ranks])
    candidates = [path for path, rank in zip(paths, ranks, strict=True) if rank.early == early]
    if len(candidates) == 1:
        return candidates[0]
    return min(_without_higher_med(candidates), key=_late_key(metric))


def order(paths: Sequence[Path], metric: Metric | None = None) -> tuple[Path, ...]:
    """Return the same paths, best first; ``paths`` is not empty."""
    first = best(paths, metric)
    return (first, *(path for path in paths if path is not first))


def equal_paths(
    paths: Sequence[Path], *, maximum: int, relax: bool, metric: Metric | None = None
) -> tuple[Path, ...]:
    """Return the best path and the paths equal to it up to the router ID, at most ``maximum``.

    Equal are steps a to e of section 9.1.2.2, and what precedes them; and the AS paths, unless
    ``relax`` leaves it at their lengths. ``paths`` is not empty. Best first, in the order of the
    remaining steps: the same set has the same order, however the paths arrived.
    """
    paths = _reachable(paths, metric)
    if len(paths) == 1 or maximum == 1:
        return (best(paths, metric),)
    early = min([path.rank.early for path in paths])
    candidates = _without_higher_med([path for path in paths if path.rank.early == early])
    key = _late_key(metric)
    candidates.sort(key=key)
    first = candidates[0]
    steps = key(first)[:2]
    as_path = first.attributes.as_path
    equal = [
        path
        for path in candidates
        if key(path)[:2] == steps and (relax or path.attributes.as_path == as_path)
    ]
    return tuple(equal[:maximum])


def explain(path: Path, paths: Sequence[Path], metric: Metric | None = None) -> Reason:
    """Return why one of ``paths`` is best, or the first rule by which it lost to the best one."""
    first = best(paths, metric)
    if path is first:
        return Reason.BEST
    if metric is not None and metric(first) < UNREACHABLE <= metric(path):
        return Reason.UNREACHABLE
    for reason, ours, theirs in zip(_EARLY, path.rank.early, first.rank.early, strict=True):
        if ours != theirs:
            return reason
    if any(
        other.rank.neighbor_as == path.rank.neighbor_as and other.rank.med < path.rank.med
        for other in paths
        if other.rank.early == path.rank.early
    ):
        return Reason.MED
    key = _late_key(metric)
    for reason, mine, its in zip(_LATE, key(path), key(first), strict=True):
        if mine != its:
            return reason
    return Reason.EQUAL


def _reachable(paths: Sequence[Path], metric: Metric | None) -> Sequence[Path]:
    """Return the paths with a reachable next hop, or all if there is none (section 9.1.2)."""
    if metric is None or len(paths) == 1:
        return paths
    return [path for path in paths if metric(path) < UNREACHABLE] or paths


def _late_key(metric: Metric | None) -> Callable[[Path], tuple[object, ...]]:
    """Return the keys behind MED: eBGP, IGP metric, and the others of `speaker.rib.path.Rank`."""
    if metric is None:
        return _without_metric

    def with_metric(path: Path) -> tuple[object, ...]:
        ebgp, _, *rest = path.rank.late
        return (ebgp, metric(path), *rest)

    return with_metric


def _without_metric(path: Path) -> tuple[object, ...]:
    return path.rank.late


def _without_higher_med(paths: Sequence[Path]) -> list[Path]:
    lowest: dict[int, int] = {}
    for path in paths:
        known = lowest.get(path.rank.neighbor_as)
        if known is None or path.rank.med < known:
            lowest[path.rank.neighbor_as] = path.rank.med
    return [path for path in paths if path.rank.med == lowest[path.rank.neighbor_as]]
