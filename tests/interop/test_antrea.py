"""Three nodes with Antrea's policies, and FRR: equal paths with TCP MD5, and a confederation."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.interop.conftest import NeedRouter
from tests.reconcilers.antrea.build import endpoints, node, policy, secret, service
from tests.support.agent import Agent
from tests.support.netns import Namespace, linked_namespaces, nodes_at
from tests.support.routers import PeerSettings, RouterSettings
from tests.support.routers.bird import Bird
from tests.support.routers.frr import Frr
from tests.support.routers.gobgp import GoBGP
from tests.support.wait import eventually, settles

pytestmark = [
    pytest.mark.interop,
    pytest.mark.netns,
    pytest.mark.program,
]

ROUTER, MEMBER = "10.30.4.1", "10.30.4.8"
NODES = {"edge-7": "10.30.4.17", "edge-8": "10.30.4.18", "edge-9": "10.30.4.19"}
SHOP = "10.98.14.20/32"
POD_CIDR = "10.201.0.0/24"
"""Of the first node."""
PASSWORD = "of-all-nodes"
IDENTIFIER = 65010


def cluster() -> list[dict[str, Any]]:
    """Return the three Nodes."""
    return [
        node(name, addresses=[address], cidrs=[f"10.201.{i}.0/24"], router_id=None)
        for i, (name, address) in enumerate(NODES.items())
    ]


@contextmanager
def agents(places: list[Namespace], directory: Path) -> Iterator[list[Agent]]:
    """Run an agent on each node."""
    flags = ["--enable-cell=antrea", "--disable-cell=cilium"]
    found = [
        Agent(place, directory / name, node=name, arguments=flags)
        for place, name in zip(places, NODES, strict=True)
    ]
    with ExitStack() as stack:
        for one in found:
            one.start()
            stack.callback(one.stop)
        for one in found:
            one.wait_ready()
        yield found


def frr(place: Namespace, directory: Path, settings: RouterSettings) -> Frr:
    """Return a router."""
    return Frr(settings, place, directory)


def paths(router: Frr, prefix: str) -> list[dict[str, Any]]:
    """Return the paths of a prefix, as FRR shows them."""
    found = json.loads(router.ask(f"show bgp ipv4 unicast {prefix} json") or "{}")
    return list(found.get("paths", ()))


def next_hops(router: Frr, prefix: str, *, multipath: bool) -> set[str]:
    """Return the next hops of the paths of a prefix that are used together."""
    chosen = [p for p in paths(router, prefix) if p.get("multipath") or not multipath]
    return {hop["ip"] for path in chosen for hop in path["nexthops"]}


def test_three_nodes_are_equal_paths_and_one_with_a_local_endpoint_is_one(
    need_router: NeedRouter, tmp_path: Path
) -> None:
    for kind in ("frr", "bird"):
        need_router(kind)
    peers = [{"address": ROUTER, "asn": 64600}, {"address": MEMBER, "asn": 64608}]
    keys = secret({f"{ROUTER}-64600": PASSWORD, f"{MEMBER}-64608": PASSWORD})
    base = [*cluster(), policy("edge", "ClusterIP", pod=True, peers=peers), keys]
    everywhere = service(clusterIPs=["10.98.14.20"])
    local = service(clusterIPs=["10.98.14.20"], internalTrafficPolicy="Local")
    neighbors = tuple(
        PeerSettings(a, 64620, password=PASSWORD, hold_time=90) for a in NODES.values()
    )
    with (
        linked_namespaces() as link,
        nodes_at(link, [ROUTER, MEMBER], [*NODES.values()]) as places,
    ):
        settings = RouterSettings(64600, "192.0.2.1", (ROUTER,), neighbors)
        router = frr(link.right, tmp_path / "frr", settings)
        # Its address is on the loopback interface: for BIRD that is no direct session.
        distant = tuple(dataclasses.replace(one, multihop=64) for one in neighbors)
        settings = RouterSettings(64608, "192.0.2.8", (MEMBER,), distant)
        bird = Bird(settings, link.right, tmp_path / "bird")
        with ExitStack() as stack:
            for one in (router, bird):
                one.start()
                stack.callback(one.stop)
            for one in (router, bird):
                one.wait_ready()
            with agents(places, tmp_path) as found:

                def give(*objects: dict[str, Any]) -> None:
                    for one in found:
                        one.write_objects("all.json", *base, *objects)

                def check(expected: set[str]) -> None:
                    hops = next_hops(router, SHOP, multipath=len(expected) > 1)
                    assert hops == expected
                    for number, own in enumerate(NODES.values()):
                        prefix = f"10.201.{number}.0/24"
                        assert next_hops(router, prefix, multipath=False) == {own}
                        of_node = {prefix, SHOP} if own in expected else {prefix}
                        assert set(bird.all_routes(own)) == of_node

                give(everywhere)
                settles(
                    lambda: check({*NODES.values()}),
                    stays=0.3,
                    context=router.daemon.tail,
                )
                assert all(p["aspath"]["string"] == "64620" for p in paths(router, SHOP))
                tokens = {a: p.uptime_token for a, p in router.peers().items()}
                give(local, endpoints("edge-8"))
                settles(
                    lambda: check({NODES["edge-8"]}),
                    stays=0.3,
                    context=router.daemon.tail,
                )
                give(local, endpoints("edge-9"))
                settles(
                    lambda: check({NODES["edge-9"]}),
                    stays=0.3,
                    context=router.daemon.tail,
                )
                assert {a: p.uptime_token for a, p in router.peers().items()} == tokens


def test_members_of_a_confederation_are_one_as_outside_and_a_sequence_inside(
    need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router("frr")
    members = {name: 64621 + i for i, name in enumerate(NODES)}
    peers = [{"address": ROUTER, "asn": 64600}, {"address": MEMBER, "asn": 64630}]

    def of_node(name: str, identifier: int) -> dict[str, Any]:
        others = [64630, *(asn for other, asn in members.items() if other != name)]
        return policy(
            f"of-{name}",
            "ClusterIP",
            selector={"matchLabels": {"kubernetes.io/hostname": name}},
            peers=peers,
            localASN=members[name],
            confederation={"identifier": identifier, "memberASNs": others},
        )

    nodes = cluster()
    for value in nodes:
        value["metadata"]["labels"] = {"kubernetes.io/hostname": value["metadata"]["name"]}
    keys = secret({f"{ROUTER}-64600": PASSWORD, f"{MEMBER}-64630": PASSWORD})
    base = [*nodes, service(clusterIPs=["10.98.14.20"]), keys]
    outside = RouterSettings(
        64600,
        "192.0.2.1",
        (ROUTER,),
        tuple(PeerSettings(a, IDENTIFIER, password=PASSWORD, hold_time=90) for a in NODES.values()),
    )
    inside = RouterSettings(
        64630,
        "192.0.2.8",
        (MEMBER,),
        tuple(
            PeerSettings(
                address,
                members[name],
                password=PASSWORD,
                hold_time=90,
                internal_confederation=True,
            )
            for name, address in NODES.items()
        ),
        confederation=IDENTIFIER,
    )
    with (
        linked_namespaces() as link,
        nodes_at(link, [ROUTER, MEMBER], [*NODES.values()]) as places,
    ):
        router = frr(link.right, tmp_path / "frr", outside)
        member = frr(link.right, tmp_path / "member", inside)
        with ExitStack() as stack:
            for one in (router, member):
                one.start()
                stack.callback(one.stop)
            for one in (router, member):
                one.wait_ready()
            found = stack.enter_context(agents(places, tmp_path))
            for agent in found:
                policies = [of_node(name, IDENTIFIER) for name in NODES]
                agent.write_objects("all.json", *base, *policies)

            def check() -> None:
                assert next_hops(router, SHOP, multipath=False) == {*NODES.values()}
                assert {p["aspath"]["string"] for p in paths(router, SHOP)} == {str(IDENTIFIER)}
                seen = {p["aspath"]["string"] for p in paths(member, SHOP)}
                assert seen == {f"({asn})" for asn in members.values()}

            settles(check, stays=0.3, context=router.daemon.tail)


@pytest.mark.parametrize("cease", [False, True], ids=["exit", "cease"])
def test_the_agent_takes_over_from_the_speaker_of_the_node(
    need_router: NeedRouter, tmp_path: Path, *, cease: bool
) -> None:
    """GoBGP, which Antrea's agent contains, ends on the node, and the agent starts there.

    The routers have their defaults. Antrea's agent ends as a process that exits, without a Cease; it
    sends one when no policy selects the node any longer.
    """
    for kind in ("bird", "frr", "gobgp"):
        need_router(kind)
    own = NODES["edge-7"]
    neighbor = PeerSettings(own, 64620, multihop=64, hold_time=90)
    former = RouterSettings(
        64620,
        own,
        (own,),
        tuple(
            PeerSettings(a, 64600, passive=False, multihop=64, hold_time=90, restart_time=120)
            for a in (ROUTER, MEMBER)
        ),
    )
    with linked_namespaces() as link, nodes_at(link, [ROUTER, MEMBER], [own]) as (place,):
        bird = Bird(
            RouterSettings(64600, "192.0.2.1", (ROUTER,), (neighbor,)),
            link.right,
            tmp_path / "bird",
        )
        other = frr(
            link.right,
            tmp_path / "frr",
            RouterSettings(64600, "192.0.2.8", (MEMBER,), (neighbor,)),
        )
        gobgp = GoBGP(former, place, tmp_path / "gobgp")
        with ExitStack() as stack:
            # BIRD that has kept routes over a restart does not end by itself within a minute.
            for one, end in ((bird, bird.kill), (other, other.stop), (gobgp, gobgp.stop)):
                one.start()
                stack.callback(end)
            for one in (bird, other, gobgp):
                one.wait_ready()
            gobgp.announce(POD_CIDR)

            def held() -> list[bool]:
                """Return whether each router has the prefix, stale or not."""
                usable = [path for path in paths(other, POD_CIDR) if path.get("valid")]
                return [set(bird.all_routes(own)) == {POD_CIDR}, bool(usable)]

            def all_have_it() -> None:
                assert held() == [True, True]

            settles(all_have_it, stays=0.3, context=other.daemon.tail)
            if cease:
                gobgp.ask("global", "del", "all")

                def withdrawn() -> None:
                    assert held() == [False, False]

                eventually(withdrawn)
                assert "Peer de-configured" in str(bird.ask("show protocols"))
            gobgp.kill()
            agent = Agent(
                place,
                tmp_path / "agent",
                node="edge-7",
                arguments=["--enable-cell=antrea", "--disable-cell=cilium"],
            )
            peers = [{"address": a, "asn": 64600} for a in (ROUTER, MEMBER)]
            agent.write_objects("all.json", *cluster()[:1], policy(pod=True, peers=peers))
            agent.start()
            stack.callback(agent.stop)

            def taken_over() -> None:
                if not cease and held() != [True, True]:
                    # Not an AssertionError, which would be waited for.
                    raise RuntimeError(f"{POD_CIDR} was gone for a moment: {held()}")
                all_have_it()
                found = agent.peers()
                assert [found[a]["state"] for a in (ROUTER, MEMBER)] == ["Established"] * 2

            eventually(bird.answers)
            settles(taken_over, stays=1.0, context=other.daemon.tail)
            assert not any(path.get("stale") for path in paths(other, POD_CIDR))
