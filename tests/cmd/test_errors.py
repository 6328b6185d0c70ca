"""``waggle errors``: every reason word of the code has a meaning; the pages have the same text."""

from __future__ import annotations

import json
import re

import pytest

from tests.cmd.reason_pages import CLI, REASONS, page, with_tables
from tests.support.reason_words import modules, words
from waggle.__main__ import main
from waggle.reasons import TOPICS, all_reasons


def test_the_reasons_that_the_code_gives_are_explained_and_no_others() -> None:
    explained = {reason.word for reason in all_reasons()}
    uses = words(modules())
    assert len(uses) > 100
    assert {word: place for word, place in uses.items() if word not in explained} == {}
    # EVPN is an abbreviation, and no word of the scan; Rejected has a label of its rule instead.
    assert explained - {"EVPN", "Rejected"} - uses.keys() == set()


def test_an_entry_is_a_word_once_for_each_topic() -> None:
    reasons = all_reasons()
    assert len({(reason.topic, reason.word) for reason in reasons}) == len(reasons)
    assert {reason.topic for reason in reasons} == TOPICS.keys()
    assert not [
        r for r in reasons if re.search(r"[^.]\.$", f"{r.meaning}\n{r.remedy}", re.MULTILINE)
    ]


def test_the_pages_match_the_catalog() -> None:
    """``python -m tests.cmd.reason_pages`` writes them."""
    assert REASONS.read_text() == page()
    assert CLI.read_text() == with_tables(CLI.read_text())
    assert CLI.read_text().count("<!-- reasons: ") == 2


def test_a_word_is_explained_in_each_of_its_places(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["errors", "sessiondown", "-o", "json"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    assert [(item["reason"], item["topic"]) for item in items] == [
        ("SessionDown", "advertised"),
        ("SessionDown", "received"),
        ("SessionDown", "event"),
    ]
    assert main(["errors", "NoVRF", "--no-headers"]) == 0
    assert capsys.readouterr().out == (
        "NoVRF  kernel  the node does not have the VRF, so there is no table  create the VRF device\n"
    )


def test_an_unknown_word_has_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["errors", "NoLocalEndpoints"]) == 4
    text = "waggle errors: there is no reason 'NoLocalEndpoints'; did you mean NoLocalEndpoint?\n"
    assert capsys.readouterr().err == text
