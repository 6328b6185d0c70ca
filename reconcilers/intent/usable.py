"""Whether an agent has the configuration that it should have. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reconcilers.model import Problem
from resources.core.kinds import ENDPOINT_SLICE, NAMESPACE, SECRET, SERVICE
from resources.source import SourceProblem

NOT_CONFIGURING: Final = frozenset(
    kind.name for kind in (ENDPOINT_SLICE, NAMESPACE, SECRET, SERVICE)
)
"""Kinds without which there may be peers all the same."""


def reason_unusable(
    problems: Iterable[SourceProblem],
    compiled: Iterable[Problem] = (),
    *,
    peers: int,
    remembered: int,
) -> str:
    """Return why a configuration is not usable, or is not there; empty if it is.

    ``compiled`` are the problems of the intent. ``peers`` is the number of peers, ``remembered`` that
    of the last run, 0 where it is ignored.
    """
    lost = sorted(problem for problem in problems if problem.lost)
    for problem in lost:
        if problem.object is None and not problem.document:
            return f"a file cannot be used: {problem}"
    if peers:
        return ""
    for problem in lost:
        if problem.object is None or problem.object.kind not in NOT_CONFIGURING:
            return f"there is no peer, and an object cannot be used: {problem}"
    for unsupported in sorted(compiled):
        if unsupported.unconfigured and unsupported.category == "unsupported":
            # A valid object with a value of a later release, at each of the node's peers.
            where = ": ".join(
                part for part in (str(unsupported.objects[0]), unsupported.field) if part
            )
            return f"there is no peer, as none can be used: {where}: {unsupported.message}"
    if remembered:
        return (
            f"there is no peer, and the last run had {remembered} "
            "(--mass-withdraw-hold=0 accepts that)"
        )
    return ""
