"""State of FRR-k8s's dialect from one compilation of a node to the next, and over restarts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from reconcilers.dialect import Objects, StoredState
from reconcilers.frrk8s.in_effect import InEffect
from reconcilers.frrk8s.last_good import LastGood, restored
from reconcilers.frrk8s.merge import MergedRouter
from reconcilers.frrk8s.route_sets import RouteSets

if TYPE_CHECKING:
    from reconcilers.frrk8s.dialect import Frrk8sDialect


class State(NamedTuple):
    """The memory from one compilation of a node to the next."""

    good: LastGood = LastGood()
    """The configuration in effect: with ``keep`` the last good state."""
    translated: Mapping[str, Objects] = {}
    """By feeding dialect, its objects of that state."""
    sets: RouteSets = RouteSets()
    effect: InEffect | None = None
    """Of the last compilation."""
    routers: tuple[MergedRouter, ...] = ()
    """In effect, with the rules of feeding dialects."""


def _restored(dialect: Frrk8sDialect, octets: bytes) -> State:
    """Return the last good state of an earlier process. Raises ValueError."""
    return State(restored(octets)) if dialect.options.on_conflict == "keep" else State()


STORED_STATE: Final = StoredState(
    lambda state: state.good.memory, lambda good: good.encode(), _restored
)
"""The objects of the last good state; in every mode, as the next process may have ``keep``."""
