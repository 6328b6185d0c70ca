"""Each row of docs/rfcs.md has a mutant, and each mutant is one change of a module that its row names.

Mutants of merging and of corrected mistakes have tests of their own (`tests.mutants.merging`,
`tests.mutants.corrections`).

`make mutants` runs them: a mutant that fails no test of its row is a rule that no test holds.
Mutants of random places are chosen by seed, and the tests of a place by a record of what they execute.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import pytest
from coverage import CoverageData

from tests.mutants import random_places
from tests.mutants.corrections import CORRECTIONS
from tests.mutants.equivalent import EQUIVALENT
from tests.mutants.merging import MERGING
from tests.mutants.places import changes
from tests.mutants.reach import Reach
from tests.mutants.record import Part
from tests.mutants.rfc_rows import ROOT, ROWS
from tests.mutants.rules import MUTANTS, Mutant

MODULE: Final = "cells/page/files.py"
FILE, OTHER_FILE = "tests/test_mutants.py", "tests/test_words.py"
"""Files of tests, which a record has to name."""


def test_every_rule_has_a_mutant() -> None:
    assert {mutant.rule for mutant in MUTANTS} == set(ROWS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: f"RFC {one.rule}: {one.text[:30]}")
def test_a_mutant_is_one_change_of_a_module_that_decides(mutant: Mutant) -> None:
    assert mutant.module in ROWS[mutant.rule][0]
    text = (ROOT / mutant.module).read_text()
    assert text.count(mutant.text) == 1
    ast.parse(text.replace(mutant.text, mutant.replaced_by))


def exists(test: str) -> bool:
    """Whether a file or folder of tests, or a test of a file, exists."""
    path, _, within = test.partition("::")
    name = within.rpartition("::")[2].partition("[")[0]
    return (ROOT / path).exists() and (not name or f"def {name}(" in (ROOT / path).read_text())


@pytest.mark.parametrize(
    "mutant", [*MERGING, *CORRECTIONS], ids=lambda one: f"{one.rule}: {one.text[:30]}"
)
def test_a_mutant_with_tests_is_one_change(mutant: Mutant) -> None:
    text = (ROOT / mutant.module).read_text()
    assert text.count(mutant.text) == 1
    assert mutant.replaced_by != mutant.text
    if mutant.module.endswith(".py"):
        ast.parse(text.replace(mutant.text, mutant.replaced_by))
    assert [test for test in mutant.tests if not exists(test)] == []


def test_each_correction_has_a_name_and_a_test() -> None:
    names = [mutant.rule for mutant in CORRECTIONS]
    assert len(set(names)) == len(names)
    assert all(mutant.tests for mutant in CORRECTIONS)


def changed(text: str) -> set[str]:
    source = text.encode()
    return {change.describe(source) for change in changes(source)}


def test_what_no_test_can_see_is_no_place() -> None:
    assert changed('def f(a: "T" = 1) -> "T":\n    "Text."\n    return a\n') == {
        "1 -> 2",
        "a -> None",
    }
    assert changed('x = cast("T", y)\n') == {"y -> None"}
    assert changed("class A(Struct, frozen=True, kw_only=True, order=True): ...\n") == {
        "True -> False"
    }
    assert changed("@dataclass(frozen=True, slots=True)\nclass A: ...\n") == set()
    assert changed("zip(x, strict=True)\n") == {"zip(x, strict=True) -> pass", "x -> None"}
    assert changed('from a import B\n\n__all__ = ["B"]\n') == set()
    assert changed('log.info("two words", x, f"{y}")\n') == {
        'log.info("two words", x, f"{y}") -> pass',
        "x -> None",
    }


def test_places_are_the_same_for_a_seed_whatever_else_is_there() -> None:
    rooms = random_places.Asked(rooms=("cells/page", "cells/history"), limit=100, seed=7)
    room = rooms._replace(rooms=("cells/page",), limit=20)
    both, page = random_places.chosen(rooms), random_places.chosen(room)
    of_page = [place.key for place in both if place.module.startswith("cells/page/")]
    assert of_page[:20] == [place.key for place in page][: len(of_page)]
    at = random_places.Asked(rooms=("cells",), limit=100, seed=7, at="cells/page/files.py")
    assert {place.module for place in random_places.chosen(at)} == {"cells/page/files.py"}


def record(tmp_path: Path, name: str, file: str, text: str, executed: dict[str, int]) -> Part:
    lines = CoverageData(basename=str(tmp_path / name))
    for test, line in executed.items():
        lines.set_context(f"{file}::{test}")
        lines.add_lines({MODULE: [line]})
    seconds = {f"{file}::{test}": 0.1 for test in executed}
    return Part(seconds, readers={}, files={file: "digest"}, texts={MODULE: text}, lines=lines)


def test_tests_of_a_line_follow_the_line_in_a_changed_module(tmp_path: Path) -> None:
    text = (ROOT / MODULE).read_text()
    number = next(n for n, line in enumerate(text.splitlines(), 1) if line.startswith("    return"))
    earlier = "# another line\n" + text
    of_line, other = {"test_line": number + 1}, {"test_other": number + 2}
    part = record(tmp_path, "a", FILE, earlier, of_line | other)
    tests = Reach([part]).tests(MODULE, number, number, 60.0)
    assert tests == [f"{FILE}::test_line", f"{FILE}::test_other"]
    later = record(tmp_path, "b", FILE, text, {"test_new": number})
    assert Reach([later, part]).tests(MODULE, number, number, 60.0) == [f"{FILE}::test_new"]
    reach = Reach([part])
    reach.leave_out([f"{FILE}::test_line"])
    assert reach.tests(MODULE, number, number, 60.0) == [f"{FILE}::test_other"]


def test_of_many_tests_of_a_line_each_file_has_its_turn(tmp_path: Path) -> None:
    text = (ROOT / MODULE).read_text()
    number = next(n for n, line in enumerate(text.splitlines(), 1) if line.startswith("    return"))
    many = record(tmp_path, "a", FILE, text, {f"test_{n}": number for n in range(9)})
    few = record(tmp_path, "b", OTHER_FILE, text, {"test_slow": number})
    few.seconds[f"{OTHER_FILE}::test_slow"] = 0.5
    assert Reach([many, few]).tests(MODULE, number, number, 0.7)[:3] == [
        f"{FILE}::test_0",
        f"{OTHER_FILE}::test_slow",
        f"{FILE}::test_1",
    ]


def test_what_a_file_executes_when_it_is_imported_is_of_all_its_tests(tmp_path: Path) -> None:
    text = (ROOT / MODULE).read_text()
    number = next(n for n, line in enumerate(text.splitlines(), 1) if line.startswith("    return"))
    rows = record(tmp_path, "a", OTHER_FILE, text, {"test_rows": number + 1})
    rows.lines.set_context(OTHER_FILE)
    rows.lines.add_lines({MODULE: [number]})
    quicker = record(tmp_path, "b", FILE, text, {"test_other": number + 1})
    quicker.seconds[f"{FILE}::test_other"] = 0.05
    chosen = Reach([rows, quicker]).tests(MODULE, number, number, 0.1)
    assert chosen == [f"{OTHER_FILE}::test_rows"]


def test_a_second_pass_has_other_tests_files_that_import_the_module_first(
    tmp_path: Path,
) -> None:
    module = "tests/mutants/reach.py"  # which this file imports
    text = (ROOT / module).read_text()
    number = next(n for n, line in enumerate(text.splitlines(), 1) if line.startswith("    return"))
    lines = CoverageData(basename=str(tmp_path / "lines"))
    for test, line in ((f"{OTHER_FILE}::test_words", number), (f"{FILE}::test_line", number)):
        lines.set_context(test)
        lines.add_lines({module: [line]})
    tests = [f"{FILE}::test_line", f"{FILE}::test_elsewhere", f"{OTHER_FILE}::test_words"]
    files = {FILE: "digest", OTHER_FILE: "digest"}
    reach = Reach([Part(dict.fromkeys(tests, 0.1), {}, files, {module: text}, lines)])
    first = reach.tests(module, number, number, 0.1)
    assert first == [f"{FILE}::test_line"]
    second = reach.tests(module, number, number, 10.0, first)
    assert second == [f"{FILE}::test_elsewhere", f"{OTHER_FILE}::test_words"]


def test_a_file_that_is_deleted_has_no_tests(tmp_path: Path) -> None:
    text = (ROOT / MODULE).read_text()
    gone = record(tmp_path, "a", "tests/test_deleted.py", text, {"test_old": 1})
    assert Reach([gone]).names == set()
    present = record(tmp_path, "b", FILE, text, {"test_new": 1})
    assert Reach([gone, present]).names == {f"{FILE}::test_new"}


def test_each_equivalent_mutant_is_one_of_its_line() -> None:
    modules = {entry.module for entry in EQUIVALENT}
    places = {
        place[0:1] + place[2:4] for module in modules for place in random_places.places(module)
    }
    assert [entry[:3] for entry in EQUIVALENT if entry[:3] not in places] == []
