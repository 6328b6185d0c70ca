"""Router IDs from a pool: kept, freed, overridden, and never twice."""

from __future__ import annotations

import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from reconcilers.cilium.router_ids import Holder, allocate
from reconcilers.model import ObjectRef
from resources.cilium.nodeconfig import CiliumBGPNodeConfig, NodeConfigSpec, NodeInstance
from resources.meta import ObjectMeta

POOL = ipaddress.IPv4Network("10.0.0.0/30")


def configs(**overrides: str | None) -> dict[str, CiliumBGPNodeConfig]:
    """One instance for each node, with the router ID of its override."""
    return {
        node: CiliumBGPNodeConfig(
            metadata=ObjectMeta(name=node),
            spec=NodeConfigSpec(
                bgp_instances=(NodeInstance(name="i", local_asn=65001, router_id=router_id),)
            ),
        )
        for node, router_id in overrides.items()
    }


def ids(made: dict[str, CiliumBGPNodeConfig]) -> dict[str, str | None]:
    return {node: config.spec.bgp_instances[0].router_id for node, config in made.items()}


def test_the_lowest_free_address_is_allocated_the_first_one_included() -> None:
    made, held, problems = allocate(configs(a=None, b=None), {}, {}, POOL)
    assert ids(made) == {"a": "10.0.0.0", "b": "10.0.0.1"}
    assert held == {("a", "i"): "10.0.0.0", ("b", "i"): "10.0.0.1"}
    assert problems == []


def test_held_addresses_are_kept_and_unused_ones_are_free() -> None:
    held: dict[Holder, str] = {("a", "i"): "10.0.0.0", ("b", "i"): "10.0.0.1"}
    made, held, _ = allocate(configs(b=None, c=None), {}, held, POOL)
    assert ids(made) == {"b": "10.0.0.1", "c": "10.0.0.0"}
    made, _, _ = allocate(configs(b=None, c=None, d=None), {}, held, POOL)
    assert ids(made)["d"] == "10.0.0.2"


def test_an_address_of_a_foreign_node_config_is_not_allocated() -> None:
    made, _, _ = allocate(configs(a=None), configs(z="10.0.0.0"), {}, POOL)
    assert ids(made) == {"a": "10.0.0.1"}


def test_an_override_outside_of_the_pool_frees_the_pool_address() -> None:
    held: dict[Holder, str] = {("a", "i"): "10.0.0.0"}
    made, held, _ = allocate(configs(a="192.0.2.1", b=None), {}, held, POOL)
    assert ids(made) == {"a": "192.0.2.1", "b": "10.0.0.0"}
    assert ("a", "i") not in held


def test_an_override_precedes_a_stored_router_id() -> None:
    written = configs(a="10.0.0.0", b="10.0.0.1")
    held: dict[Holder, str] = {("a", "i"): "10.0.0.0", ("b", "i"): "10.0.0.1"}
    made, held, problems = allocate(configs(a="192.0.2.1", b="10.0.0.3"), written, held, POOL)
    assert ids(made) == {"a": "192.0.2.1", "b": "10.0.0.3"}
    assert held == {("b", "i"): "10.0.0.3"}
    assert problems == []


def test_an_address_held_but_not_yet_stored_is_not_allocated_twice() -> None:
    written = configs(a="10.0.0.0", b="192.0.2.1")
    held: dict[Holder, str] = {("b", "i"): "10.0.0.0"}
    made, _, _ = allocate(configs(a=None, b=None), written, held, POOL)
    assert ids(made) == {"a": "10.0.0.1", "b": "10.0.0.0"}


def test_an_override_keeps_its_address_against_a_later_override() -> None:
    _, held, _ = allocate(configs(b="10.0.0.2"), {}, {}, POOL)
    made, _, problems = allocate(configs(a="10.0.0.2", b="10.0.0.2"), {}, held, POOL)
    assert ids(made) == {"a": None, "b": "10.0.0.2"}
    assert "'i' of node b" in problems[0].message


def test_an_override_with_anothers_address_is_rejected_by_name() -> None:
    held: dict[Holder, str] = {("a", "i"): "10.0.0.0"}
    made, _, problems = allocate(configs(a=None, b="10.0.0.0"), {}, held, POOL)
    assert ids(made) == {"a": "10.0.0.0", "b": None}
    (problem,) = problems
    assert "'i' of node a" in problem.message


def test_an_exhausted_pool_is_a_problem() -> None:
    made, _, problems = allocate(configs(**dict.fromkeys("abcde")), {}, {}, POOL)
    assert ids(made)["e"] is None
    assert "is used up" in problems[0].message


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from("abcdef"),
            st.none() | st.sampled_from(["10.0.0.0", "10.0.0.2", "192.0.2.9"]),
        ),
        max_size=6,
    )
)
def test_an_address_of_the_pool_has_one_holder(rounds: list[dict[str, str | None]]) -> None:
    held: dict[Holder, str] = {}
    for nodes in rounds:
        before = dict(held)
        made, held, _ = allocate(configs(**nodes), {}, held, POOL)
        within = [i for i in ids(made).values() if i and ipaddress.ip_address(i) in POOL]
        assert len(within) == len(set(within))
        for node, override in nodes.items():
            if override is None and (node, "i") in before:
                assert ids(made)[node] == before[node, "i"]


def test_a_problem_names_the_object_that_can_solve_it() -> None:
    *_, problems = allocate(configs(**dict.fromkeys("abcde")), {}, {}, POOL)
    (problem,) = problems
    assert problem.objects == (ObjectRef("CiliumBGPNodeConfig", "", "e"),)
    *_, problems = allocate(configs(a="10.0.0.2", b="10.0.0.2"), {}, {}, POOL)
    (problem,) = problems
    assert problem.objects == (ObjectRef("CiliumBGPNodeConfigOverride", "", "b"),)
