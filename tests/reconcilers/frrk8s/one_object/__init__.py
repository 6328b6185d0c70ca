"""Tests of one object alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconcilers.frrk8s.one_object import compile_unit
from reconcilers.frrk8s.unit_parts import Compiled, NeighborPart, Unit, VrfPrefixes
from reconcilers.sliced_work import Pieces, finish
from tests.reconcilers.frrk8s.build import neighbor, router, unit


def compiled(one: Unit, elsewhere: VrfPrefixes | None = None) -> Compiled:
    """Compile an object; ``elsewhere`` are the VRFs of other objects of the node."""
    return finish(compile_unit(one, elsewhere or {}, Pieces()))


def of_router(*neighbors: Mapping[str, Any], **more: Any) -> Compiled:  # noqa: ANN401  JSON
    """Compile an object with one router."""
    return compiled(unit("a", router(*neighbors, **more)))


def of_neighbor(**more: object) -> NeighborPart:
    """Compile an object with one neighbour, which breaks no rule."""
    found = of_router(neighbor(**more), prefixes=["198.18.1.0/24"])
    assert found.errors == ()
    return found.routers[0].neighbors[0]


def broken(**more: object) -> list[tuple[str, str]]:
    """Return field and rule of each error of a neighbour with these settings."""
    found = of_router(neighbor(**more), prefixes=["198.18.1.0/24"])
    return [(error.path.rpartition("neighbors[0].")[2], error.message) for error in found.errors]
