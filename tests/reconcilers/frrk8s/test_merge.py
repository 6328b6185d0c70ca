"""Merging the objects of a node: union, the conflicts C1 to C16."""

import itertools
from typing import Any

import pytest

from reconcilers.frrk8s.merge import Merge, Merger
from reconcilers.frrk8s.unit_parts import Unit
from reconcilers.model import ObjectRef, PrefixRule
from reconcilers.sliced_work import Pieces, finish
from speaker.nlri import prefix_to_text
from tests.reconcilers.frrk8s.build import PEER, merge, neighbor, reported, resolve, router, unit

SEVERAL: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("asn", {"asn": 64950}, {"asn": 64951}),
    ("asn", {"asn": 64950}, {"asn": None, "dynamicASN": "external"}),
    ("port", {}, {"port": 1179}),
    ("sourceaddress", {}, {"sourceaddress": "203.0.113.1"}),
    ("ebgpMultiHop", {}, {"ebgpMultiHop": True}),
    ("dualStackAddressFamily", {}, {"dualStackAddressFamily": True}),
    ("connectTime", {}, {"connectTime": "5s"}),
    ("localASN", {}, {"localASN": 64800}),
    ("allowAsIn", {"allowAsIn": "none"}, {"allowAsIn": "origin"}),
    ("allowAsIn", {"allowAsIn": "10"}, {"allowAsIn": "none"}),
    ("password", {}, {"password": "pass-word"}),
    ("password", {"password": "other"}, {"password": "pass-word"}),
    (
        "toAdvertise.nextHop.ipv4",
        {"toAdvertise": {"nextHop": {"ipv4": "192.0.2.1"}}},
        {"toAdvertise": {"nextHop": {"ipv4": "192.0.2.2"}}},
    ),
)


def two(one: dict[str, Any], other: dict[str, Any]) -> list[Unit]:
    return [unit("x", router(neighbor(**one))), unit("y", router(neighbor(**other)))]


@pytest.mark.parametrize(("field", "one", "other"), SEVERAL)
def test_two_settings_of_a_neighbor_conflict(
    field: str, one: dict[str, Any], other: dict[str, Any]
) -> None:
    for units in itertools.permutations(two(one, other)):
        result = merge(units)
        assert result.routers is None
        assert reported(result) == [("conflict", "x y", f"routers[0].neighbors[0].{field}")]
        assert PEER in result.problems[0].message


@pytest.mark.parametrize(("field", "one", "other"), SEVERAL)
def test_equal_settings_do_not_conflict(
    field: str, one: dict[str, Any], other: dict[str, Any]
) -> None:
    for same in (one, other):
        result = merge(two(same, same))
        assert (result.routers is not None, reported(result)) == (True, []), field


@pytest.mark.parametrize(
    "default",
    [
        {"port": 179},
        {"holdTime": "180s", "keepaliveTime": "1m"},
        {"connectTime": "60s"},
        {"dualStackAddressFamily": False},
        {"address": "203.0.113.9"},
    ],
)
def test_an_explicit_default_equals_an_unset_field(default: dict[str, Any]) -> None:
    assert reported(merge(two({}, default))) == []


def test_addresses_and_vrfs_are_compared_as_what_they_mean() -> None:
    one = neighbor(address="2001:db8::1")
    other = neighbor(address="2001:DB8:0:0::1")
    result = merge([unit("x", router(one)), unit("y", router(other, vrf="default"))])
    assert result.routers is not None
    assert [len(found.neighbors) for found in result.routers] == [1]


def test_all_objects_with_the_neighbor_have_a_say_in_what_has_a_default() -> None:
    units = [unit(name, router(neighbor())) for name in "xy"]
    units.append(unit("z", router(neighbor(port=1179))))
    result = merge(units)
    assert reported(result) == [("conflict", "x y z", "routers[0].neighbors[0].port")]
    assert result.problems[0].message == (
        f"neighbor {PEER}: port differs: 179 in FRRConfiguration/frr-k8s-system/x, "
        "FRRConfiguration/frr-k8s-system/y; 1179 in FRRConfiguration/frr-k8s-system/z"
    )


def test_only_objects_that_set_a_field_without_default_conflict() -> None:
    units = [unit("w", router())]
    units += [unit(name, router(id=f"192.0.2.{i}")) for i, name in enumerate("xy", 1)]
    assert reported(merge(units)) == [("conflict", "x y", "routers[0].id")]


def test_three_values_are_one_problem() -> None:
    units = [unit(name, router(neighbor(port=port))) for port, name in enumerate("xyz", 1)]
    assert reported(merge(units)) == [("conflict", "x y z", "routers[0].neighbors[0].port")]


def test_an_object_that_contradicts_itself_is_alone_in_it() -> None:
    both = unit("x", router(neighbor(port=1), neighbor(port=2)))
    assert reported(merge([both, unit("y", router(neighbor(port=3)))])) == [
        ("conflict", "x", "routers[0].neighbors[0].port")
    ]


def test_an_invalid_object_takes_no_part_in_comparisons() -> None:
    bad = unit("x", router(neighbor(port=0, address="203.0.113.10"), neighbor(port=3)))
    assert reported(merge([bad, unit("y", router(neighbor(port=4)))])) == [
        ("invalid", "x", "routers[0].neighbors[0].port")
    ]


def test_local_preferences_are_compared_prefix_by_prefix() -> None:
    def preferring(name: str, value: int, *prefixes: str) -> Unit:
        advertise = {
            "allowed": {"mode": "all"},
            "withLocalPref": [{"localPref": value, "prefixes": list(prefixes)}],
        }
        given = ["10.1.0.0/16", "10.2.0.0/16"]
        return unit(name, router(neighbor(toAdvertise=advertise), prefixes=given))

    x, y = preferring("x", 1, "10.1.0.0/16"), preferring("y", 2, "10.2.0.0/16")
    assert reported(merge([x, y])) == []
    z = preferring("z", 2, "10.1.0.0/16", "10.2.0.0/16")
    field = "routers[0].neighbors[0].toAdvertise.withLocalPref[0].localPref"
    assert reported(merge([x, y, z])) == [("conflict", "x z", field)]


def test_bfd_profiles_are_compared_with_their_defaults() -> None:
    def profile(name: str, **given: int) -> Unit:
        return unit(name, router(), bfdProfiles=[{"name": "fast", **given}])

    assert reported(merge([profile("x"), profile("y", detectMultiplier=3)])) == []
    assert reported(merge([profile("x"), profile("y", detectMultiplier=4)])) == [
        ("conflict", "x y", "bfdProfiles[0].detectMultiplier")
    ]


def test_passwords_are_compared_as_what_they_resolve_to_and_never_shown() -> None:
    field = unit("x", router(neighbor(password="pass-word")))
    secret = unit("y", router(neighbor(passwordSecret={"name": "s"})))
    assert reported(merge([field, secret], s="pass-word\n")) == []
    result = merge([field, secret], s="pass-Word")
    assert reported(result) == [("conflict", "x y", "routers[0].neighbors[0].password")]
    assert "ass" not in result.problems[0].message.replace("password", "")
    assert reported(merge([field, secret])) == [
        ("unresolved", "y", "routers[0].neighbors[0].passwordSecret")
    ]


def test_what_is_accepted_is_united_and_all_beats_a_list() -> None:
    def accepting(name: str, *rules: dict[str, Any], **more: str) -> Unit:
        return unit(
            name, router(neighbor(toReceive={"allowed": {"prefixes": list(rules), **more}}))
        )

    # FRR-k8s takes these two for one: it writes prefix and lengths together without a separator.
    x = accepting("x", {"prefix": "8000::/1", "le": 128})
    y = accepting("y", {"prefix": "8000::/11", "le": 28})
    (found,) = merge([x, y]).routers or ()
    assert found.neighbors[0].accept is not None
    assert set(found.neighbors[0].accept) == {
        PrefixRule("8000::/1", None, 128, ObjectRef("FRRConfiguration", "frr-k8s-system", "x")),
        PrefixRule("8000::/11", None, 28, ObjectRef("FRRConfiguration", "frr-k8s-system", "y")),
    }
    assert found.neighbors[0].accept_origins == ()
    (found,) = merge([x, y, accepting("z", mode="all")]).routers or ()
    assert found.neighbors[0].accept is None
    assert [ref.name for ref in found.neighbors[0].accept_origins] == ["z"]


def test_graceful_restart_is_on_where_one_object_wants_it() -> None:
    units = two({}, {"enableGracefulRestart": True})
    for ordered in itertools.permutations(units):
        (found,) = merge(ordered).routers or ()
        assert found.neighbors[0].graceful_restart


def test_an_imported_vrf_may_be_in_another_object() -> None:
    imports = unit(
        "x",
        router(
            neighbor(toAdvertise={"allowed": {"prefixes": ["10.7.0.0/16"]}}),
            imports=[{"vrf": "red"}],
        ),
    )
    red = unit("y", router(asn=64901, vrf="red", prefixes=["10.7.0.0/16"]))
    result = merge([imports, red])
    assert reported(result) == []
    assert result.routers is not None
    (found,) = result.routers[0].neighbors
    assert [prefix_to_text(*one) for _, routes in found.exports for one in routes] == [
        "10.7.0.0/16"
    ]
    assert ("unresolved", "x", "routers[0].imports[0].vrf") in reported(
        merge([unit("x", router(imports=[{"vrf": "red"}]))])
    )


def test_a_conflict_of_another_dialects_object_has_its_name_and_field() -> None:
    theirs = unit("ignored", router(neighbor(port=1)))
    fed = Unit(
        ObjectRef("BGPPeer", "metallb-system", "p"),
        theirs.row,
        {"spec.bgp.routers.neighbors.port": "spec.peerPort"},
    )
    (problem,) = merge([fed, unit("x", router(neighbor()))]).problems
    assert [str(ref) for ref in problem.objects] == [
        "BGPPeer/metallb-system/p",
        "FRRConfiguration/frr-k8s-system/x",
    ]
    assert problem.field == "spec.peerPort"


def test_two_merges_of_one_node_between_whose_slices_the_other_goes_on() -> None:
    """As of the agent and of the operator's part of its process."""
    merger = Merger()
    shared = [
        unit(f"s{i}", router(neighbor(port=1000 + i, address=f"10.0.0.{i}"))) for i in range(9)
    ]
    agreed = [*shared, unit("x", router(neighbor(port=1179)))]
    disputed = [*agreed, unit("y", router(neighbor(port=2179)))]
    finish(merger.merge([*shared[:2], *disputed[-2:]], resolve(), Pieces(), "n1"))
    runs = {
        name: merger.merge(units, resolve(), Pieces(1), "n1")
        for name, units in (("agreed", agreed), ("disputed", disputed), ("again", agreed))
    }
    results: dict[str, Merge] = {}
    while runs:
        for name, run in list(runs.items()):
            try:
                next(run)
            except StopIteration as end:
                results[name] = end.value
                del runs[name]
    for name, result in results.items():
        assert result == merge(disputed if name == "disputed" else agreed), name
    for units in (agreed, disputed):
        assert finish(merger.merge(units, resolve(), Pieces(), "n1")) == merge(units)


def test_a_merge_that_ends_early_leaves_nothing_behind() -> None:
    merger = Merger()
    one, other = unit("x", router(neighbor(port=1179))), unit("y", router(neighbor(port=2179)))
    unfinished = merger.merge([one, other], resolve(), Pieces(1), "n1")
    next(unfinished)
    unfinished.close()
    for units in ([one], [one, other], [other]):
        assert finish(merger.merge(units, resolve(), Pieces(), "n1")) == merge(units)
