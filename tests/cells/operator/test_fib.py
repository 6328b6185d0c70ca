"""Whether objects that accept routes are partially applied: dialects whose routes are installed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from cells.hive import Cell, Wiring, load
from cells.hive.hive import Hive
from cells.intent.cell import IntentLoop
from cells.intent.installing_dialects import InstallingDialects
from cells.operator import in_process
from waggle_agent.__main__ import CELLS as AGENT_CELLS
from waggle_operator.__main__ import CELLS


@pytest.mark.parametrize(
    ("fib", "installed"),
    [("auto", {"frrk8s"}), ("true", {"cilium", "frrk8s"}), ("false", set())],
)
def test_the_operator_takes_the_routes_of_dialects_as_installed(
    fib: str, installed: set[str]
) -> None:
    given: list[frozenset[str]] = []

    def look(routes: InstallingDialects) -> None:
        given.append(routes.dialects)

    probe = Cell(name="probe", description="Looks.", wiring=Wiring(invokes=(look,)))
    cells = (*CELLS, probe)
    flags = {"--fib": fib, "enable_cell": ["frrk8s"], "--kubeconfig": "/nonexistent"}
    Hive(cells, load(cells, flags=flags))
    assert given == [installed]


@pytest.mark.parametrize("fib", [True, False])
def test_agents_compile_with_the_dialects_whose_routes_they_install(
    fib: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: dict[str, object] = {}

    def planner(*_: object, installing: object, **__: object) -> object:
        return given.setdefault("operator", installing)

    def look(loop: IntentLoop) -> None:
        given["intent"] = loop._installing

    monkeypatch.setattr(in_process, "Planner", planner)
    monkeypatch.setattr(in_process, "InProcessOperator", lambda *_: SimpleNamespace(followed=()))
    probe = Cell(name="probe", description="Looks.", wiring=Wiring(invokes=(look,)))
    cells = (*AGENT_CELLS, probe)
    flags = {
        "--fib": str(fib).lower(),
        "enable_cell": ["frrk8s"],
        "--manifests": str(tmp_path),
        "--node-name": "n1",
    }
    Hive(cells, load(cells, flags=flags))
    installed = frozenset({"cilium", "frrk8s"} if fib else ())
    assert given == {"operator": installed, "intent": installed}
