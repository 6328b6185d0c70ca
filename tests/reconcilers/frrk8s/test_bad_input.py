"""Wrong, strange and large objects: a problem that names object and field, and nothing else breaks."""

import copy
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.frrk8s.options import Frrk8sOptions, OnConflict
from resources.core.kinds import NODE
from resources.errors import InvalidObject
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.tables import Tables
from tests.reconcilers.build import Cluster, node
from tests.reconcilers.frrk8s.build import configuration, neighbor, router

WHOLE: dict[str, Any] = {
    "nodeSelector": {"matchLabels": {"bgp": "yes"}, "matchExpressions": []},
    "raw": {"rawConfig": "", "priority": 0},
    "bgp": {
        "bfdProfiles": [{"name": "fast", "receiveInterval": 100, "echoMode": False}],
        "routers": [
            {
                "asn": 64900,
                "id": "192.0.2.1",
                "vrf": "red",
                "prefixes": ["10.1.0.0/16"],
                "imports": [{"vrf": "blue"}],
                "neighbors": [
                    {
                        "address": "203.0.113.9",
                        "asn": 64950,
                        "localASN": 64800,
                        "sourceaddress": "203.0.113.1",
                        "port": 179,
                        "passwordSecret": {"name": "s"},
                        "holdTime": "90s",
                        "keepaliveTime": "30s",
                        "connectTime": "5s",
                        "bfdProfile": "fast",
                        "addressFamilies": ["unicast"],
                        "toAdvertise": {
                            "allowed": {"mode": "filtered", "prefixes": ["10.1.0.0/16"]},
                            "withLocalPref": [{"localPref": 1, "prefixes": ["10.1.0.0/16"]}],
                            "withCommunity": [{"community": "1:1", "prefixes": ["10.1.0.0/16"]}],
                            "nextHop": {"ipv4": "192.0.2.1"},
                        },
                        "toReceive": {
                            "allowed": {"prefixes": [{"prefix": "10.0.0.0/8", "le": 24}]}
                        },
                    }
                ],
            }
        ],
    },
}
"""A specification with most fields."""
STRANGE: tuple[Any, ...] = (None, [], 7, -1, 1.5, "1", True, {}, 1 << 32, 1e3, "x" * 1_048_576)
TEXTS = ("a\nb", "a b", "a\x00b", "‮abc", "x" * 10_240, " ", "%", "a/b")


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    """Yield the path of every field and list element."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from paths(item, (*path, key))


def replaced(path: tuple[Any, ...], by: Any) -> dict[str, Any]:  # noqa: ANN401
    spec = copy.deepcopy(WHOLE)
    target: Any = spec
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = by
    return configuration("bad", spec)


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


@pytest.mark.parametrize("path", [*paths(WHOLE)], ids=lambda path: ".".join(map(str, path)))
def test_a_strange_value_in_a_field(path: tuple[Any, ...]) -> None:
    it = cluster()
    for value in STRANGE:
        it.put(FRR_CONFIGURATION, replaced(path, value))
        it.run()
        document = it.render()
        for problem in document["problems"]:
            assert problem["objects"], problem
            assert problem["field"].startswith("spec"), problem
            assert len(problem["message"]) < 1000
        json.dumps(document)


@pytest.mark.parametrize("value", STRANGE[:7], ids=str)
def test_a_strange_value_in_place_of_the_specification(value: object) -> None:
    object_ = configuration("bad", value)
    it = cluster()
    it.put(FRR_CONFIGURATION, object_)
    it.run()
    found = it.problems()
    assert found == ([] if value is None else [("FRRConfiguration/frr-k8s-system/bad", "spec")])


@pytest.mark.parametrize("field", ["interface", "address", "bfdProfile", "sourceaddress"])
@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_strange_text_in_a_field_of_a_neighbor(field: str, text: str) -> None:
    given = {"asn": 64950, "address": "203.0.113.9", field: text}
    if field == "interface":
        del given["address"]
    it = cluster(0)
    it.put(FRR_CONFIGURATION, configuration("bad", {"bgp": {"routers": [router(given)]}}))
    it.run()
    (problem,) = it.render()["problems"]
    assert problem["category"] == "invalid"
    assert field in problem["field"]
    assert len(problem["message"]) < 300


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_strange_text_in_a_vrf_or_a_community(text: str) -> None:
    community = {"community": text, "prefixes": ["10.1.0.0/16"]}
    advertise = {"allowed": {"mode": "all"}, "withCommunity": [community]}
    of_community = router(neighbor(toAdvertise=advertise), prefixes=["10.1.0.0/16"])
    for one, field in (
        (router(vrf=text), "vrf"),
        (router(imports=[{"vrf": text}]), "imports[0].vrf"),
        (of_community, "withCommunity[0].community"),
    ):
        it = cluster(0)
        it.put(FRR_CONFIGURATION, configuration("bad", {"bgp": {"routers": [one]}}))
        it.run()
        (problem,) = it.render()["problems"]
        assert problem["category"] == "invalid"
        assert problem["field"].endswith(field)
        assert len(problem["message"]) < 300
        assert problem["message"].isprintable()


def test_a_selector_with_a_thousand_values() -> None:
    values = [f"v{i}" for i in range(1_000)]
    it = cluster(0)
    for name, chosen in (("in", [*values, "yes"]), ("out", values)):
        expression = {"key": "bgp", "operator": "In", "values": chosen}
        spec = {
            "nodeSelector": {"matchExpressions": [expression]},
            "bgp": {"routers": [router(neighbor(), vrf=name)]},
        }
        it.put(FRR_CONFIGURATION, configuration(name, spec))
    it.run()
    document = it.render()
    assert [one["vrf"] for one in document["instances"]] == ["in"]
    assert document["problems"] == []


def test_wrong_objects_of_every_kind_beside_fifty_good_ones() -> None:
    good = cluster(50)
    good.run()
    wanted = good.render()["instances"]
    it = cluster(50, on_conflict="isolate")
    odd: tuple[Any, ...] = ({}, -1, "x")
    bad = [
        *(replaced(path, value) for path in list(paths(WHOLE))[::3] for value in odd),
        *(replaced(path, 1 << 32) for path in paths(WHOLE) if path[-1] in ("asn", "localASN")),
    ]
    names = []
    for i, one in enumerate(bad):
        one["metadata"]["name"] = f"bad-{i}"
        # Of another VRF, so that what happens to be right does not change the others.
        it.put(FRR_CONFIGURATION, one)
        names.append(f"FRRConfiguration/frr-k8s-system/bad-{i}")
    it.run()
    document = it.render()
    (instance,) = (one for one in document["instances"] if one["vrf"] is None)
    assert instance == wanted[0]
    told = {name for problem in document["problems"] for name in problem["objects"]}
    left_out = {
        f"FRRConfiguration/frr-k8s-system/{one['name']}"
        for one in document["conditions"]
        if one["type"] == "Accepted" and one["status"] == "False"
    }
    assert left_out
    assert left_out <= told <= set(names)


@pytest.mark.parametrize("text", [*TEXTS[:3], "x" * 10_240])
def test_a_strange_password_is_not_shown(text: str) -> None:
    it = cluster(0)
    spec = {"bgp": {"routers": [router(neighbor(password=text))]}}
    it.put(FRR_CONFIGURATION, configuration("bad", spec))
    it.run()
    assert text not in json.dumps(it.render(), ensure_ascii=False)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("holdTime", "1h1m1.5s"),
        ("holdTime", "-1s"),
        ("holdTime", "9999999h"),
        ("holdTime", ""),
        ("holdTime", "1d"),
        ("connectTime", "0s"),
        ("connectTime", "1500ms"),
        ("connectTime", "65536s"),
    ],
)
def test_durations(field: str, text: str) -> None:
    more = {"keepaliveTime": "0s"} if field == "holdTime" else {}
    it = cluster(0)
    spec = {"bgp": {"routers": [router(neighbor(**{field: text}, **more))]}}
    it.put(FRR_CONFIGURATION, configuration("bad", spec))
    it.run()
    fields = [problem["field"] for problem in it.render()["problems"]]
    is_hold_time = text == "1h1m1.5s"
    assert fields == ([] if is_hold_time else [f"spec.bgp.routers[0].neighbors[0].{field}"])


@pytest.mark.parametrize(
    "address", ["fe80::1%eth0", "::ffff:192.0.2.1", "0.0.0.0", "::", "224.0.0.1", "192.0.2.1/24"]
)
def test_an_address_that_no_neighbor_has(address: str) -> None:
    it = cluster(0)
    spec = {"bgp": {"routers": [router(neighbor(address=address))]}}
    it.put(FRR_CONFIGURATION, configuration("bad", spec))
    it.run()
    (problem,) = it.render()["problems"]
    assert problem["field"] == "spec.bgp.routers[0].neighbors[0].address"
    assert address in problem["message"]


def test_fifty_routers_are_the_most() -> None:
    for count, broken in ((50, False), (51, True)):
        it = cluster(0)
        routers = [router(vrf=f"v{i}") for i in range(count)]
        it.put(FRR_CONFIGURATION, configuration("many", {"bgp": {"routers": routers}}))
        it.run()
        assert bool(it.problems()) is broken


def test_a_large_object_takes_seconds_and_not_minutes() -> None:
    neighbors = [neighbor(address=f"10.{i >> 8}.{i & 255}.1") for i in range(10_000)]
    prefixes = [f"172.{16 + (i >> 16)}.{i >> 8 & 255}.{i & 255}/32" for i in range(100_000)]
    spec = {"bgp": {"routers": [router(*neighbors, prefixes=prefixes + prefixes[:1] * 10_000)]}}
    it = cluster(0)
    it.put(FRR_CONFIGURATION, configuration("large", spec))
    since = time.monotonic()
    it.run()
    (instance,) = it.intent.instances.all(it.db.snapshot())
    assert len(instance.originates) == 100_000
    assert it.intent.peers.count(it.db.snapshot()) == 10_000
    assert time.monotonic() - since < 60


def test_an_invalid_selector_stops_its_own_object_only() -> None:
    it = cluster()
    for selector in (
        {"matchLabels": {"": "x"}},
        {"matchLabels": {"a": "@"}},
        {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["x"]}]},
        {"matchExpressions": [{"key": "a", "operator": "In"}]},
        {"matchExpressions": [{"key": "a b", "operator": "Exists"}]},
        ["a"],
    ):
        spec = {"nodeSelector": selector, "bgp": {"routers": [router(asn=1)]}}
        it.put(FRR_CONFIGURATION, configuration("bad", spec))
        it.run()
        document = it.render()
        assert {problem["objects"][0] for problem in document["problems"]} == {
            "FRRConfiguration/frr-k8s-system/bad"
        }, selector
        assert all("nodeSelector" in problem["field"] for problem in document["problems"])
        (instance,) = document["instances"]
        assert len(instance["peers"]) == 2


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
