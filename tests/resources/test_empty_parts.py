"""Objects as JSON without their empty parts."""

from __future__ import annotations

from resources.empty_parts import without_empty


def test_empty_objects_are_removed_at_any_depth_and_what_they_leave_empty() -> None:
    spec = {"asn": 65001, "bfd": {}, "neighbors": [{"port": 0, "nextHop": {"ipv4": {}}}]}
    assert without_empty(spec) == {"asn": 65001, "neighbors": [{"port": 0}]}


def test_other_falsy_values_and_items_of_lists_are_kept() -> None:
    spec = {"asn": 0, "id": "", "imports": [], "enabled": False, "rules": ({},), "vrf": None}
    assert without_empty(spec) == {**spec, "rules": [{}]}


def test_an_empty_object_with_a_meaning_is_kept_where_the_others_are_named() -> None:
    named = {"attributes", "communities"}
    found = without_empty({"serviceSelector": {}, "attributes": {"communities": {}}}, named)
    assert found == {"serviceSelector": {}}
