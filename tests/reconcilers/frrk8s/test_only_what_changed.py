"""A change touches only what changed, whatever the objects are and whatever changes.

A peer whose part of ``waggle render`` is the same before and after is sent no octet, and a row that is
equal is not written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.intent.service_addresses.address_set import AddressSet
from reconcilers.intent.service_addresses.published import PARTS
from reconcilers.model import Attributes, Contribution
from reconcilers.sliced_work import Slices
from speaker.nlri import IPV4_UNICAST
from tests.reconcilers.frrk8s.agent_in_memory import AgentInMemory
from tests.reconcilers.frrk8s.build import configuration
from tests.support.examples import examples

NODE = "n1"
PREFIXES = ("10.1.0.0/24", "10.2.0.0/24", "10.3.0.0/24", "2001:db8::/32")
PEERS = ("203.0.113.1", "203.0.113.2", "203.0.113.3")
NAMES = ("o0", "o1", "o2", "o3")
Object = dict[str, Any]


def node(labels: dict[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE, "labels": labels},
        "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]},
    }


@st.composite
def neighbors(draw: st.DrawFn, prefixes: list[str]) -> Object:
    carried = [prefix for prefix in prefixes if "." in prefix]
    listed: list[str] = draw(st.lists(st.sampled_from(carried), unique=True)) if carried else []
    mode = draw(st.sampled_from(("all", "filtered", "filtered")))
    sent = carried if mode == "all" else listed
    advertise: Object = {"allowed": {"mode": mode, "prefixes": listed}}
    if draw(st.booleans()) and sent:
        advertise["withCommunity"] = [
            {"community": draw(st.sampled_from(("1:1", "1:2"))), "prefixes": sent[:1]}
        ]
    if draw(st.integers(0, 9)) == 0:
        advertise["nextHop"] = {"ipv4": draw(st.sampled_from(("192.0.2.8", "192.0.2.9")))}
    accepted = draw(st.lists(st.sampled_from(PREFIXES), unique=True, max_size=2))
    found: Object = {
        "address": draw(st.sampled_from(PEERS)),
        "asn": 64950,
        "toAdvertise": advertise,
        "toReceive": {"allowed": {"prefixes": [{"prefix": one} for one in accepted]}},
    }
    if draw(st.integers(0, 9)) == 0:
        found["port"] = 180
    if draw(st.integers(0, 5)) == 0:
        found["enableGracefulRestart"] = True
    return found


@st.composite
def specs(draw: st.DrawFn) -> Object:
    prefixes = draw(st.lists(st.sampled_from(PREFIXES), unique=True))
    router: Object = {
        "asn": 64900,
        "prefixes": prefixes,
        "neighbors": draw(
            st.lists(neighbors(prefixes), max_size=3, unique_by=lambda one: one["address"])
        ),
    }
    found: Object = {"bgp": {"routers": [router]}}
    if draw(st.integers(0, 3)) == 0:
        rack = draw(st.sampled_from(("1", "2")))
        found["nodeSelector"] = {"matchLabels": {"rack": rack}}
    return found


changes = st.one_of(
    st.tuples(st.sampled_from(NAMES), specs()),
    st.tuples(st.sampled_from(NAMES), st.none()),
    st.tuples(st.just("node"), st.fixed_dictionaries({"rack": st.sampled_from(("1", "2"))})),
)
"""An object that is put or deleted, or the labels of the node."""


def parts(agent: AgentInMemory) -> dict[str, object]:
    """Return the part of the document that each session depends on, by the peer's address."""
    found: dict[str, object] = {}
    for instance in agent.render()["instances"]:
        of_all = {key: instance[key] for key in instance.keys() - {"peers", "originate"}}
        for peer in instance["peers"]:
            found[peer["address"]] = (of_all, peer)
    return found


@settings(max_examples=examples(40))
@given(st.dictionaries(st.sampled_from(NAMES), specs()), st.lists(changes, min_size=1, max_size=4))
def test_only_what_changed_is_touched(
    objects: dict[str, Object], steps: list[tuple[str, Object | None]]
) -> None:
    agent = AgentInMemory(NODE)
    present = {name: configuration(name, spec) for name, spec in objects.items()}
    agent.write([node({"rack": "1"}), *present.values()])
    agent.settle()
    for name, value in steps:
        agent.connect()
        before, rows = parts(agent), agent.rows()
        if name == "node":
            work = agent.work(node(value or {}))
        elif value is not None:
            present[name] = configuration(name, value)
            work = agent.work(present[name])
        else:
            gone = present.pop(name, None)
            work = agent.work(removed=[] if gone is None else [gone])
        after, now = parts(agent), agent.rows()
        same = {peer for peer in before.keys() & after.keys() if before[peer] == after[peer]}
        assert not same & work.octets.keys()
        for peer, status in {s.name: s for s in agent.speaker.peers()}.items():
            assert peer not in same or status.established
        written: dict[str, int] = {}
        for table, key in rows.keys() | now.keys():
            if rows.get((table, key)) != now.get((table, key)):
                written[table] = written.get(table, 0) + 1
        assert work.rows == written


def advertising(peers: dict[str, str], *, prefix: str = PREFIXES[0]) -> Object:
    """Make a specification that advertises one prefix with a community to each of some peers."""
    of_peers = [
        {
            "address": peer,
            "asn": 64950,
            "toAdvertise": {
                "allowed": {"prefixes": [prefix]},
                "withCommunity": [{"community": community, "prefixes": [prefix]}],
            },
        }
        for peer, community in peers.items()
    ]
    return {"bgp": {"routers": [{"asn": 64900, "prefixes": [prefix], "neighbors": of_peers}]}}


def test_peers_that_part_are_never_sent_the_routes_of_each_other() -> None:
    first, second, _ = PEERS
    agent = AgentInMemory(NODE)
    agent.write([node({}), configuration("o0", advertising(dict.fromkeys(PEERS, "1:1")))])
    agent.settle()
    agent.connect()
    work = agent.work(configuration("o1", advertising({first: "1:2"})))
    assert work.updates == {first: 1}
    work = agent.work(configuration("o1", advertising({first: "1:2", second: "1:3"})))
    assert work.updates == {second: 1}
    work = agent.work(configuration("o0", advertising(dict.fromkeys(PEERS, "1:4"))))
    assert work.updates == dict.fromkeys(PEERS, 1)
    work = agent.work(removed=[configuration("o1", {})])
    assert work.updates == {first: 1, second: 1}
    routes = {
        address: router.received(IPV4_UNICAST)[PREFIXES[0]].communities
        for address, router in agent.routers.items()
    }
    assert routes == dict.fromkeys(PEERS, ("1:4",))


def test_one_prefix_more_joins_the_attributes_of_that_prefix_alone() -> None:
    joined: list[int] = []

    class Counting(Frrk8sDialect):
        def join(self, contributions: Sequence[Contribution]) -> Attributes:
            joined.append(len(contributions))
            return super().join(contributions)

    def of(count: int) -> Object:
        advertise = {"allowed": {"mode": "all"}}
        session = {"address": PEERS[0], "asn": 64950, "toAdvertise": advertise}
        prefixes = [f"10.{i}.0.0/24" for i in range(count)]
        one = {"asn": 64900, "prefixes": prefixes, "neighbors": [session]}
        return configuration("o0", {"bgp": {"routers": [one]}})

    it = AgentInMemory(NODE, [Counting])
    it.work(of(10))
    joined.clear()
    work = it.work(of(11))
    assert (work.rows["routes"], joined) == (1, [1])


def test_a_change_without_other_addresses_makes_no_sets_of_the_clusters_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it = AgentInMemory(NODE)
    session = {"address": PEERS[0], "asn": 64950}

    def of(*prefixes: str) -> Object:
        one = {"asn": 64900, "prefixes": list(prefixes), "neighbors": [session]}
        return configuration("o0", {"bgp": {"routers": [one]}})

    it.work(node({}), of(PREFIXES[0]))
    gathered: list[int] = []
    gather = AddressSet.gather

    def counted(addresses: Iterable[str]) -> Slices[AddressSet]:
        gathered.append(1)
        return gather(addresses)

    monkeypatch.setattr(AddressSet, "gather", counted)
    it.work(of(*PREFIXES[:2]))
    of_node = len(gathered)
    session["address"] = PEERS[1]
    it.work(of(*PREFIXES[:2]))
    assert len(gathered) - of_node >= of_node + len(PARTS)
