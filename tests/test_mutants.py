"""Each row of docs/rfcs.md has a mutant, and each mutant is one change of a module that its row names.

Those of merging have tests of their own (`tests.mutants.merging`).

`make mutants` runs them: a mutant that fails no test of its row is a rule that no test holds.
"""

from __future__ import annotations

import ast

import pytest

from tests.mutants.merging import MERGING
from tests.mutants.page import ROOT, ROWS
from tests.mutants.rules import MUTANTS, Mutant


def test_every_rule_has_a_mutant() -> None:
    assert {mutant.rule for mutant in MUTANTS} == set(ROWS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: f"RFC {one.rule}: {one.text[:30]}")
def test_a_mutant_is_one_change_of_a_module_that_decides(mutant: Mutant) -> None:
    assert mutant.module in ROWS[mutant.rule][0]
    text = (ROOT / mutant.module).read_text()
    assert text.count(mutant.text) == 1
    ast.parse(text.replace(mutant.text, mutant.replaced_by))


@pytest.mark.parametrize("mutant", MERGING, ids=lambda one: f"{one.rule}: {one.text[:30]}")
def test_a_mutant_of_merging_is_one_change(mutant: Mutant) -> None:
    text = (ROOT / mutant.module).read_text()
    assert text.count(mutant.text) == 1
    ast.parse(text.replace(mutant.text, mutant.replaced_by))
