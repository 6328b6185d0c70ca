"""Each MUST of the RFCs of BFD has a test that docs/rfcs.md names, or a reason why it needs none."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.mutants.rfc_rows import ROOT, ROWS
from tests.speaker.bfd.rfc_sentences import COUNTS, RFCS, Deviation, Held, Reason

PAGE = (ROOT / "docs" / "rfcs.md").read_text()
DEFINED = {
    name
    for file in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^ *(?:async )?def (test_\w+)", file.read_text(), re.MULTILINE)
}


def sentences(rfc: str) -> Iterator[tuple[str, str, Held]]:
    """Yield section, words and what holds each sentence."""
    for section, rows in RFCS[rfc].items():
        yield from ((section, words, held) for words, held in rows)


def named_by(rfc: str) -> set[str]:
    found: set[str] = set()
    for _, _, held in sentences(rfc):
        if isinstance(held, Deviation):
            found.update(held.tests)
        elif not isinstance(held, Reason):
            found.update(held)
    return found


@pytest.mark.parametrize("rfc", COUNTS)
def test_no_sentence_is_missing(rfc: str) -> None:
    assert {section: len(rows) for section, rows in RFCS[rfc].items()} == COUNTS[rfc]
    assert RFCS.keys() == COUNTS.keys()


@pytest.mark.parametrize("rfc", COUNTS)
def test_each_sentence_has_a_test_or_a_reason(rfc: str) -> None:
    for section, words, held in sentences(rfc):
        match held:
            case Reason(text):
                assert text, (section, words)
            case Deviation(rule):
                assert f"| {rule} |" in PAGE, (section, words)
            case tests:
                assert tests, (section, words)
    assert named_by(rfc) <= DEFINED


@pytest.mark.parametrize("rfc", [rfc for rfc in COUNTS if rfc.isdigit()])
def test_the_tests_of_sentences_are_the_tests_of_the_row(rfc: str) -> None:
    _, named = ROWS[rfc]
    assert sorted(named_by(rfc) - set(named)) == []


@pytest.mark.parametrize("rfc", [rfc for rfc in COUNTS if rfc.isdigit()])
def test_each_test_with_the_number_of_the_rfc_is_in_its_row(rfc: str) -> None:
    _, named = ROWS[rfc]
    own = {name for name in DEFINED if name.startswith(f"test_rfc{rfc}_")}
    assert sorted(own - set(named)) == []


@pytest.mark.parametrize("what", ["no demand mode", "no keyed MD5", "no simple password"])
def test_what_is_not_offered_is_in_the_row(what: str) -> None:
    (row,) = re.findall(r"^\| 5880 \|[^|]+\|", PAGE, re.MULTILINE)
    assert what in row
