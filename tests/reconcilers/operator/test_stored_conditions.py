"""Conditions are written when they change, and their times move when their status does."""

from __future__ import annotations

from typing import Any

import pytest

from reconcilers import conditions
from reconcilers.cilium.dialect import CiliumDialect
from reconcilers.model import Condition, ObjectRef
from reconcilers.operator import Apply, StoredConditions
from resources.enumeration import MAX_MESSAGE_CHARACTERS
from tests.support.kinds import KINDS

REF = ObjectRef("CiliumBGPClusterConfig", "", "c")
TYPE = "cilium.io/NoMatchingNode"
FIRST, SECOND = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def wanted(status: bool = True, message: str = "none", generation: int | None = 3) -> Condition:
    return Condition(REF, TYPE, status, "NoMatchingNode", message, generation)


def write(stored: StoredConditions, condition: Condition, time: str) -> dict[str, Any] | None:
    """Write what is due; the condition as it is then, or None where nothing was."""
    due = stored.patch(REF, [condition], time)
    if due is None:
        return None
    assert due.status
    stored.store(REF, conditions.decode(due.content))
    (found,) = due.content["status"]["conditions"]
    return dict(found)


def test_a_condition_is_encoded_as_metav1_condition() -> None:
    due = StoredConditions(KINDS, CiliumDialect.managed_conditions).patch(REF, [wanted()], FIRST)
    assert due == Apply(
        REF,
        {
            "apiVersion": "cilium.io/v2",
            "kind": "CiliumBGPClusterConfig",
            "metadata": {"name": "c"},
            "status": {
                "conditions": [
                    {
                        "type": TYPE,
                        "status": "True",
                        "reason": "NoMatchingNode",
                        "message": "none",
                        "observedGeneration": 3,
                        "lastTransitionTime": FIRST,
                    }
                ]
            },
        },
        status=True,
    )


def test_current_conditions_are_not_written_again() -> None:
    stored = StoredConditions(KINDS, CiliumDialect.managed_conditions)
    assert write(stored, wanted(), FIRST) is not None
    assert write(stored, wanted(), SECOND) is None


def test_the_transition_time_is_that_of_the_last_change_of_the_status() -> None:
    stored = StoredConditions(KINDS, CiliumDialect.managed_conditions)
    write(stored, wanted(), FIRST)
    changed = write(stored, wanted(message="other", generation=4), SECOND)
    assert changed is not None
    assert (changed["lastTransitionTime"], changed["message"]) == (FIRST, "other")
    changed = write(stored, wanted(status=False), SECOND)
    assert changed is not None
    assert (changed["lastTransitionTime"], changed["status"]) == (SECOND, "False")


def test_a_new_leader_keeps_the_stored_conditions() -> None:
    stored = StoredConditions(KINDS, CiliumDialect.managed_conditions)
    assert REF not in stored
    before = StoredConditions(KINDS, CiliumDialect.managed_conditions).patch(REF, [wanted()], FIRST)
    assert before is not None
    stored.store(REF, conditions.decode(before.content))
    assert REF in stored
    assert stored.patch(REF, [wanted()], SECOND) is None


def test_undesired_managed_conditions_are_removed() -> None:
    stored = StoredConditions(KINDS, CiliumDialect.managed_conditions)
    write(stored, wanted(), FIRST)
    due = stored.patch(REF, [], SECOND)
    assert due is not None
    assert due.content["status"] == {"conditions": []}
    theirs = {
        "type": "example.com/Theirs",
        "status": "True",
        "reason": "Theirs",
        "message": "",
        "lastTransitionTime": FIRST,
    }
    stored.store(REF, conditions.decode({"status": {"conditions": [theirs]}}))
    assert stored.patch(REF, [], SECOND) is None


def test_conditions_of_deleted_objects_are_dropped() -> None:
    stored = StoredConditions(KINDS, CiliumDialect.managed_conditions)
    write(stored, wanted(), FIRST)
    stored.keep_only([])
    assert REF not in stored


@pytest.mark.parametrize(
    "content",
    [
        None,
        {},
        {"status": None},
        {"status": {"conditions": {}}},
        {"status": {"conditions": [1, {}]}},
    ],
)
def test_a_malformed_status_has_no_conditions(content: dict[str, Any] | None) -> None:
    assert conditions.decode(content) == {}


def test_f09_a_long_condition_message_is_truncated_and_written_once() -> None:
    stored = StoredConditions(KINDS, CiliumDialect.managed_conditions)
    written = write(stored, wanted(message="x" * 100_000), FIRST)
    assert written is not None
    assert len(written["message"]) == MAX_MESSAGE_CHARACTERS
    assert write(stored, wanted(message="x" * 100_000), SECOND) is None
