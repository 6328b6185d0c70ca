"""The objects that ``--on-conflict=isolate`` merges, and why it does not merge the others."""

from typing import Any

from reconcilers.frrk8s.isolation import isolated
from reconcilers.frrk8s.merge import Merge
from reconcilers.frrk8s.one_object import compile_unit
from reconcilers.frrk8s.unit_parts import Compiled, Unit, VrfPrefixes
from reconcilers.sliced_work import Pieces, finish
from tests.reconcilers.frrk8s.build import merge, neighbor, reported, resolve, router, unit

END = "203.0.113.10"
"""Another neighbour."""


def of(name: str, *routers: dict[str, Any]) -> Unit:
    """Return an object; its name begins with a digit, by which objects age."""
    return unit(name, *routers, created=f"2026-01-0{name[0]}T00:00:00Z")


def of_vrf(vrf: str, *imports: str, **neighbor_of: object) -> dict[str, Any]:
    """Return the router of a VRF with a prefix, and a neighbour with these settings, if any."""
    neighbors = [neighbor(**neighbor_of)] if neighbor_of else []
    imported = [{"vrf": one} for one in imports]
    return router(*neighbors, vrf=vrf, prefixes=[PREFIXES[vrf]], imports=imported)


PREFIXES = {"red": "10.1.0.0/16", "blue": "10.2.0.0/16", "": "10.3.0.0/16"}


def accepted(result: Merge) -> list[str]:
    return [found.ref.name for found in result.accepted]


def test_isolation_takes_in_the_oldest_first() -> None:
    old = unit("z", router(neighbor(port=1)), created="2026-01-01T00:00:00Z")
    young = unit("a", router(neighbor(port=2)), created="2026-01-02T00:00:00Z")
    later = unit("b", router(neighbor(port=1)), created="2026-01-03T00:00:00Z")
    result = merge([young, later, old], isolate=True)
    assert [found.ref.name for found in result.accepted] == ["z", "b"]
    assert reported(result) == [("conflict", "a z", "routers[0].neighbors[0].port")]
    assert [found.ref.name for found in merge([young], isolate=True).accepted] == ["a"]


def test_isolation_leaves_out_what_contradicts_itself_or_is_unresolved() -> None:
    both = unit("a", router(neighbor(port=1), neighbor(port=2)))
    missing = unit("b", router(neighbor(passwordSecret={"name": "gone"})))
    result = merge([both, missing, unit("c", router(neighbor(port=9)))], isolate=True)
    assert [found.ref.name for found in result.accepted] == ["c"]
    assert [(category, names) for category, names, _ in reported(result)] == [
        ("conflict", "a"),
        ("unresolved", "b"),
    ]


# Imports between objects

MUTUAL = (of("1a", of_vrf("red", "blue")), of("2b", of_vrf("blue", "red")))
ODD = of("3c", router(neighbor(port=1), neighbor(port=2)))
"""Contradicts itself: with it the objects as a whole do not go together."""


def test_objects_that_import_each_others_vrfs_are_merged_together() -> None:
    result = merge([*MUTUAL, ODD], isolate=True)
    assert accepted(result) == ["1a", "2b"]
    assert reported(result) == [("conflict", "3c", "routers[0].neighbors[0].port")]


def test_they_are_left_out_together_and_the_problems_name_the_cause() -> None:
    old = of("0z", of_vrf("blue", asn=1))
    young = of("2b", of_vrf("blue", "red", asn=2))
    result = merge([MUTUAL[0], young, old], isolate=True)
    assert accepted(result) == ["0z", "1a"]  # The VRF blue is that of 0z.
    assert reported(result) == [("conflict", "0z 2b", "routers[0].neighbors[0].asn")]

    old = of("0z", of_vrf("", asn=1))
    young = of("2b", of_vrf("blue", "red"), of_vrf("", asn=2))
    result = merge([MUTUAL[0], young, old], isolate=True)
    assert accepted(result) == ["0z"]
    assert reported(result) == [
        ("conflict", "0z 2b", "routers[0].neighbors[0].asn"),
        ("unresolved", "1a", "routers[0].imports[0].vrf"),
    ]
    assert result.problems[1].message == (
        "VRF blue: its router in FRRConfiguration/frr-k8s-system/2b is not in effect"
    )


def test_an_object_keeps_its_place_although_it_imports_the_vrf_of_a_younger_one() -> None:
    first = of("1a", of_vrf("", "red", asn=1))
    red = of("2b", of_vrf("red"))
    assert accepted(merge([first, red], isolate=True)) == ["1a", "2b"]
    result = merge([first, red, of("3c", router(neighbor(asn=2)))], isolate=True)
    assert accepted(result) == ["1a", "2b"]
    assert reported(result) == [("conflict", "1a 3c", "routers[0].neighbors[0].asn")]


def test_an_object_whose_vrf_is_left_out_gives_way_to_the_displaced_younger_object() -> None:
    first = of("1a", of_vrf("red", asn=1))
    second = of("2b", of_vrf("", "blue", address=END, asn=2))
    blue = of("3c", of_vrf("blue"), of_vrf("red", asn=2))
    fourth = of("4d", router(neighbor(address=END, asn=3)))
    result = merge([first, second, blue, fourth], isolate=True)
    assert accepted(result) == ["1a", "4d"]
    assert reported(result) == [
        ("conflict", "1a 3c", "routers[0].neighbors[0].asn"),
        ("unresolved", "2b", "routers[0].imports[0].vrf"),
        ("conflict", "2b 4d", "routers[0].neighbors[0].asn"),
    ]


def test_an_object_is_tried_again_when_the_vrf_that_it_imports_is_there_after_all() -> None:
    first = of("1a", of_vrf("", "red"))
    second = of("2b", router(neighbor(asn=1), vrf="green", imports=[{"vrf": "blue"}]))
    third = of("3c", router(neighbor(asn=1)))
    red = of("4d", of_vrf("red"), router(neighbor(asn=2), vrf="green"))
    blue = of("5e", of_vrf("blue"), router(neighbor(asn=2)))
    result = merge([first, second, third, red, blue], isolate=True)
    # 5e conflicts with 3c; 2b imports its VRF; 4d conflicts with 2b; 1a imports the VRF of 4d.
    assert accepted(result) == ["1a", "3c", "4d"]


def test_an_object_keeps_its_place_where_another_object_has_the_vrf_that_it_imports() -> None:
    first = of("1a", of_vrf("", "red", asn=1))
    second = of("2b", of_vrf("red", "blue", asn=1))
    blue = of("3c", of_vrf("blue"), router(neighbor(asn=2)))
    red = of("4d", of_vrf("red", asn=2))
    result = merge([first, second, blue, red], isolate=True)
    # 3c differs from 1a, so that 2b has no VRF blue; the VRF red is then that of 4d.
    assert accepted(result) == ["1a", "4d"]


def test_of_several_without_their_vrf_the_youngest_gives_way_first() -> None:
    first = of("1a", of_vrf("", "red", asn=1))
    second = of("2b", of_vrf("red", asn=1), of_vrf("", "blue", address=END, asn=1))
    red = of("3c", of_vrf("red", asn=2), router(neighbor(address=END, asn=2)))
    blue = of("4d", of_vrf("blue"), router(neighbor(asn=2)))
    assert accepted(merge([first, second, red, blue], isolate=True)) == ["1a", "3c"]


def test_a_prefix_of_an_imported_vrf_counts_while_its_object_is_accepted() -> None:
    allowed = {"allowed": {"prefixes": [PREFIXES["red"]]}}
    first = of("1a", router(neighbor(toAdvertise=allowed), imports=[{"vrf": "red"}]))
    red = router(vrf="red")
    without, wrong = of("2b", red), of("3c", of_vrf("red"), router(neighbor(port=9)))
    result = merge([first, without, wrong], isolate=True)
    # The only router with the prefix is in an object that does not go with the first one.
    assert accepted(result) == ["2b", "3c"]
    assert merge([first, without, of("3c", of_vrf("red"))], isolate=True).problems == ()


def test_a_vrf_that_no_object_has_is_unresolved() -> None:
    result = merge([of("1a", of_vrf("red", "blue")), ODD], isolate=True)
    assert accepted(result) == []
    assert ("unresolved", "1a", "routers[0].imports[0].vrf") in reported(result)


def test_the_cost_of_a_chain_of_imports_grows_with_its_length_only() -> None:
    def compilations(length: int) -> int:
        calls = 0

        def counted(unit: Unit, elsewhere: VrfPrefixes) -> Compiled:
            nonlocal calls
            calls += 1
            return finish(compile_unit(unit, elsewhere, Pieces()))

        chain = [
            unit(f"o{i:03d}", router(vrf=f"v{i}", imports=[{"vrf": f"v{i + 1}"}]))
            for i in range(length)
        ]
        result = finish(isolated(chain, counted, resolve()))
        problems = [problem for of in result.left_out.values() for problem in of.problems]
        assert (result.refs, len(problems)) == (frozenset(), length)
        return calls

    # The last one of a chain refers to nothing: they fall one after another.
    assert compilations(200) <= 2 * compilations(100) + 10
