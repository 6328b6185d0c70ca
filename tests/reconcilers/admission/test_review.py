"""The review of changes: what they would make worse is denied, what was there before is a warning."""

from __future__ import annotations

from typing import Any

import pytest

from reconcilers.admission import Request, Reviewer, Verdict
from reconcilers.compile_manifests import kinds_of
from resources.core import Node
from resources.meta import ObjectMeta
from resources.option_declarations import Options
from resources.tables import Tables
from statedb import Database
from tests.reconcilers.admission.claims import CLAIM, ClaimDialect, claim


class Place:
    """A cluster of nodes in rack a and rack b, with stored Claims."""

    def __init__(self, *stored: dict[str, Any], nodes_per_rack: int = 1) -> None:
        self.db = Database()
        self.tables = Tables(self.db, kinds_of([ClaimDialect]))
        with self.db.write(self.tables.nodes) as txn:
            for rack in "ab":
                for number in range(nodes_per_rack):
                    meta = ObjectMeta(name=f"{rack}{number}", labels={"rack": rack})
                    self.tables.nodes.upsert(txn, Node(metadata=meta))
        self.store(*stored)
        self.reviewer = Reviewer(self.db, self.tables, [ClaimDialect(self.tables, Options())])

    def store(self, *objects: dict[str, Any]) -> None:
        """Store objects without a review."""
        table = self.tables.of(CLAIM)
        with self.db.write(table) as txn:
            for value in objects:
                table.upsert(txn, CLAIM.decode(value))

    def review(
        self,
        value: Any,  # noqa: ANN401
        old: Any = None,  # noqa: ANN401
        *,
        operation: str | None = None,
        version: str = "claims.example/v1",
    ) -> Verdict:
        """Review the creation of an object, or its update where there is an old one."""
        verb = operation or ("CREATE" if old is None else "UPDATE")
        return self.reviewer.review(Request(verb, version, "Claim", value, old))


A, B = {"rack": "a"}, {"rack": "b"}


def test_what_agrees_is_admitted_without_a_word() -> None:
    assert Place(claim("one", 1)).review(claim("two", 1)) == Verdict(allowed=True)


def test_a_conflict_is_denied_with_both_objects_the_field_and_the_nodes() -> None:
    verdict = Place(claim("one", 1, labels=A), nodes_per_rack=5).review(claim("two", 2))
    assert not verdict.allowed
    assert verdict.message == (
        "Claim/one, Claim/two: spec.value: port: 1 and 2 (nodes a0, a1, a2 and 2 more)"
    )


def test_what_is_reviewed_is_not_stored() -> None:
    it = Place(claim("one", 1))
    before = it.db.snapshot()
    it.review(claim("two", 2))
    assert it.db.snapshot().state(it.tables.of(CLAIM)) == before.state(it.tables.of(CLAIM))


def test_objects_of_other_nodes_do_not_meet() -> None:
    assert Place(claim("one", 1, labels=A)).review(claim("two", 2, labels=B)).allowed


def test_an_object_without_a_selected_node_is_reviewed_for_a_hypothetical_node() -> None:
    nowhere = {"rack": "c"}
    it = Place(claim("one", 1, labels=nowhere))
    assert it.review(claim("two", 1, labels=nowhere)).allowed
    verdict = it.review(claim("two", 2, labels=nowhere))
    assert not verdict.allowed
    assert verdict.message.endswith("(node with rack=c, none yet)")


def test_an_object_that_selects_no_present_node_meets_all_that_may_select_one_with_it() -> None:
    it = Place(claim("one", 1, labels={"zone": "z"}), claim("two", 2, "asn", labels={"zone": "y"}))
    rack = {"rack": "c"}
    verdict = it.review(claim("three", 2, labels=rack))
    assert verdict.message == (
        "Claim/one, Claim/three: spec.value: port: 1 and 2 (node with rack=c,zone=z, none yet)"
    )
    verdict = it.review(claim("three", 3, "asn", labels=rack))
    assert verdict.message.endswith("(node with rack=c,zone=y, none yet)")
    assert it.review(claim("three", 1, labels=rack)).allowed
    assert it.review(claim("three", 2, labels={"rack": "c", "zone": "x"})).allowed


def test_what_others_have_against_each_other_on_such_a_node_is_not_of_the_object() -> None:
    it = Place(claim("one", 1, labels={"zone": "z"}), claim("two", 2, labels={"row": "r"}))
    assert it.review(claim("three", 3, "asn", labels={"rack": "c"})) == Verdict(allowed=True)


def test_an_object_that_selects_a_present_node_is_not_reviewed_for_others() -> None:
    it = Place(claim("one", 1, labels={"zone": "z"}))
    assert it.review(claim("two", 2, labels=A)) == Verdict(allowed=True)


def test_without_any_node_objects_for_all_nodes_meet() -> None:
    it = Place(claim("one", 1), nodes_per_rack=0)
    verdict = it.review(claim("two", 2))
    assert verdict.message.endswith("(node with any labels, none yet)")


def test_an_existing_conflict_is_a_warning() -> None:
    it = Place(claim("one", 1), claim("two", 2), claim("three", 3))
    repaired = it.review(claim("two", 1), claim("two", 2))
    assert repaired.allowed
    assert repaired.warnings[0].startswith("Claim/one, Claim/three, Claim/two: spec.value")
    assert it.review(claim("three", 1), claim("three", 3)).allowed


def test_a_conflict_that_grows_is_denied() -> None:
    it = Place(claim("one", 1, labels=A), claim("two", 2, labels=A))
    assert not it.review(claim("three", 3)).allowed, "one more object"
    it = Place(claim("one", 1), claim("two", 2, labels=A))
    assert not it.review(claim("two", 2), claim("two", 2, labels=A)).allowed, "one more node"


def test_a_second_conflict_beside_an_existing_conflict_is_denied() -> None:
    it = Place(claim("one", 1), claim("two", 2), claim("three", 1, subject="asn"))
    assert not it.review(claim("four", 2, subject="asn")).allowed


def test_a_conflict_in_place_of_another_conflict_is_denied() -> None:
    it = Place(claim("one", 1), claim("two", 1, "asn"), claim("three", 2))
    assert not it.review(claim("three", 2, "asn"), claim("three", 2)).allowed


def test_what_is_not_there_yet_is_let_in_with_a_warning() -> None:
    verdict = Place().review(claim("one", 1, refersTo="a Secret"))
    assert verdict == Verdict(
        allowed=True,
        warnings=("Claim/one: spec.refersTo: a Secret is not there (nodes a0, b0)",),
    )


def test_broken_rules_are_denied_all_at_once() -> None:
    verdict = Place().review(claim("one", "1", subject=7))  # type: ignore[arg-type]
    assert not verdict.allowed
    assert verdict.message == (
        'spec.subject: expected a string, got an integer 7; write "7"; '
        "spec.value: expected an integer, got a string '1'"
    )


def test_an_object_that_was_bad_before_may_be_changed_while_it_is_no_worse() -> None:
    bad = claim("one", "1")  # type: ignore[arg-type]
    better = {**bad, "metadata": {"name": "one", "labels": {"a": "b"}}}
    verdict = Place().review(better, bad)
    assert verdict.allowed
    assert verdict.warnings == ("spec.value: expected an integer, got a string '1'",)
    worse = claim("one", "1", subject=7)  # type: ignore[arg-type]
    assert not Place().review(worse, bad).allowed


@pytest.mark.parametrize("value", [None, [], 7, "text", {}, {"metadata": None}, {"spec": []}])
def test_what_is_no_object_is_denied(value: Any) -> None:  # noqa: ANN401
    assert not Place().review(value).allowed


def test_unknown_fields_and_the_dialects_own_warnings_are_warnings() -> None:
    verdict = Place().review(claim("one", 0, vaule=7))
    assert verdict.allowed
    assert verdict.warnings == (
        "spec.vaule: unknown field, ignored; did you mean value?",
        "spec.value: 0 is a value, too",
    )


def test_deletions_are_let_through() -> None:
    it = Place(claim("one", 1))
    assert it.review(None, claim("one", 1), operation="DELETE") == Verdict(allowed=True)


def test_another_version_is_let_through_with_a_warning() -> None:
    verdict = Place().review(claim("one", 1), version="claims.example/v9")
    assert verdict.allowed
    assert verdict.warnings == ("Claim claims.example/v9 is not reviewed: claims.example/v1 is",)


def test_an_object_with_which_the_dialect_fails_is_denied() -> None:
    verdict = Place().review(claim("one", -1))
    assert not verdict.allowed
    assert "Claims cannot be compiled: ValueError: a defect" in verdict.message


def test_a_dialect_that_fails_already_denies_nothing() -> None:
    assert Place(claim("one", -1)).review(claim("two", 1)).allowed


def test_nodes_with_the_same_objects_are_compiled_once() -> None:
    it = Place(claim("one", 1, labels=A), nodes_per_rack=500)
    it.review(claim("two", 1))
    ClaimDialect.compiled = 0
    it.review(claim("two", 1))
    assert ClaimDialect.compiled == 2, "rack a and rack b with the change; the present is kept"
