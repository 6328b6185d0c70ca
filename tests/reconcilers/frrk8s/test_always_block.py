"""``--always-block=auto``: the pod CIDRs of all Nodes and the ServiceCIDRs are never accepted."""

from __future__ import annotations

from typing import Any

import pytest

from reconcilers.apply.received_verdict import decide
from reconcilers.dialect import OptionalKinds
from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.frrk8s.options import Frrk8sOptions
from resources.core.kinds import NODE, SERVICE_CIDR
from resources.core.node import of_other_nodes
from resources.errors import InvalidObject
from speaker.nlri import prefix_to_wire
from tests.reconcilers.frrk8s.agent_in_memory import AgentInMemory
from tests.reconcilers.frrk8s.build import configuration, neighbor, router

Object = dict[str, Any]
OTHER = ("10.0.0.0/8",)


def node(name: str, *cidrs: str, **more: Any) -> Object:  # noqa: ANN401
    metadata = {"name": name, "labels": {"rack": name}}
    spec = {"podCIDRs": list(cidrs), **more}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec}


def service_cidr(name: str, *cidrs: str, version: str = "v1") -> Object:
    return {
        "apiVersion": f"networking.k8s.io/{version}",
        "kind": "ServiceCIDR",
        "metadata": {"name": name},
        "spec": {"cidrs": list(cidrs)},
    }


def received(**more: Any) -> Object:  # noqa: ANN401
    allowed = {"allowed": {"mode": "all"}}
    return configuration("a", {"bgp": {"routers": [router(neighbor(toReceive=allowed, **more))]}})


def agent(*always_block: str) -> AgentInMemory:
    options = {"frrk8s": Frrk8sOptions(always_block=always_block)}
    return AgentInMemory("n1", (Frrk8sDialect,), options)


def blocked(it: AgentInMemory) -> list[str]:
    ((peer,),) = (instance["peers"] for instance in it.render()["instances"])
    return sorted(rule["prefix"] for rule in peer.get("neverAccept", []))


@pytest.mark.parametrize(
    ("given", "configured", "auto"),
    [
        (("auto",), (), True),
        (("10.0.0.0/8, auto", "fd00::/8"), ("10.0.0.0/8", "fd00::/8"), True),
        (("10.0.0.0/8",), ("10.0.0.0/8",), False),
        ((), (), False),
    ],
)
def test_auto_stands_alone_or_beside_prefixes(
    given: tuple[str, ...], configured: tuple[str, ...], auto: bool
) -> None:
    options = Frrk8sOptions(always_block=given)
    assert (options.blocked, options.blocks_cluster) == (configured, auto)


def test_with_auto_the_agent_reads_all_nodes_and_service_cidrs() -> None:
    auto, plain = Frrk8sOptions(always_block=("auto",)), Frrk8sOptions(always_block=OTHER)
    (optional,) = Frrk8sDialect.each(OptionalKinds)
    assert (optional.when(auto), optional.when(plain)) == (True, False)
    assert optional.of_all_nodes == (NODE,)
    assert SERVICE_CIDR in Frrk8sDialect.read(auto, operator=False)
    assert SERVICE_CIDR not in Frrk8sDialect.read(plain, operator=False)


def test_the_networks_of_the_cluster_and_of_the_option_are_blocked() -> None:
    it = agent("auto,10.0.0.0/8", "10.244.1.0/24")
    it.work(
        node("n1", "10.244.0.0/24", "fd00:244::/64"),
        node("n2", "10.244.1.0/24"),
        node("n3", podCIDR="10.244.2.0/24"),
        node("n4"),
        service_cidr("kubernetes", "10.96.0.0/12", "fd00:96::/112"),
        service_cidr("more", "172.20.0.0/16", version="v1beta1"),
        received(dualStackAddressFamily=True),
    )
    ipv4 = ["10.0.0.0/8", "10.96.0.0/12"]
    ipv4 += [f"10.244.{number}.0/24" for number in range(3)]
    more = ["172.20.0.0/16", "fd00:96::/112", "fd00:244::/64"]
    assert blocked(it) == sorted([*ipv4, *more])


def test_without_auto_the_networks_of_the_cluster_are_not_blocked() -> None:
    it = agent("192.0.2.0/24")
    it.work(node("n1", "10.244.0.0/24"), service_cidr("kubernetes", "10.96.0.0/12"), received())
    assert blocked(it) == ["192.0.2.0/24"]


def test_a_change_of_the_cluster_changes_the_policy_and_resets_no_session() -> None:
    it = agent("auto")
    it.work(node("n1", "10.244.0.0/24"), received())
    it.connect()
    prefix = "10.244.1.0/24"
    for changed, wanted in (
        (node("n2", prefix), ["10.244.0.0/24", prefix]),
        (service_cidr("kubernetes", "10.96.0.0/12"), ["10.96.0.0/12", "10.244.0.0/24", prefix]),
        (service_cidr("kubernetes", "10.97.0.0/16"), ["10.97.0.0/16", "10.244.0.0/24", prefix]),
    ):
        work = it.work(changed)
        assert blocked(it) == sorted(wanted)
        assert not work.octets
        (status,) = it.speaker.peers()
        assert status.established
    it.work(removed=[node("n2"), service_cidr("kubernetes")])
    assert blocked(it) == ["10.244.0.0/24"]


def test_a_node_that_changes_otherwise_changes_nothing() -> None:
    it = agent("auto")
    it.work(node("n1", "10.244.0.0/24"), node("n2", "10.244.1.0/24"), received())
    work = it.work(node("n2", "10.244.1.0/24", unschedulable=True))
    assert not work.rows
    assert not work.octets


def test_the_rule_of_a_received_route_names_the_network() -> None:
    it = agent("auto")
    it.work(node("n2", "10.244.1.0/24"), service_cidr("kubernetes", "10.96.0.0/12"), received())
    (peer,) = it.intent.peers.all(it.db.snapshot())
    found = {
        prefix: decide(peer, *prefix_to_wire(prefix)).filter
        for prefix in ("10.244.1.128/25", "10.96.0.0/12", "10.244.0.0/16")
    }
    assert found == {
        "10.244.1.128/25": "AlwaysBlock 10.244.1.0/24",
        "10.96.0.0/12": "AlwaysBlock 10.96.0.0/12",
        "10.244.0.0/16": "all",
    }


def test_of_other_nodes_an_agent_keeps_name_and_networks() -> None:
    row = NODE.decode(node("n2", podCIDR="10.244.2.0/24", unschedulable=True))
    kept = of_other_nodes(row)
    assert (kept.key, kept.pod_networks) == (row.key, ("10.244.2.0/24",))
    assert not kept.metadata.labels
    assert not kept.spec.unschedulable


def test_a_service_cidr_that_is_no_prefix_is_named() -> None:
    with pytest.raises(InvalidObject, match=r"spec\.cidrs\[1\]"):
        SERVICE_CIDR.decode(service_cidr("x", "10.96.0.0/12", "10.0.0.0"))
