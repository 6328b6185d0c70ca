"""Properties of merging; `test_model` compares it with a model."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from reconcilers.frrk8s import field_values
from reconcilers.frrk8s.merge import Merge, Merger, union
from reconcilers.frrk8s.router_rows import SortedPrefixes
from reconcilers.frrk8s.unit_parts import Unit
from reconcilers.sliced_work import Pieces, finish
from speaker.nlri import IPV4_UNICAST, prefix_to_text, prefix_to_wire
from tests.reconcilers.frrk8s.build import merge, merge_by, resolve, router, unit
from tests.support.examples import examples

PREFIXES = ("10.1.0.0/16", "10.2.0.0/16", "2001:db8::/32")
ADDRESSES = ("203.0.113.9", "2001:db8::9")
UNHURRIED = settings(deadline=None, max_examples=examples(40))
"""An example may take long on a busy machine; `test_model` has hundreds of sets."""
WHOLE = settings(deadline=None)
"""Of properties of which no mutant showed that fewer examples are enough."""
FAMILY = {"203.0.113.9": ".", "2001:db8::9": ":"}
Spec = dict[str, Any]


@st.composite
def neighbors(draw: st.DrawFn, prefixes: list[str]) -> Spec:
    address = draw(st.sampled_from(ADDRESSES))
    carried = [prefix for prefix in prefixes if FAMILY[address] in prefix]
    found: Spec = {"address": address, "asn": draw(st.sampled_from((64950, 64950, 64950, 64951)))}
    found |= draw(st.sampled_from(({}, {}, {"port": 179}, {"port": 180})))
    found |= draw(st.sampled_from(({}, {}, {}, {"ebgpMultiHop": True})))
    found |= draw(st.sampled_from(({}, {"enableGracefulRestart": True})))
    found |= draw(st.sampled_from(({}, {"holdTime": "180s", "keepaliveTime": "60s"})))
    mode = draw(st.sampled_from(("all", "filtered")))
    listed = draw(st.lists(st.sampled_from(carried), unique=True)) if carried else []
    advertise: Spec = {"allowed": {"mode": mode, "prefixes": listed}}
    sent = carried if mode == "all" else listed
    preference = draw(st.sampled_from((None, None, 100, 200)))
    if sent and preference is not None:
        advertise["withLocalPref"] = [{"localPref": preference, "prefixes": sent[:1]}]
    accepted = draw(st.lists(st.sampled_from(PREFIXES), unique=True, max_size=2))
    receive = {
        "mode": draw(st.sampled_from(("all", "filtered", "filtered"))),
        "prefixes": [{"prefix": prefix, "le": 32} for prefix in accepted],
    }
    return found | {"toAdvertise": advertise, "toReceive": {"allowed": receive}}


@st.composite
def routers(draw: st.DrawFn) -> Spec:
    prefixes = draw(st.lists(st.sampled_from(PREFIXES), unique=True))
    found: Spec = {
        "asn": draw(st.sampled_from((64900, 64900, 64900, 64901))),
        "vrf": draw(st.sampled_from(("", "default", "red"))),
        "prefixes": prefixes,
        "neighbors": draw(st.lists(neighbors(prefixes), max_size=2)),
    }
    router_id = draw(st.sampled_from(("", "", "192.0.2.1", "192.0.2.2")))
    return found | ({"id": router_id} if router_id else {})


@st.composite
def sets(draw: st.DrawFn) -> dict[str, list[Spec]]:
    """Return the routers of objects by name."""
    count = draw(st.integers(1, 4))
    return {f"o{i}": draw(st.lists(routers(), min_size=1, max_size=2)) for i in range(count)}


def units_of(objects: Mapping[str, list[Spec]]) -> list[Unit]:
    return [unit(name, *of_object) for name, of_object in objects.items()]


def flat(result: Merge) -> object:
    """Return what is merged as plain values, without the objects that it stems from."""
    if result.routers is None:
        return None
    return {
        router.vrf: (
            router.asn,
            router.router_id,
            sorted({prefix_to_text(*one) for _, given in router.given for one in given}),
            {
                neighbor.key.end: (
                    neighbor.session,
                    neighbor.graceful_restart,
                    None if neighbor.accept is None else sorted({str(r) for r in neighbor.accept}),
                    sorted({prefix_to_text(*p) for _, routes in neighbor.exports for p in routes}),
                    preferences(neighbor.exports),
                )
                for neighbor in router.neighbors
            },
        )
        for router in result.routers
    }


def preferences(exports: Any) -> dict[str, int]:  # noqa: ANN401
    return {
        prefix_to_text(*one): attributes.local_preference
        for _, routes in exports
        for one, attributes in routes.items()
        if attributes.local_preference is not None
    }


# Properties


@UNHURRIED
@given(sets(), st.randoms(use_true_random=True))
def test_the_order_does_not_matter(objects: dict[str, list[Spec]], order: Any) -> None:  # noqa: ANN401
    units = units_of(objects)
    result = merge(units)
    order.shuffle(units)
    again = merge(units)
    assert (flat(again), again.problems) == (flat(result), result.problems)


@WHOLE
@given(sets())
def test_the_same_object_twice_is_once(objects: dict[str, list[Spec]]) -> None:
    copies = {f"copy-of-{name}": of_object for name, of_object in objects.items()}
    assert flat(merge(units_of(objects | copies))) == flat(merge(units_of(objects)))


@WHOLE
@given(sets(), st.integers(1, 3))
def test_objects_may_be_united_in_groups(objects: dict[str, list[Spec]], count: int) -> None:
    # Two routers of one object are merged as routers of two objects.
    names = sorted(objects)
    group = {"group": [router for name in names[:count] for router in objects[name]]}
    rest = {name: objects[name] for name in names[count:]}
    assert flat(merge(units_of(group | rest))) == flat(merge(units_of(objects)))


@WHOLE
@given(sets())
def test_merging_loses_nothing_that_one_object_has_alone(objects: dict[str, list[Spec]]) -> None:
    whole = flat(merge(units_of(objects)))
    if not isinstance(whole, dict):
        return
    for name, of_object in objects.items():
        alone = flat(merge(units_of({name: of_object})))
        assert isinstance(alone, dict)
        for vrf, (_, _, _, neighbors) in alone.items():
            for end, (_, _, _, routes, _) in neighbors.items():
                assert set(routes) <= set(whole[vrf][3][end][3])


@UNHURRIED
@given(sets())
def test_isolation_is_the_merge_of_the_accepted_objects(objects: dict[str, list[Spec]]) -> None:
    units = units_of(objects)
    result = merge(units, isolate=True)
    assert result.routers is not None
    assert flat(result) == flat(merge(result.accepted))
    left_out = {found.ref for found in units} - {found.ref for found in result.accepted}
    named = {ref for problem in result.problems for ref in problem.objects}
    assert left_out <= named
    for ref in left_out:
        more = [one for one in units if one.ref == ref or one in result.accepted]
        assert merge(more).routers is None


@UNHURRIED
@given(sets())
def test_objects_are_in_conflict_exactly_while_one_or_two_of_them_are(
    objects: dict[str, list[Spec]],
) -> None:
    units = units_of(objects)
    apart = [merge([one]) for one in units]
    apart += [merge(list(pair)) for pair in itertools.combinations(units, 2)]
    assert (merge(units).routers is None) is any(found.routers is None for found in apart)


@WHOLE
@given(sets())
def test_the_objects_of_a_problem_do_not_go_together(objects: dict[str, list[Spec]]) -> None:
    units = {found.ref: found for found in units_of(objects)}
    for problem in merge(list(units.values())).problems:
        if problem.category != "unsupported":
            alone = merge([units[ref] for ref in problem.objects])
            assert alone.routers is None


@UNHURRIED
@given(
    sets(),
    st.lists(st.tuples(st.sampled_from(("o0", "o1", "o2")), st.lists(routers(), max_size=2))),
    st.booleans(),
)
def test_a_merger_with_a_history_says_what_a_new_one_says(
    objects: dict[str, list[Spec]],
    changes: list[tuple[str, list[Spec]]],
    isolate: bool,
) -> None:
    merger = Merger()
    for name, of_object in [("o0", objects["o0"]), *changes]:
        objects = {**objects, name: of_object}
        units = units_of({name: found for name, found in objects.items() if found})
        found = merge_by(merger, units, isolate=isolate)
        merger.forget_unused()
        fresh = merge(units, isolate=isolate)
        assert (flat(found), found.problems) == (flat(fresh), fresh.problems)
        assert [unit.ref for unit in found.accepted] == [unit.ref for unit in fresh.accepted]


def test_of_an_object_the_present_compilation_remains_and_that_in_effect() -> None:
    merger = Merger()
    end = {"address": "203.0.113.9", "asn": 64950}
    in_effect = unit("o", router(end, prefixes=["10.1.0.0/16"]))
    finish(merger.merge([in_effect], resolve(), Pieces()))
    for number in range(2, 6):
        present = unit("o", router(end, prefixes=[f"10.{number}.0.0/16"]))
        finish(merger.merge([present], resolve(), Pieces()))
        merger.forget_unused([in_effect])
        (known,) = merger._compiled.values()
        assert [found.unit for found in known] == [in_effect, present]
    finish(merger.merge([in_effect], resolve(), Pieces()))
    finish(merger.merge([present], resolve(), Pieces()))
    finish(merger.merge([in_effect], resolve(), Pieces()))
    merger.forget_unused([present])
    (known,) = merger._compiled.values()
    assert in_effect in [found.unit for found in known]
    finish(merger.merge([present], resolve(), Pieces()))
    merger.forget_unused([present])
    (known,) = merger._compiled.values()
    assert [found.unit for found in known] == [present]


OF_OBJECTS = st.lists(st.lists(st.sampled_from(PREFIXES[:2]), unique=True), min_size=3, max_size=3)


@UNHURRIED
@given(st.lists(OF_OBJECTS, min_size=1, max_size=6), st.booleans())
def test_objects_with_other_prefixes_are_not_all_merged_again(
    history: list[list[list[str]]], some: bool
) -> None:
    """Only where an object begins or ends to advertise to a neighbour are all of them united."""
    fixed = ["10.3.0.0/16"] if some else []
    end = {"address": "203.0.113.9", "asn": 64950, "toAdvertise": {"allowed": {"mode": "all"}}}
    other = {"address": "203.0.113.10", "asn": 64950}
    merger = Merger()
    with pytest.MonkeyPatch.context() as patched:
        calls: list[int] = []
        original = union.united

        def united(units: Sequence[Unit], compiled: Any, pieces: Pieces) -> Any:  # noqa: ANN401
            calls.append(len(units))
            return original(units, compiled, pieces)

        patched.setattr("reconcilers.frrk8s.merge.merger.united", united)
        for prefixes in history:
            units = [
                unit(f"o{i}", router(end, other, prefixes=[*fixed, *of_object]))
                for i, of_object in enumerate(prefixes)
            ]
            found = finish(merger.merge(units, resolve(), Pieces()))
            count = len(calls)
            assert found == merge(units)
            del calls[count:]
    assert len(calls) == 1 or not some


def numbers_of(below: int, octets: bytes) -> frozenset[int]:
    """Return the numbers whose bits are set."""
    return frozenset(n for n in range(below) if octets[n >> 3] >> (n & 7) & 1)


NUMBERS = st.builds(numbers_of, st.integers(0, 304), st.binary(min_size=38, max_size=38))
"""Sets of up to half of 304 numbers, drawn at once and not number by number."""


@UNHURRIED
@given(
    st.lists(NUMBERS, min_size=6, max_size=6),
    st.lists(st.frozensets(st.integers(0, 5)), min_size=1, max_size=6),
)
def test_sorted_prefixes_follow_every_change(
    objects: list[frozenset[int]], history: list[frozenset[int]]
) -> None:
    """Objects, which may have the same prefixes, come and go."""
    made = [
        {f"10.{n >> 4}.{n & 15}.0/24" if n % 3 else f"2001:db8:{n:x}::/48" for n in of_object}
        for of_object in objects
    ]
    parts = [frozenset(map(field_values.prefix, texts)) for texts in made]
    originated = SortedPrefixes()
    for numbers in history:
        texts = {text for key in numbers for text in made[key]}
        wanted = sorted(
            map(prefix_to_wire, texts), key=lambda one: (one[0] != IPV4_UNICAST, one[1])
        )
        found = finish(originated.texts("", [parts[key] for key in sorted(numbers)], Pieces()))
        assert found == tuple(prefix_to_text(*one) for one in wanted)
