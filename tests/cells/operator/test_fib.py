"""Whether objects that accept routes are partially applied, as agents install the routes or do not."""

from __future__ import annotations

import pytest

from cells.hive import Cell, Group, Wiring, load
from cells.hive.hive import Hive
from reconcilers.dialect import Dialect
from waggle_operator.__main__ import CELLS


@pytest.mark.parametrize(
    ("fib", "installed"),
    [("auto", {"frrk8s"}), ("true", {"cilium", "frrk8s"}), ("false", set())],
)
def test_the_operator_takes_the_routes_of_dialects_as_installed(
    fib: str, installed: set[str]
) -> None:
    found: list[Dialect] = []

    def look(dialects: Group[Dialect]) -> None:
        found.extend(dialects)

    probe = Cell(name="probe", description="Looks.", wiring=Wiring(invokes=(look,)))
    cells = (*CELLS, probe)
    flags = {"--fib": fib, "enable_cell": ["frrk8s"], "--kubeconfig": "/nonexistent"}
    Hive(cells, load(cells, flags=flags))
    assert {dialect.name for dialect in found if dialect.routes_installed} == installed
