"""docs/rfcs.md names modules and tests: each has to exist, and each module has to name its RFC."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "rfcs.md").read_text()
ROWS = re.findall(
    r"^\| (\d{4})([^|]*) \|[^|]+\| (`speaker[^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE
)
PROMISED = [
    *("1997", "2385", "2918", "4271", "4360", "4486", "4724", "4760", "5065", "5082", "5492"),
    *("5880", "5881", "5882", "5883", "9384"),
    *("6793", "7313", "7606", "7854", "7911", "7947", "8092", "8212", "8538", "8654", "8950"),
    *("9003", "9069", "9072", "9234", "9494", "9687"),
]


def _tests() -> set[str]:
    pattern = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
    files = (ROOT / "tests").rglob("test_*.py")
    return {name for file in files for name in pattern.findall(file.read_text())}


TESTS = _tests()


def test_nothing_that_is_promised_is_missing() -> None:
    assert {number for number, *_ in ROWS} >= set(PROMISED)
    assert len(ROWS) == PAGE.count("| `speaker/")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"RFC {row[0]}{row[1]}")
def test_a_row_names_what_there_is(row: tuple[str, str, str, str]) -> None:
    number, _, modules, tests = row
    files = re.findall(r"`([^`]+)`", modules)
    assert files
    for name in files:
        assert re.search(rf"\b{number}\b", (ROOT / name).read_text()), (
            f"{name} does not name the RFC"
        )
    named = re.findall(r"`(\w+)`", tests)
    assert named
    assert set(named) <= TESTS
