"""What a change costs, and which sessions it resets: the intent applied to the real engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from speaker.api import PeerConfig
from speaker.nlri import IPV4_UNICAST
from statedb import Table
from tests.reconcilers.antrea.build import (
    NEW,
    NODE,
    Cluster,
    egress,
    endpoints,
    in_ten_spellings,
    node,
    policy,
    secret,
    service,
)
from tests.speaker.network import Host, Network
from tests.support.engine_speaker import EngineSpeaker
from tests.support.speaker_reconcilers import runner

OWN, ROUTERS = "10.30.4.17", ("10.30.4.1", "10.30.4.2")
PEERS = [{"address": address, "asn": 64600} for address in ROUTERS]
ALL = ("ClusterIP", "ExternalIP", "LoadBalancerIP")


class Applied:
    """A cluster whose intent is applied, and two routers."""

    def __init__(self, *objects: dict[str, Any]) -> None:
        self.cluster = Cluster(node(), *objects)
        self.network = Network()
        self.speaker = EngineSpeaker(self.network, OWN)
        cluster = self.cluster
        self.runner = runner(cluster.db, cluster.intent, cluster.resources, self.speaker)
        self.routers = [self._router(i, address) for i, address in enumerate(ROUTERS)]
        self.settle()

    def _router(self, number: int, address: str) -> Host:
        host = self.network.host(f"router-{number}", address, 64600)
        host.peer(PeerConfig(name="agent", address=OWN, peer_asn=64620, import_="all"))
        return host

    def settle(self) -> None:
        """Compile, apply, and let the sessions exchange what is due."""
        self.cluster.run()
        self.runner.run(self.network.now)
        self.network.run(10)

    def held(self, router: int = 0) -> set[str]:
        """Return the prefixes that a router holds."""
        return set(self.routers[router].available(IPV4_UNICAST))

    def since(self) -> dict[str, float]:
        """Return when each session was established."""
        return {one.name: one.since for one in self.speaker.peers() if one.established}


@contextmanager
def rows_read() -> Iterator[list[int]]:
    """Count the rows that are read from tables."""
    count = [0]
    methods = {name: getattr(Table, name) for name in ("get", "all", "find", "prefix")}

    def counting(name: str) -> Any:  # noqa: ANN401
        def read(self: Table[Any], *arguments: Any) -> Any:  # noqa: ANN401
            found = methods[name](self, *arguments)
            if name == "get":
                count[0] += 1
                return found
            return _counted(found, count)

        return read

    with pytest.MonkeyPatch.context() as patched:
        for name in methods:
            patched.setattr(Table, name, counting(name))
        yield count


def _counted(rows: Iterator[Any], count: list[int]) -> Iterator[Any]:
    for row in rows:
        count[0] += 1
        yield row


S7: dict[str, Any] = {"clusterIPs": ["10.98.0.7"], "externalTrafficPolicy": "Local"}
CHANGES = {
    "an external IP is added": service("s7", externalIPs=["192.0.2.7"], **S7),
    "an endpoint moves away": endpoints("edge-9", service="s7"),
    "an endpoint moves here": endpoints(NODE, service="s7"),
}


def costs(services: int) -> dict[str, dict[str, int]]:
    """Return what each change costs among this many Services."""
    it = Applied(
        policy("p", *ALL, peers=PEERS),
        *(
            service(
                f"s{i}", clusterIPs=[f"10.98.{i >> 8}.{i & 255}"], externalTrafficPolicy="Local"
            )
            for i in range(services)
        ),
    )
    it.cluster.put(endpoints(NODE, service="s7"))
    it.settle()
    return {name: cost(it, change) for name, change in CHANGES.items()}


def cost(it: Applied, change: dict[str, Any]) -> dict[str, int]:
    """Return what a change costs."""
    it.speaker.host.sent()
    it.speaker.take()
    with rows_read() as count:
        it.cluster.put(change)
        summary = it.cluster.run()
        it.runner.run(it.network.now)
        rows = count[0]
    it.network.run(1)
    assert it.held() == it.held(1)
    return {
        "rows": rows,
        "objects": summary.objects,
        "routes": summary.routes,
        "calls": len(it.speaker.take()),
        "octets": len(it.speaker.host.sent()),
    }


@pytest.mark.timeout(300)
def test_the_cost_of_a_change_does_not_grow_with_the_services() -> None:
    found = costs(1000)
    for one in found.values():
        assert (one["objects"], one["routes"]) == (1, 1)
        assert one["octets"] > 0
    assert costs(10_000) == found


def test_a_compatible_successor_resets_no_session_and_sends_the_differences() -> None:
    addresses = [
        service(f"s{i}", clusterIPs=[f"10.98.0.{i}"], externalIPs=[f"192.0.2.{i}"])
        for i in range(50)
    ]
    it = Applied(
        policy("old", "ClusterIP", "ExternalIP", peers=PEERS),
        policy("new", "ExternalIP", peers=PEERS, created=NEW),
        *addresses,
    )
    assert len(it.held()) == 100
    before = it.since()
    assert len(before) == 2
    it.speaker.take()
    it.speaker.host.sent()
    it.cluster.delete("BGPPolicy", "old")
    it.settle()
    assert it.since() == before
    assert it.held() == it.held(1) == {f"192.0.2.{i}/32" for i in range(50)}
    calls = [call[0] for call in it.speaker.take()]
    assert "remove_peer" not in calls
    assert "remove_instance" not in calls
    # 50 withdrawn prefixes of five octets, to two peers; nothing that stays is sent again.
    assert 2 * 50 * 5 < len(it.speaker.host.sent()) < 2 * (50 * 5 + 100)


@pytest.mark.parametrize(
    "fields",
    [{"asn": 64999}, {"port": 1790}, {"multihopTTL": 2}, {"gracefulRestartTimeSeconds": 60}],
    ids=str,
)
def test_a_changed_peer_resets_its_own_session(fields: dict[str, int]) -> None:
    it = Applied(policy("p", peers=PEERS, pod=True))
    before = it.since()
    it.network.run(30)
    it.cluster.put(policy("p", peers=[PEERS[0], PEERS[1] | fields], pod=True))
    it.settle()
    after = it.since()
    assert after[ROUTERS[0]] == before[ROUTERS[0]]
    assert after.get(ROUTERS[1]) != before[ROUTERS[1]]


def test_nothing_else_resets_a_session() -> None:
    it = Applied(policy("p", peers=PEERS, pod=True))
    before = it.since()
    assert len(before) == 2
    it.network.run(30)
    for changed in (
        policy("p", peers=PEERS[::-1], pod=True),
        policy("p", peers=[*PEERS, PEERS[0]], pod=True),
        policy("p", peers=[PEERS[0] | {"port": 179, "holdTimeSeconds": 30}, PEERS[1]], pod=True),
        policy("p", *ALL, peers=PEERS, egress=True),
        policy("p", *ALL, peers=PEERS, selector={}),
        policy("p", *ALL, peers=[*PEERS, {"address": "10.30.4.3", "asn": 64600}]),
        policy("a", *ALL, peers=[], created=NEW),
        node(router_id="10.30.4.17", labels={"pool": "edge", "more": "yes"}),
        secret({"10.30.4.9-64600": "unused", f"{ROUTERS[0]}-64601": "another AS"}),
    ):
        it.cluster.put(changed)
        it.settle()
        assert it.since() == before, changed


def test_a_changed_as_number_replaces_the_session_in_one_step() -> None:
    it = Applied(policy("p", peers=PEERS, pod=True))
    before = it.since()
    changed = [PEERS[0], {"address": ROUTERS[1], "asn": 64999}]
    it.cluster.put(policy("p", peers=changed, pod=True))
    it.settle()
    (status,) = (one for one in it.speaker.peers() if one.name == ROUTERS[1])
    assert status.peer_asn == 64999
    assert it.since() == {ROUTERS[0]: before[ROUTERS[0]]}
    it.cluster.put(policy("p", peers=PEERS, pod=True))
    it.settle()
    it.network.run(120)
    assert len(it.since()) == 2


BAD = {
    "addresses": service("bad", externalIPs=["10.30.4.17", "10.30.4.1", "169.254.169.254"]),
    "policy": policy("worse", localASN=4200000000, created="2020-01-01T00:00:00Z"),
    "node": node("another", addresses=[], cidrs=["2001:db8::/64"]),
    "a node without addresses": node("another", addresses=[], cidrs=[]),
    "a pod CIDR without an address": node(cidrs=["10.201.7.0/24", "2001:db8:c9:7::/64"]),
    "500 spellings": service("bad", externalIPs=in_ten_spellings(50)),
    "peers": policy(
        "p",
        *ALL,
        peers=[*PEERS, *({"address": ROUTERS[0], "asn": 1 + i} for i in range(1000))],
        pod=True,
    ),
    "a large secret": secret({"10.30.4.9-64600": "x" * 2**20}),
    "a secret with NUL": secret({"10.30.4.9-64600": "a\0b", "10.30.4.1": "no AS number"}),
    "endpoints of no service": endpoints(NODE, service="missing"),
    "egress": egress("e", "", NODE),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=list(BAD))
def test_bad_input_resets_no_session(bad: dict[str, Any]) -> None:
    it = Applied(policy("p", *ALL, peers=PEERS, pod=True, egress=True))
    before, held = it.since(), it.held()
    assert (len(before), held) == (2, {"10.201.7.0/24"})
    it.cluster.put(bad)
    it.settle()
    assert (it.since(), it.held()) == (before, held)


def test_objects_of_one_round_may_be_gone_in_the_next() -> None:
    it = Applied(policy("p", *ALL, peers=PEERS, pod=True))
    before = it.since()
    for _ in range(3):
        it.cluster.put(
            service(externalIPs=["192.0.2.1"]), endpoints(NODE), policy("q", created=NEW)
        )
        it.cluster.run()
        it.cluster.delete("Service", "shop", "retail")
        it.cluster.delete("EndpointSlice", "shop-1", "retail")
        it.cluster.delete("BGPPolicy", "q")
        it.settle()
        assert (it.since(), it.held()) == (before, {"10.201.7.0/24"})
