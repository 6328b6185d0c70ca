"""Conditions of FRRConfigurations, which the operator's part reports for all nodes together."""

from typing import Any

from reconcilers.dialect import NodeContext
from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.operator import Planner
from reconcilers.sliced_work import finish, sliced
from resources.core.kinds import NODE
from resources.enumeration import MAX_MESSAGE_CHARACTERS
from resources.frrk8s.kinds import FRR_CONFIGURATION
from tests.reconcilers.build import Cluster, node
from tests.reconcilers.frrk8s.agent_in_memory import AgentInMemory
from tests.reconcilers.frrk8s.build import configuration, neighbor, router

Row = tuple[str, str, str, str]


def cluster(*objects: dict[str, Any], nodes: int = 1) -> Cluster:
    made = Cluster(also=[Frrk8sDialect])
    for i in range(nodes):
        made.put(NODE, node(f"n{i}"))
    for one in objects:
        made.put(FRR_CONFIGURATION, one)
    return made


def conditions(it: Cluster) -> list[Row]:
    it.run()
    return [(c["name"], c["type"], c["status"], c["reason"]) for c in it.render()["conditions"]]


def of(name: str, *neighbors: dict[str, Any], **spec: object) -> dict[str, Any]:
    return configuration(name, {"bgp": {"routers": [router(*neighbors)]}, **spec})


def test_an_object_that_is_used_is_accepted() -> None:
    assert conditions(cluster(of("x"))) == [("x", "Accepted", "True", "Accepted")]


def test_objects_that_conflict_name_each_other_and_the_nodes() -> None:
    it = cluster(of("x", neighbor(port=1)), of("y", neighbor()), nodes=4)
    found = conditions(it)
    assert ("x", "Conflicting", "True", "Conflict") in found
    assert ("y", "Accepted", "False", "Conflict") in found
    message = next(c["message"] for c in it.render()["conditions"] if c["name"] == "x")
    assert "FRRConfiguration/frr-k8s-system/y" in message
    assert message.endswith("on 4 nodes (n0, n1, n2, ...)")


def test_a_condition_goes_when_its_cause_goes() -> None:
    it = cluster(of("x", neighbor(port=1)), of("y", neighbor()))
    conditions(it)
    it.delete(FRR_CONFIGURATION, "y", "frr-k8s-system")
    assert conditions(it) == [("x", "Accepted", "True", "Accepted")]


def test_what_is_wrong_has_its_reason() -> None:
    objects = [
        of("invalid", neighbor(port=0)),
        of("unresolved", neighbor(passwordSecret={"name": "gone"})),
        of("raw", raw={"rawConfig": "router bgp 1"}),
        of("receives", neighbor(toReceive={"allowed": {"mode": "all"}})),
        of("nowhere", nodeSelector={"matchLabels": {"a": "b"}}),
        of("selector", nodeSelector={"matchLabels": {"a": "@"}}),
    ]
    assert conditions(cluster(*objects)) == [
        ("invalid", "Accepted", "False", "Invalid"),
        ("nowhere", "Accepted", "True", "Accepted"),
        ("nowhere", "Selected", "False", "NoNode"),
        ("raw", "Accepted", "True", "Accepted"),
        ("raw", "PartiallyApplied", "True", "RawConfig"),
        ("receives", "Accepted", "True", "Accepted"),
        ("receives", "PartiallyApplied", "True", "KernelRoutes"),
        ("selector", "Accepted", "False", "Invalid"),
        ("unresolved", "Accepted", "False", "Unresolved"),
    ]


def test_accepted_routes_are_applied_where_agents_install_them() -> None:
    """By the contexts, not by the dialect: both answers alternate with one dialect."""
    it = cluster(of("receives", neighbor(toReceive={"allowed": {"mode": "all"}})))
    snapshot = it.db.snapshot()
    for _ in range(2):
        for installing, types in (
            ((), ["Accepted", "PartiallyApplied"]),
            (["frrk8s"], ["Accepted"]),
        ):
            planner = Planner(it.db, it.dialects, "kube-system", installing=installing)
            operated = finish(planner.operate(snapshot))["frrk8s"]
            assert sorted(condition.type for condition in operated.conditions) == types


def test_a_node_has_no_problem_with_routes_that_it_installs() -> None:
    it = cluster(of("receives", neighbor(toReceive={"allowed": {"mode": "all"}})))
    dialect = it.dialects[1]
    for _ in range(2):
        for installed, categories in ((False, ["unsupported"]), (True, [])):
            context = NodeContext("n0", routes_installed=installed)
            intent = finish(sliced(dialect.compile(it.db.snapshot(), context)))
            assert [problem.category for problem in intent.problems] == categories


def test_an_object_of_another_namespace_does_not_count() -> None:
    other = of("x")
    other["metadata"]["namespace"] = "default"
    assert conditions(cluster(other)) == [("x", "Accepted", "False", "OtherNamespace")]


def test_a_vrf_without_a_router_is_missing_on_the_node_that_a_problem_names() -> None:
    text = "no object{} has a router of VRF red"
    spec = {"bgp": {"routers": [router(imports=[{"vrf": "red"}])]}}
    agent = AgentInMemory("n1")
    agent.write([{"kind": "Node", **node("n1")}, configuration("x", spec)])
    agent.round()
    (problem,) = agent.render()["problems"]
    # The problem of an agent becomes an Event of the object, which other nodes have, too.
    assert problem["message"] == text.format(" of node n1")
    of_cluster = cluster(configuration("x", spec), nodes=2)
    conditions(of_cluster)
    (message,) = {
        c["message"] for c in of_cluster.render()["conditions"] if c["type"] == "Accepted"
    }
    assert message.endswith(f"{text.format('')} on 2 nodes (n0, n1)")


def test_of_a_thousand_objects_that_conflict_a_condition_names_eight() -> None:
    it = cluster(*(of(f"o{i:04}", neighbor(port=i + 1)) for i in range(1000)))
    conditions(it)
    shown = {c["message"] for c in it.render()["conditions"] if c["name"] == "o0999"}
    assert all("with FRRConfiguration" in message for message in shown)
    assert all(" and 991 more" in message for message in shown)
    assert max(map(len, shown)) <= MAX_MESSAGE_CHARACTERS
