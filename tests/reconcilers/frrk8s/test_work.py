"""What a change costs: objects that are compiled, rows that are written, messages that are sent.

The counts do not depend on the machine; times are measured by `bench/bench_frrk8s.py`.
"""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from reconcilers.admission import Request, Reviewer
from reconcilers.dialect import Contributed
from reconcilers.frrk8s import one_object
from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.frrk8s.merge import merger
from reconcilers.frrk8s.options import Frrk8sClusterOptions
from reconcilers.frrk8s.route_sets import RouteSet, changed_objects
from reconcilers.frrk8s.route_sources import ConfiguredPrefixSource
from reconcilers.model import Attributes
from reconcilers.sliced_work import Pieces, finish
from resources.core.kinds import NODE as NODE_KIND
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.kind import Kinds
from resources.tables import Tables
from speaker.nlri import IPV4_UNICAST, prefix_to_text
from statedb import Database
from tests.reconcilers.frrk8s.agent_in_memory import CILIUM, AgentInMemory
from tests.reconcilers.frrk8s.build import configuration

NODE = "n1"
OBJECTS, PREFIXES, PEERS = 20, 5, 3
Object = dict[str, Any]


def node(**labels: str) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "labels": labels}}


def prefix(number: int) -> str:
    return f"10.{number >> 8}.{number & 255}.0/24"


def part(number: int, prefixes: list[str] | None = None, **receive: Any) -> Object:  # noqa: ANN401
    """Make one of the objects, which all have the same neighbours and different prefixes."""
    given = prefixes or [prefix(number * PREFIXES + i) for i in range(PREFIXES)]
    advertise = {
        "allowed": {"prefixes": given},
        "withCommunity": [{"community": "65001:100", "prefixes": given}],
    }
    neighbors = [
        {
            "address": f"203.0.113.{peer}",
            "asn": 64950,
            "toAdvertise": advertise,
            "toReceive": {"allowed": {"prefixes": receive.get("selectors", [])}},
        }
        for peer in range(1, PEERS + 1)
    ]
    router = {"asn": 64900, "prefixes": given, "neighbors": neighbors}
    return configuration(f"part-{number:02d}", {"bgp": {"routers": [router]}})


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the objects that are compiled, from now on."""
    found: list[str] = []
    original = one_object.compile_unit

    def compile_unit(unit: Any, *given: Any) -> Any:  # noqa: ANN401
        found.append(unit.ref.name)
        return original(unit, *given)

    monkeypatch.setattr(merger, "compile_unit", compile_unit)
    return found


@pytest.fixture
def agent(compiled: list[str]) -> AgentInMemory:
    made = AgentInMemory(NODE)
    made.write([node(rack="1"), *map(part, range(OBJECTS))])
    made.settle()
    made.connect()
    assert len(compiled) == OBJECTS
    compiled.clear()
    return made


def test_a_changed_prefix(agent: AgentInMemory, compiled: list[str]) -> None:
    changed = [prefix(3 * PREFIXES + i) for i in range(PREFIXES - 1)]
    work = agent.work(part(3, [*changed, "192.168.0.0/24"]))
    assert compiled == ["part-03"]
    assert work.summary.objects == 1
    # The withdrawn and the new route, and the instance, which originates both.
    assert work.rows == {"routes": 2, "instances": 1}
    assert work.calls == 2
    assert set(work.updates) == {f"203.0.113.{peer}" for peer in range(1, PEERS + 1)}
    assert set(work.updates.values()) == {2}
    assert all(status.established for status in agent.speaker.peers())


def test_one_prefix_more_contributes_alone(
    agent: AgentInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    contributed: list[str] = []
    original = ConfiguredPrefixSource.contributions_to

    def counted(*given: Any) -> Iterator[Contributed]:  # noqa: ANN401
        for one in original(*given):
            contributed.append(prefix_to_text(one.family, one.nlri))
            yield one

    def every(*_: Any) -> Iterator[Contributed]:  # noqa: ANN401
        raise AssertionError("every prefix of the object contributes again")

    monkeypatch.setattr(ConfiguredPrefixSource, "contributions_to", counted)
    monkeypatch.setattr(ConfiguredPrefixSource, "contributions", every)
    given = [prefix(3 * PREFIXES + i) for i in range(PREFIXES)]
    agent.work(part(3, [*given, "192.168.0.0/24"]))
    assert contributed == ["192.168.0.0/24"]
    agent.work(part(3, given))
    assert contributed == ["192.168.0.0/24"]
    routes = agent.intent.routes.all(agent.db.snapshot())
    assert "192.168.0.0/24" not in {prefix_to_text(row.family, row.nlri) for row in routes}


def test_a_changed_community_of_one_prefix(agent: AgentInMemory, compiled: list[str]) -> None:
    value = part(3)
    [advertise, *_] = [
        one["toAdvertise"] for one in value["spec"]["bgp"]["routers"][0]["neighbors"]
    ]
    # One value of all neighbours.
    advertise["withCommunity"] += [{"community": "65001:7", "prefixes": [prefix(3 * PREFIXES)]}]
    work = agent.work(value)
    assert compiled == ["part-03"]
    assert work.rows == {"routes": 1}
    assert set(work.updates.values()) == {1}


@given(
    before=st.dictionaries(st.integers(0, 9), st.integers(0, 3)),
    after=st.dictionaries(st.integers(0, 9), st.integers(0, 3)),
)
def test_changed_prefixes_have_changed_attributes(
    before: dict[int, int], after: dict[int, int]
) -> None:
    def sets(of: dict[int, int]) -> dict[str, RouteSet]:
        routes = {
            (IPV4_UNICAST, bytes((8, number))): Attributes(communities=(value,))
            for number, value in of.items()
        }
        return {"set": RouteSet("set", {("object",): (routes,)})}

    changed = finish(changed_objects(sets(before), sets(after), Pieces()))
    wanted = {
        (IPV4_UNICAST, bytes((8, number)))
        for number in before.keys() | after.keys()
        if before.get(number) != after.get(number)
    }
    assert changed.get(("object",), set()) == wanted


def test_changed_prefixes_of_a_large_object_are_found_in_slices() -> None:
    """Attributes are compared once for each pair of values that prefixes share."""

    class Counted(Attributes, frozen=True):
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            compared.append(other)
            return False

    compared: list[object] = []
    exports = [
        dict.fromkeys(
            ((IPV4_UNICAST, b"\x18" + n.to_bytes(3, "big")) for n in range(20_000)), Counted()
        )
        for _ in range(2)
    ]
    before, after = ({"set": RouteSet("set", {("object",): (routes,)})} for routes in exports)
    compared.clear()
    slices = changed_objects(before, after, Pieces())
    assert sum(1 for _ in slices) >= 7
    assert len(compared) <= 3


def test_an_object_of_other_nodes(agent: AgentInMemory, compiled: list[str]) -> None:
    # With manifests it is stored, and is looked at; an agent of an API server does not store it.
    value = part(90)
    value["spec"]["nodeSelector"] = {"matchLabels": {"rack": "2"}}
    work = agent.work(value)
    assert compiled == []
    assert (work.rows, work.calls, work.updates) == ({}, 0, {})


def test_a_selector_of_received_routes(agent: AgentInMemory, compiled: list[str]) -> None:
    work = agent.work(part(3, selectors=[{"prefix": "172.16.0.0/12", "le": 24}]))
    assert compiled == ["part-03"]
    # And the problem that accepted routes are not installed in the kernel.
    assert work.rows == {"peers": PEERS, "problems": 1}
    assert work.updates == {}
    assert all(status.established for status in agent.speaker.peers())


def test_an_unselected_label_of_the_node(agent: AgentInMemory, compiled: list[str]) -> None:
    work = agent.work(node(rack="1", room="4"))
    assert compiled == []
    assert (work.rows, work.calls, work.updates) == ({}, 0, {})


def test_an_object_that_comes_and_goes(agent: AgentInMemory, compiled: list[str]) -> None:
    work = agent.work(part(90))
    assert compiled == ["part-90"]
    # Its neighbours have one origin more.
    assert work.rows == {"routes": PREFIXES, "instances": 1, "peers": PEERS}
    work = agent.work(removed=[part(90)])
    assert compiled == ["part-90"]
    assert work.rows == {"routes": PREFIXES, "instances": 1, "peers": PEERS}


def test_a_conflict_stops_nothing_and_its_end_compiles_nothing(
    agent: AgentInMemory, compiled: list[str]
) -> None:
    value = part(3)
    for neighbor in value["spec"]["bgp"]["routers"][0]["neighbors"]:
        neighbor["port"] = 180
    work = agent.work(value)
    assert compiled == ["part-03"]
    assert work.rows == {"problems": PEERS}
    assert (work.calls, work.updates) == (0, {})
    work = agent.work(part(3))
    assert compiled == ["part-03"]  # Its last compilations are remembered.
    assert work.rows == {"problems": PEERS}
    assert (work.calls, work.updates) == (0, {})


def test_a_review_compiles_the_object_alone(compiled: list[str]) -> None:
    db = Database()
    kinds = Kinds(Frrk8sDialect.cluster_kinds)
    tables = Tables(db, kinds)
    reviewer = Reviewer(db, tables, [Frrk8sDialect(tables, Frrk8sClusterOptions())])
    racks, of_rack = 5, 4
    nodes = [
        {"metadata": {"name": f"n{number}", "labels": {"rack": str(number % racks)}}}
        for number in range(40)
    ]
    parts = [part(number) for number in range(racks * of_rack)]
    for number, value in enumerate(parts):
        value["spec"]["nodeSelector"] = {"matchLabels": {"rack": str(number % racks)}}
    with db.write(tables.nodes, tables.of(FRR_CONFIGURATION)) as txn:
        for value in nodes:
            tables.nodes.upsert(txn, NODE_KIND.decode(value))
        for value in parts:
            tables.of(FRR_CONFIGURATION).upsert(txn, FRR_CONFIGURATION.decode(value))
    version = FRR_CONFIGURATION.api_versions[0]
    assert reviewer.review(Request("CREATE", version, "FRRConfiguration", part(90))).allowed
    assert sorted(compiled) == [*(f"part-{n:02d}" for n in range(racks * of_rack)), "part-90"]
    compiled.clear()
    verdict = reviewer.review(Request("CREATE", version, "FRRConfiguration", part(91)))
    assert verdict.allowed
    assert compiled == ["part-91"]


# Beside Cilium's objects with as many routes


def services(count: int) -> list[Object]:
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": f"s{number}", "namespace": "shop"},
            "spec": {"type": "LoadBalancer", "clusterIP": f"10.96.0.{number + 1}"},
            "status": {"loadBalancer": {"ingress": [{"ip": f"198.18.0.{number + 1}"}]}},
        }
        for number in range(count)
    ]


def cilium() -> list[Object]:
    """Make the same peers, which get the addresses of Services."""
    peers = [
        {
            "name": f"p{peer}",
            "peerASN": 64950,
            "peerAddress": f"203.0.113.{peer}",
            "peerConfigRef": {"name": "c"},
        }
        for peer in range(1, PEERS + 1)
    ]
    instance = {"name": "i", "localASN": 64900, "peers": peers}
    family = {
        "afi": "ipv4",
        "safi": "unicast",
        "advertisements": {"matchLabels": {"advertise": "bgp"}},
    }
    advertised = {
        "advertisementType": "Service",
        "service": {"addresses": ["LoadBalancerIP"]},
        "selector": {},
    }
    specs: dict[str, Object] = {
        "CiliumBGPClusterConfig": {"bgpInstances": [instance]},
        "CiliumBGPPeerConfig": {"families": [family]},
        "CiliumBGPAdvertisement": {"advertisements": [advertised]},
    }
    return [
        {
            "apiVersion": "cilium.io/v2",
            "kind": kind,
            "metadata": {"name": "c", "labels": {"advertise": "bgp"}},
            "spec": spec,
        }
        for kind, spec in specs.items()
    ]


def test_one_route_costs_what_one_of_cilium_costs(agent: AgentInMemory) -> None:
    other = AgentInMemory(NODE, CILIUM)
    address = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE},
        "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]},
    }
    other.write([address, *cilium(), *services(OBJECTS * PREFIXES)])
    other.settle()
    other.connect()
    [changed] = services(1)
    changed["status"]["loadBalancer"]["ingress"] = [{"ip": "198.18.1.1"}]
    theirs = other.work(changed)
    changes = [prefix(3 * PREFIXES + i) for i in range(PREFIXES - 1)]
    ours = agent.work(part(3, [*changes, "192.168.0.0/24"]))
    assert len(ours.updates) == len(theirs.updates) == PEERS
    assert set(ours.updates.values()) == set(theirs.updates.values()) == {2}
    assert ours.rows["routes"] == theirs.rows["routes"] == 2
    assert ours.calls <= theirs.calls + 1  # The instance originates the prefix, too.


CHANGES = 50
OF_OBJECT = 300


def change_again_and_again() -> None:
    """Print the octets of Python's objects and of the process after each of some changes.

    Each change replaces all prefixes of an object, and all that its neighbours may have.
    """
    agent = AgentInMemory(NODE)
    agent.write([node(rack="1")])
    tracemalloc.start()
    for number in range(CHANGES):
        given = [f"10.{number}.{n >> 8}.{n & 255}/32" for n in range(OF_OBJECT)]
        neighbors = [
            {
                "asn": 64512,
                "address": "203.0.113.1",
                "toAdvertise": {"allowed": {"prefixes": given[1:]}},
            }
        ]
        router = {"asn": 64900, "prefixes": given, "neighbors": neighbors}
        agent.write([configuration("large", {"bgp": {"routers": [router]}})])
        agent.settle()
        gc.collect(1)
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
        sys.stdout.write(f"{tracemalloc.get_traced_memory()[0]} {resident}\n")


def test_an_object_that_changes_again_and_again_takes_the_memory_of_one() -> None:
    """In a process of its own, as an agent: with the caches that it has."""
    code = "from tests.reconcilers.frrk8s import test_work; test_work.change_again_and_again()"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = [tuple(map(int, line.split())) for line in run.stdout.splitlines()]
    traced, resident = zip(*found, strict=True)
    assert len(found) == CHANGES
    # Caches are full after 35 changes. One compilation more that each of the 15 others left behind
    # would be 1.1 MB of objects and 2.3 MB of the process; without it both are less than 0.1 MB.
    assert max(traced[35:]) - max(traced[:35]) < 1 << 19
    assert max(resident[35:]) - max(resident[:35]) < 1 << 20
