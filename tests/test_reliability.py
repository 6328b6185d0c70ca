"""docs/reliability.md names tests: each has to exist, and none of the catalogue may be missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reliability.md").read_text()
CATALOGUE = [*range(1, 15), *range(20, 28), *range(30, 48), *range(50, 54)]
"""The numbers of the catalogue that are the speaker's, and the numbers of text, API and files."""
FAULTS = [*range(1, 16), 20, 21]
"""The faults that an agent of a cluster has to survive; others may be on the page as well."""


def _tests() -> set[str]:
    pattern = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
    files = (ROOT / "tests").rglob("test_*.py")
    return {name for file in files for name in pattern.findall(file.read_text())}


TESTS = _tests()
NAMED = set(re.findall(r"`(test_\w+)`", PAGE))


def test_every_test_that_the_page_names_exists() -> None:
    assert len(NAMED) > 100
    assert NAMED <= TESTS, sorted(NAMED - TESTS)


def test_every_test_of_a_record_is_on_the_page() -> None:
    records = {name for name in TESTS if re.match(r"test_(cve|go)_\d{4}_\d+", name)}
    assert len(records) > 40
    assert records <= NAMED, sorted(records - NAMED)


@pytest.mark.parametrize("number", CATALOGUE)
def test_every_number_has_a_row_whose_tests_bear_it(number: int) -> None:
    (row,) = re.findall(rf"^\| H{number:02} \|.*$", PAGE, re.MULTILINE)
    names = re.findall(r"`(test_\w+)`", row)
    assert names
    assert all(f"h{number:02}_" in name for name in names)


@pytest.mark.parametrize("number", FAULTS)
def test_every_fault_has_a_row(number: int) -> None:
    assert re.search(rf"^\| F{number:02} \|", PAGE, re.MULTILINE)


def test_every_fault_that_a_test_bears_has_a_row_that_names_tests_of_it() -> None:
    borne = {name[6:8] for name in TESTS if re.match(r"test_f\d\d_", name)}
    rows = dict(re.findall(r"^\| F(\d\d) \|(.*)$", PAGE, re.MULTILINE))
    assert rows.keys() == borne
    for number, row in rows.items():
        assert f"`test_f{number}_" in row, number
