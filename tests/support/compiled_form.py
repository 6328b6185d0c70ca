"""What the compiled form does not do, for ``make test-compiled`` (``-p tests.support.compiled_form``).

Modules as C call each other's functions directly, and constants of other modules are within them: a
test that replaces either sees what was there before.
"""

from __future__ import annotations

import pytest

REPLACES = "replaces a function or a constant that modules in C do not look up"
NOT_IN_C: dict[str, dict[str, str]] = {
    "tests/reconcilers/intent/test_compiler.py": {
        "test_an_object_whose_computation_fails_is_a_problem_of_its_own": REPLACES,
    },
    "tests/reconcilers/target/test_runner.py": {
        "test_the_snapshot_of_the_last_round_is_dropped_before_changes_are_read": (
            "a snapshot has no weak references"
        ),
    },
    "tests/reconcilers/test_sliced_work.py": {
        "test_an_object_with_many_prefixes_is_compiled_in_slices": REPLACES,
        "test_the_first_round_reads_the_services_of_a_cluster_in_slices": REPLACES,
    },
    "tests/speaker/engine/test_effect_of_change.py": {
        "test_the_difference_of_two_groups_is_computed_once_for_their_peers": REPLACES,
    },
    "tests/speaker/engine/test_group_changes.py": {"": REPLACES},
    "tests/speaker/engine/test_initial_table.py": {"": REPLACES},
    "tests/speaker/engine/test_leaving.py": {
        "test_sessions_that_end_in_one_turn_share_its_slice": REPLACES,
    },
    "tests/speaker/engine/test_originated.py": {"": REPLACES},
    "tests/speaker/fuzz/test_corpus.py": {"test_a_target_reports_a_failure": REPLACES},
    "tests/speaker/rib/prefix_table/test_native_memory.py": {
        "test_changes_of_a_message_for_which_there_is_no_memory_are_none": (
            "mypyc ends the process where a list cannot grow"
        ),
    },
    "tests/statedb/test_table.py": {
        "test_a_key_with_another_number_of_components_is_rejected": "the error is a TypeError",
    },
}
"""Tests by file, "" for all of one, with the reason why they are not run."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip them."""
    for item in items:
        file, _, name = item.nodeid.partition("[")[0].partition("::")
        reasons = NOT_IN_C.get(file, {})
        reason = reasons.get("") or reasons.get(name)
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))
