"""docs/interop.md is rendered from the matrix, and only a complete run writes it."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.interop import matrix
from tests.support.interop_page import PAGE, InteropPage

VERSIONS = {kind: f"{kind.upper()} 1.{number}" for number, kind in enumerate(matrix.COLUMNS)}


def report(feature: str, kind: str, outcome: str = "passed", when: str = "call") -> Any:  # noqa: ANN401
    return SimpleNamespace(
        user_properties=[("cell", [feature, kind, VERSIONS[kind]])],
        when=when,
        passed=outcome == "passed",
        failed=outcome == "failed",
    )


def test_the_page_has_the_cells_of_the_matrix() -> None:
    page = PAGE.read_text()
    assert matrix.render(matrix.versions_of(page)) == page


def test_every_row_is_a_test() -> None:
    rows = [
        cast("ast.Constant", decorator.args[0]).value
        for file in Path(__file__).parent.glob("test_matrix*.py")
        for function in ast.parse(file.read_text()).body
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for decorator in function.decorator_list
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) in {"cell", "scenario"}
    ]
    assert sorted(cast("list[str]", rows)) == sorted((*matrix.FEATURES, *matrix.BFD_FEATURES))


def test_reasons_and_notes_are_of_cells() -> None:
    for table in (matrix.BGP, matrix.BFD):
        everything = {(feature, kind) for feature in table.features for kind in table.columns}
        assert set(table.cannot) <= everything
        assert set(table.notes) <= set(table.cells)


def test_a_run_of_all_cells_writes_the_page(tmp_path: Path) -> None:
    path = tmp_path / "interop.md"
    page = InteropPage(path)
    for feature, kind in matrix.CELLS:
        page.pytest_runtest_logreport(report(feature, kind, when="setup"))
        page.pytest_runtest_logreport(report(feature, kind))
    page.pytest_sessionfinish()
    assert path.read_text() == matrix.render(VERSIONS)
    assert matrix.versions_of(path.read_text()) == VERSIONS


@pytest.mark.parametrize("missing", ["absent", "failed", "failed afterwards"])
def test_a_run_without_a_cell_writes_nothing(missing: str, tmp_path: Path) -> None:
    path = tmp_path / "interop.md"
    page = InteropPage(path)
    for feature, kind in matrix.CELLS[1:]:
        page.pytest_runtest_logreport(report(feature, kind))
    if missing == "failed":
        page.pytest_runtest_logreport(report(*matrix.CELLS[0], outcome="failed"))
    elif missing == "failed afterwards":
        page.pytest_runtest_logreport(report(*matrix.CELLS[0]))
        page.pytest_runtest_logreport(report(*matrix.CELLS[0], outcome="failed", when="teardown"))
    page.pytest_sessionfinish()
    assert not path.exists()
