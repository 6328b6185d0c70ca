"""The conditions of MetalLB's objects, for all nodes together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reconcilers.check_manifests import check
from reconcilers.compile_manifests import CompiledManifests, OfflineSettings, kinds_of
from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.frrk8s.options import Frrk8sOptions
from reconcilers.metallb.dialect import MetalLBDialect
from resources.manifests.load import Loaded, load
from tests.reconcilers.metallb.objects import advertisement, peer, pool
from tests.reconcilers.metallb.test_node import (
    FRONT,
    endpoints,
    frr_configuration,
    service,
    wrong_peer,
)

DIALECTS = (MetalLBDialect, Frrk8sDialect)
Reported = dict[str, dict[str, tuple[str, str]]]


def node(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def loaded(tmp_path: Path, *objects: dict[str, Any]) -> Loaded:
    content = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    path = tmp_path / "objects.json"
    path.write_text(json.dumps(content))
    return load([str(path)], kinds_of(DIALECTS))


def conditions(tmp_path: Path, *objects: dict[str, Any], on_conflict: Any = "keep") -> Reported:  # noqa: ANN401
    """Return status and reason by type, by ``Kind/name``, without Accepted=True."""
    options = {"frrk8s": Frrk8sOptions(on_conflict=on_conflict)}
    settings = OfflineSettings("n1", dialects=options)
    return reported(CompiledManifests(loaded(tmp_path, *objects), DIALECTS, settings))


def reported(intent: CompiledManifests) -> Reported:
    found: Reported = {}
    for one in intent.document()["conditions"]:
        of_object = found.setdefault(f"{one['kind']}/{one['name']}", {})
        if (one["type"], one["status"]) != ("Accepted", "True"):
            of_object[one["type"]] = (one["status"], one["reason"])
    return found


def test_objects_in_which_nothing_is_wrong_are_accepted(tmp_path: Path) -> None:
    found = conditions(tmp_path, node("n1"), peer("a"), FRONT, advertisement("x"))
    assert found == {"BGPPeer/a": {}, "IPAddressPool/front": {}, "BGPAdvertisement/x": {}}


def test_each_category_has_its_reason(tmp_path: Path) -> None:
    found = conditions(
        tmp_path,
        node("n1"),
        wrong_peer(),
        peer("a", passwordSecret={"name": "gone"}),
        FRONT,
        pool("again", "198.18.30.0/25"),
    )
    conflict = {"Accepted": ("False", "Conflict"), "Conflicting": ("True", "Conflict")}
    assert found == {
        "BGPPeer/wrong": {"Accepted": ("False", "Invalid")},
        "BGPPeer/a": {"Accepted": ("False", "Unresolved")},
        "IPAddressPool/front": conflict,
        "IPAddressPool/again": conflict,
    }


def test_both_sides_of_a_conflict_with_an_frr_configuration_have_it(tmp_path: Path) -> None:
    other = frr_configuration("x", {"asn": 64951})
    found = conditions(tmp_path, node("n1"), peer("a"), other)
    conflict = {"Accepted": ("False", "Conflict"), "Conflicting": ("True", "Conflict")}
    assert found == {"BGPPeer/a": conflict, "FRRConfiguration/x": conflict}


def test_a_conflict_that_a_service_makes_goes_with_the_service(tmp_path: Path) -> None:
    """Where manifests are read again, the operator follows Services that conditions depend on."""
    preference = {"localPref": 200, "prefixes": ["198.18.30.1/32"]}
    advertise = {"allowed": {"mode": "all"}, "withLocalPref": [preference]}
    neighbor = {"asn": 64950, "toAdvertise": advertise}
    other = frr_configuration("pref", neighbor, prefixes=["198.18.30.1/32"])
    objects = [node("n1"), peer("a"), FRONT, advertisement("x", localPref=100), other]
    shop = [service("s", "198.18.30.1"), endpoints("s")]
    intent = CompiledManifests(loaded(tmp_path, *objects), DIALECTS, OfflineSettings("n1"))
    for _ in range(2):
        assert not any(reported(intent).values())
        intent.change(loaded(tmp_path, *objects, *shop))
        assert reported(intent)["FRRConfiguration/pref"]["Conflicting"] == ("True", "Conflict")
        intent.change(loaded(tmp_path, *objects))
    assert not any(reported(intent).values())


def test_a_conflict_on_another_node_is_reported_as_well(tmp_path: Path) -> None:
    selectors = [{"matchLabels": {"rack": "2"}}]
    objects = [peer("a", nodeSelectors=selectors), peer("b", nodeSelectors=selectors)]
    found = conditions(tmp_path, node("n1", rack="1"), node("n2", rack="2"), *objects)
    assert found["BGPPeer/a"]["Conflicting"] == ("True", "Conflict")


def test_an_object_that_selects_no_node_has_the_condition(tmp_path: Path) -> None:
    other = peer("a", nodeSelectors=[{"matchLabels": {"rack": "9"}}])
    assert conditions(tmp_path, node("n1"), other) == {
        "BGPPeer/a": {"Selected": ("False", "NoNode")}
    }


def test_an_object_of_another_namespace_does_not_count(tmp_path: Path) -> None:
    other = peer("a")
    other["metadata"]["namespace"] = "team"
    found = conditions(tmp_path, node("n1"), other)
    assert found == {"BGPPeer/a": {"Accepted": ("False", "OtherNamespace")}}


@pytest.mark.parametrize("on_conflict", ["isolate"])
def test_what_isolation_leaves_out_is_partially_applied(tmp_path: Path, on_conflict: str) -> None:
    old, young = (peer(n, created=f"2026-01-0{i}T00:00:00Z") for i, n in enumerate("ab", start=1))
    found = conditions(tmp_path, node("n1"), old, young, on_conflict=on_conflict)
    assert found["BGPPeer/b"]["PartiallyApplied"] == ("True", "LeftOut")
    assert "PartiallyApplied" not in found["BGPPeer/a"]


def test_an_object_displaced_by_an_object_left_out_is_accepted(tmp_path: Path) -> None:
    older = frr_configuration("x", {"asn": 64950, "port": 1179})
    first = peer("a", created="2026-01-02T00:00:00Z")
    second = peer("b", created="2026-01-03T00:00:00Z", peerPort=1179)
    found = conditions(tmp_path, node("n1"), older, first, second, on_conflict="isolate")
    assert found["BGPPeer/a"]["Accepted"] == ("False", "Conflict")
    assert found["BGPPeer/a"]["PartiallyApplied"] == ("True", "LeftOut")
    assert found["BGPPeer/b"] == {}
    assert found["FRRConfiguration/x"] == {"Conflicting": ("True", "Conflict")}


def test_what_metallbs_own_speaker_has_written_for_a_node_contradicts_nothing(
    tmp_path: Path,
) -> None:
    # From before a change of the BGPPeer: MetalLB's controller does not run any more.
    stale = frr_configuration("metallb-n1", {"asn": 64951})
    found = conditions(tmp_path, node("n1"), peer("a"), stale)
    assert found["BGPPeer/a"] == {}
    assert found["FRRConfiguration/metallb-n1"] == {"PartiallyApplied": ("True", "LeftOut")}


def test_what_metallbs_speaker_has_written_for_a_node_that_is_gone_contradicts_nothing(
    tmp_path: Path,
) -> None:
    stale = frr_configuration("metallb-n9", {"asn": 64951})
    stale["spec"]["nodeSelector"] = {"matchLabels": {"kubernetes.io/hostname": "n9"}}
    path = tmp_path / "objects.json"
    objects = [node("n1"), peer("a"), stale]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    (problem,) = check([str(path)], DIALECTS, OfflineSettings(""))["problems"]
    assert problem["category"] == "unsupported"
    assert problem["nodes"] == ["with kubernetes.io/hostname=n9, none yet"]


def test_objects_that_contradict_each_other_contradict_no_frr_configuration(
    tmp_path: Path,
) -> None:
    # Overlapping pools: nothing of MetalLB is in effect, and so nothing is merged.
    other = frr_configuration("x", {"asn": 64951})
    pools = FRONT, pool("again", "198.18.30.0/25")
    found = conditions(tmp_path, node("n1"), peer("a"), *pools, other)
    assert "Conflicting" in found["IPAddressPool/front"]
    assert "Conflicting" not in found["BGPPeer/a"]
    assert "Conflicting" not in found["FRRConfiguration/x"]
