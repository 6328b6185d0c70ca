"""Wrong, strange and large objects: a problem that names object and field, and nothing else breaks."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.frrk8s.options import Frrk8sOptions, OnConflict
from resources.core.kinds import NODE
from resources.crds.generate import custom_resource_definition
from resources.errors import InvalidObject
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.host.kinds import NODE_NETWORK
from resources.tables import Tables
from tests.reconcilers.build import NODE as NODE_NAME
from tests.reconcilers.build import Cluster, node
from tests.reconcilers.frrk8s.bad_objects import (
    BAD,
    STRANGE,
    TEXTS,
    WHOLE,
    Bad,
    all_fields,
    names,
    of_router,
    paths,
    replaced,
)
from tests.reconcilers.frrk8s.build import NAMESPACE, configuration, neighbor, router

OBJECT = "FRRConfiguration/frr-k8s-system/bad"


def cluster(good: int = 2, on_conflict: OnConflict = "keep") -> Cluster:
    class Dialect(Frrk8sDialect):
        def __init__(self, tables: Tables, options: Any) -> None:  # noqa: ANN401, ARG002
            super().__init__(tables, Frrk8sOptions(on_conflict=on_conflict))

    made = Cluster(also=[Dialect])
    made.put(NODE, node(bgp="yes"))
    for i in range(good):
        one = router(neighbor(address=f"198.18.0.{i + 1}"), vrf="default")
        made.put(FRR_CONFIGURATION, configuration(f"good-{i}", {"bgp": {"routers": [one]}}))
    return made


@pytest.fixture(scope="module")
def alone() -> Cluster:
    """Return a node that has nothing but what a test gives it."""
    return cluster(0)


@pytest.fixture(scope="module")
def among_fifty() -> tuple[Cluster, Any]:
    """Return a node with fifty other objects, and their instance."""
    made = cluster(50, "isolate")
    made.run()
    (instance,) = made.render()["instances"]
    return made, instance


def problems_of(it: Cluster, spec: object) -> list[dict[str, Any]]:
    """Return the problems of a node with an object, which is removed again."""
    it.put(FRR_CONFIGURATION, configuration("bad", spec))
    it.run()
    document = it.render()
    it.delete(FRR_CONFIGURATION, "bad", NAMESPACE)
    found: list[dict[str, Any]] = document["problems"]
    json.dumps(document)
    return found


def check(bad: Bad, problems: list[dict[str, Any]]) -> None:
    # What is accepted is not installed in the kernel, which breaks no rule.
    found = [one for one in problems if "installed in the kernel" not in one["message"]]
    assert bool(found) is (bad.field is not None)
    for problem in found:
        assert problem["objects"] == [OBJECT]
        assert bad.field is not None
        assert bad.field in problem["field"]
        assert len(problem["message"]) < 300
        assert problem["message"].isprintable()


def test_the_specification_has_all_fields_and_breaks_no_rule() -> None:
    (version,) = custom_resource_definition(FRR_CONFIGURATION)["spec"]["versions"]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    given = {names(path) for path in paths(WHOLE)}
    assert {*all_fields(schema)} - given == set()
    found = {one["category"] for one in problems_of(cluster(0), WHOLE)}
    assert found == {"unresolved", "unsupported"}, "VRF, Secret; EVPN"


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.id)
def test_an_object_alone(alone: Cluster, bad: Bad) -> None:
    check(bad, problems_of(alone, bad.spec))


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.id)
def test_an_object_among_fifty_others(among_fifty: tuple[Cluster, Any], bad: Bad) -> None:
    it, wanted = among_fifty
    it.put(FRR_CONFIGURATION, configuration("bad", bad.spec))
    it.run()
    document = it.render()
    it.delete(FRR_CONFIGURATION, "bad", NAMESPACE)
    check(bad, document["problems"])
    default = next(one for one in document["instances"] if one["vrf"] is None)
    default["peers"] = [one for one in default["peers"] if one["address"] != "192.0.2.1"]
    assert default == wanted


@pytest.mark.parametrize("path", [*paths(WHOLE)], ids=lambda path: ".".join(map(str, path)))
def test_a_strange_value_in_a_field(alone: Cluster, path: tuple[Any, ...]) -> None:
    for value in STRANGE:
        found = problems_of(alone, replaced(path, value)["spec"])
        for problem in found:
            assert problem["objects"] == [OBJECT]
            assert problem["field"].startswith("spec"), problem
            assert len(problem["message"]) < 1000


def test_wrong_objects_of_every_kind_beside_fifty_good_ones(
    among_fifty: tuple[Cluster, Any],
) -> None:
    it, wanted = among_fifty
    values = [value for value in STRANGE if value != STRANGE[-1]]
    bad = [replaced(path, value) for path in paths(WHOLE) for value in values]
    given = {}
    for i, one in enumerate(bad):
        one["metadata"]["name"] = f"bad-{i}"
        it.put(FRR_CONFIGURATION, one)
        given[f"FRRConfiguration/{NAMESPACE}/bad-{i}"] = f"bad-{i}"
    it.run()
    document = it.render()
    for name in given.values():
        it.delete(FRR_CONFIGURATION, name, NAMESPACE)
    (instance,) = (one for one in document["instances"] if one["vrf"] is None)
    assert instance == wanted
    reported = {name for problem in document["problems"] for name in problem["objects"]}
    left_out = {
        f"FRRConfiguration/{NAMESPACE}/{one['name']}"
        for one in document["conditions"]
        if one["type"] == "Accepted" and one["status"] == "False"
    }
    assert left_out
    assert left_out <= reported <= given.keys()


def test_an_unknown_field_is_reported_and_ignored() -> None:
    known = of_router(neighbor(extra=1), more={"a": []})
    known["bgp"]["new\n"] = "x" * 1_048_576
    errors = FRR_CONFIGURATION.unknown_fields(configuration("bad", {**known, "widen": None}))
    assert [error.path for error in errors] == [
        "spec.bgp.routers[0].neighbors[0].extra",
        "spec.bgp.routers[0].more",
        "spec.bgp.'new\\n'",
        "spec.widen",
    ]
    assert all(len(error.message) < 300 for error in errors)
    assert problems_of(cluster(0), known) == []


@pytest.mark.parametrize("text", [*TEXTS[:3], "x" * 10_240])
def test_a_strange_password_is_not_shown(text: str) -> None:
    it = cluster(0)
    spec = {"bgp": {"routers": [router(neighbor(password=text))]}}
    it.put(FRR_CONFIGURATION, configuration("bad", spec))
    it.run()
    assert text not in json.dumps(it.render(), ensure_ascii=False)


@pytest.mark.parametrize(("vrf", "port"), [("red", 179), ("default", 1179)])
def test_the_node_s_address_may_be_another_host_s_or_another_program_s(vrf: str, port: int) -> None:
    spec = of_router(neighbor(address="192.0.2.1", port=port), vrf=vrf)
    assert problems_of(cluster(0), spec) == []


def test_thousands_of_neighbors_without_an_interface_are_named_in_time() -> None:
    it = cluster(0)
    device = {"devices": [{"name": "eth0", "addresses": ["192.0.2.1"]}]}
    it.put(NODE_NETWORK, {"metadata": {"name": NODE_NAME}, "spec": device})
    neighbors = [
        neighbor(address=f"10.0.{i >> 8}.{i & 255}", sourceaddress="eth1") for i in range(3000)
    ]
    since = time.process_time()
    found = problems_of(it, of_router(*neighbors))
    fields = {problem["field"] for problem in found}
    assert len(fields) == 3000
    assert "spec.bgp.routers[0].neighbors[7].sourceaddress" in fields
    assert time.process_time() - since < 20


def test_a_conflict_of_thousands_names_a_few() -> None:
    it = cluster(0)
    for i in range(1000):
        spec = of_router(neighbor(port=1000 + i % 500))
        it.put(FRR_CONFIGURATION, configuration(f"bad-{i:04}", spec))
    it.run()
    (problem,) = it.render()["problems"]
    assert len(problem["objects"]) == 1000
    assert len(problem["message"]) < 1000
    assert problem["message"].endswith("; and 492 more values")


def test_a_large_object_takes_seconds_and_not_minutes() -> None:
    neighbors = [neighbor(address=f"10.{i >> 8}.{i & 255}.1") for i in range(10_000)]
    prefixes = [f"172.{16 + (i >> 16)}.{i >> 8 & 255}.{i & 255}/32" for i in range(100_000)]
    spec = {"bgp": {"routers": [router(*neighbors, prefixes=prefixes + prefixes[:1] * 10_000)]}}
    it = cluster(0)
    it.put(FRR_CONFIGURATION, configuration("large", spec))
    since = time.process_time()
    it.run()
    (instance,) = it.intent.instances.all(it.db.snapshot())
    assert len(instance.originates) == 100_000
    assert it.intent.peers.count(it.db.snapshot()) == 10_000
    assert time.process_time() - since < 60


WRONG = [f"x{i}" for i in range(100_000)]
RIGHT = [f"10.{i >> 8}.{i & 255}.0/24" for i in range(1000)]
UNLISTED = "99900 more entries are not checked: the entries before have 100 problems"


@pytest.mark.parametrize(
    ("path", "spec"),
    [
        ("prefixes", of_router(neighbor(), prefixes=WRONG)),
        (
            "neighbors[0].toAdvertise.allowed.prefixes",
            of_router(neighbor(toAdvertise={"allowed": {"prefixes": WRONG}})),
        ),
        (
            "neighbors[0].toAdvertise.withLocalPref[0].prefixes",
            of_router(
                neighbor(toAdvertise={"withLocalPref": [{"localPref": 7, "prefixes": WRONG}]})
            ),
        ),
        (
            "neighbors[0].toReceive.allowed.prefixes",
            of_router(
                neighbor(toReceive={"allowed": {"prefixes": [{"prefix": x} for x in WRONG]}})
            ),
        ),
        ("neighbors", of_router(*[{"asn": 64950, "address": x} for x in WRONG])),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_of_thousands_of_wrong_entries_the_first_are_reported(
    among_fifty: tuple[Cluster, Any], path: str, spec: dict[str, Any]
) -> None:
    it, wanted = among_fifty
    it.put(FRR_CONFIGURATION, configuration("bad", spec))
    it.run()
    document = it.render()
    it.delete(FRR_CONFIGURATION, "bad", NAMESPACE)
    assert document["instances"] == [wanted]
    messages = {problem["field"]: problem["message"] for problem in document["problems"]}
    assert len(messages) == 101
    assert messages[f"spec.bgp.routers[0].{path}"].endswith(UNLISTED)
    entries = [field for field in messages if field.startswith(f"spec.bgp.routers[0].{path}[")]
    assert len(entries) == 100


def test_entries_that_are_not_checked_are_not_missed_elsewhere() -> None:
    listed = {
        "allowed": {"prefixes": RIGHT},
        "withCommunity": [{"community": "65001:7", "prefixes": RIGHT}],
    }
    spec = of_router(neighbor(toAdvertise=listed), prefixes=[*WRONG[:101], *RIGHT])
    fields = {problem["field"] for problem in problems_of(cluster(0), spec)}
    assert len(fields) == 101
    assert all(field.startswith("spec.bgp.routers[0].prefixes") for field in fields)
    unlisted = {
        "allowed": {"prefixes": [*WRONG[:101], *RIGHT]},
        "withCommunity": listed["withCommunity"],
    }
    spec = of_router(neighbor(toAdvertise=unlisted), prefixes=RIGHT)
    fields = {problem["field"] for problem in problems_of(cluster(0), spec)}
    assert len(fields) == 101
    assert all("allowed" in field for field in fields)


def test_an_invalid_selector_stops_its_own_object_only(
    among_fifty: tuple[Cluster, Any],
) -> None:
    it, wanted = among_fifty
    spec = {"nodeSelector": {"matchLabels": {"a": "@"}}, "bgp": {"routers": [router(asn=1)]}}
    it.put(FRR_CONFIGURATION, configuration("bad", spec))
    it.run()
    assert it.render()["instances"] == [wanted]
    it.delete(FRR_CONFIGURATION, "bad", NAMESPACE)


def test_raw_configuration_is_no_configuration() -> None:
    it = cluster(1)
    raw = "router bgp 1\n neighbor 203.0.113.77 remote-as 2\n"
    it.put(FRR_CONFIGURATION, configuration("raw", {"raw": {"rawConfig": raw}}))
    it.run()
    assert "203.0.113.77" not in json.dumps(it.render())


def test_metadata_that_is_wrong_is_an_error_of_the_source() -> None:
    wrong: tuple[Any, ...] = (None, [], {"name": "A B"}, {"name": "x", "labels": []})
    for metadata in wrong:
        with pytest.raises(InvalidObject):
            FRR_CONFIGURATION.decode(configuration("x", WHOLE) | {"metadata": metadata})
