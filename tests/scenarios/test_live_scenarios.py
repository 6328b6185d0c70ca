"""Every scenario that names routes, through a running agent with real routers as the peers.

The same directories that the offline runner checks with ``waggle render``. Here the peers that the
manifests name exist, in a namespace, with the addresses, ports and AS numbers of the manifests, and
what counts is what their own tables hold. Nothing of a scenario is changed to make it run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from tests.support.agent import Agent
from tests.support.netns import Link, linked_namespaces
from tests.support.promise import next_hop_self
from tests.support.routers import (
    ALL_ROUND,
    KINDS,
    PeerSettings,
    Router,
    RouterRoute,
    RouterSettings,
)
from tests.support.scenario import (
    ExpectedRoute,
    Scenario,
    Step,
    carry_out,
    directories,
    expected_routes,
    load,
)
from tests.support.wait import settles

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

ANY_ASN = 65099
"""Who a peer is of which any AS is accepted."""
DEFAULT_OWN = ("10.255.255.1", "fd00:ffff::1")
"""The node's addresses where its manifests give none."""
TTL = 64
HOLD_TIME = 240
SETTLED = 0.3
"""For how many seconds a table has to stay as expected."""

SCENARIOS = {
    directory: scenario
    for directory in directories()
    if not (scenario := load(directory)).render_only
    and any(step.expect.routes for step in scenario.steps)
}


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Far:
    """A router that some step's manifests call for."""

    address: str
    port: int
    asn: int
    own: str
    """Our address of the session."""
    own_asn: int


@dataclasses.dataclass(frozen=True, slots=True)
class Stage:
    """One step with what ``waggle render`` makes of the manifests at that moment."""

    step: Step
    peers: dict[str, Far]
    settings: dict[str, object]
    """Of each peer, what a session depends on; nothing else may end it."""
    mapped: bool
    """Whether an IPv6 prefix has a v4-mapped next hop: the node has no IPv6 address."""


def test_there_are_scenarios() -> None:
    assert SCENARIOS


@pytest.mark.parametrize("directory", SCENARIOS, ids=[path.name for path in SCENARIOS])
def test_routers_hold_what_the_scenario_expects(
    directory: Path, no_namespaces: str | None, tmp_path: Path
) -> None:
    if no_namespaces is not None:
        pytest.skip(no_namespaces)
    scenario = SCENARIOS[directory]
    stages = plan(directory, scenario, tmp_path / "plan")
    kind = choose_router(directory, stages)
    with (
        linked_namespaces() as link,
        running(scenario, kind, stages, link, tmp_path) as (
            agent,
            routers,
        ),
    ):
        before: Stage | None = None
        tokens: dict[str, str] = {}
        for stage in stages:
            carry_out(directory, stage.step, agent.manifests)

            def logs() -> str:
                daemons = [agent.daemon, *(router.daemon for router in routers.values())]
                return "\n".join(daemon.tail() for daemon in daemons)

            settles(lambda: check(stage, agent, routers), stays=SETTLED, context=logs)  # noqa: B023
            after = session_tokens(stage, routers)
            if before is not None:
                for name in tokens.keys() & after.keys():
                    if before.settings[name] == stage.settings[name]:
                        assert after[name] == tokens[name], f"the session with {name} was reset"
            before, tokens = stage, after


def choose_router(directory: Path, stages: list[Stage]) -> str:
    """Let all kinds take part in turn; where one is not installed, another takes its place."""
    # BIRD takes no v4-mapped next hop.
    not_bird = any(stage.mapped for stage in stages)
    kinds = ALL_ROUND
    index = list(SCENARIOS).index(directory) % len(kinds)
    for kind in kinds[index:] + kinds[:index]:
        if KINDS[kind].missing() is None and (kind != "bird" or not not_bird):
            return kind
    pytest.skip("no BGP router is installed (Debian: bird2, frr, gobgpd)")


def plan(source: Path, scenario: Scenario, directory: Path) -> list[Stage]:
    """Find out which peers exist after each step."""
    manifests = directory / "manifests"
    offline = Agent(None, directory, node=scenario.node)
    stages = []
    for step in scenario.steps:
        carry_out(source, step, manifests)
        own = node_addresses(manifests, scenario.node)
        found = [
            (instance, peer)
            for instance in offline.render(*scenario.flags)["instances"]
            for peer in instance["peers"]
            if peer["address"] is not None
        ]
        has_ipv6 = any(":" in address for address in own if address not in DEFAULT_OWN)
        stages.append(
            Stage(
                step,
                mapped=not has_ipv6
                and any(
                    ":" in route["prefix"]
                    for _, peer in found
                    if ":" not in peer["address"]
                    for route in peer["advertise"]
                ),
                peers={peer["name"]: far(instance, peer, own) for instance, peer in found},
                settings={
                    peer["name"]: (instance["localASN"], instance["routerID"], _settings(peer))
                    for instance, peer in found
                },
            )
        )
    return stages


def _settings(peer: Mapping[str, Any]) -> dict[str, Any]:
    soft = {"advertise", "accept", "connectRetryTime"}
    return {name: value for name, value in peer.items() if name not in soft}


def far(instance: Mapping[str, Any], peer: Mapping[str, Any], own: tuple[str, ...]) -> Far:
    """Return the router that a peer of the render document is."""
    version = ipaddress.ip_address(peer["address"]).version
    return Far(
        address=peer["address"],
        port=peer["peerPort"],
        asn=peer["peerASN"] or ANY_ASN,
        own=peer["localAddress"]
        or next(a for a in own if ipaddress.ip_address(a).version == version),
        own_asn=peer["localASN"] or instance["localASN"],
    )


def node_addresses(manifests: Path, node: str) -> tuple[str, ...]:
    """Return the node's internal addresses, and one of each family in any case."""
    found: list[str] = []
    for path in sorted(manifests.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if document and document["kind"] == "Node" and document["metadata"]["name"] == node:
                addresses = document.get("status", {}).get("addresses", [])
                found += [a["address"] for a in addresses if a["type"] == "InternalIP"]
    return (*found, *DEFAULT_OWN)


@contextlib.contextmanager
def running(
    scenario: Scenario, kind: str, stages: list[Stage], link: Link, directory: Path
) -> Iterator[tuple[Agent, dict[Far, Router]]]:
    """Run the agent, and every router that any step needs, from the start to the end."""
    fars = sorted({far for stage in stages for far in stage.peers.values()})
    for each in fars:
        link.connect(each.own, each.address)
    routers = {
        each: router(kind, each, index, link, directory) for index, each in enumerate(fars, start=1)
    }
    agent = Agent(link.left, directory / "agent", node=scenario.node, arguments=scenario.flags)
    parts: list[Agent | Router] = [agent, *routers.values()]
    with contextlib.ExitStack() as stack:
        for part in parts:
            part.start()
            stack.callback(part.stop)
        for part in parts:
            part.wait_ready()
        yield agent, routers


def router(kind: str, each: Far, index: int, link: Link, directory: Path) -> Router:
    """Make one router that waits for the agent."""
    driver = KINDS[kind]
    settings = PeerSettings(
        each.own,
        each.own_asn,
        multihop=TTL,
        hold_time=HOLD_TIME,
        extended_next_hop="extended_next_hop" not in driver.CANNOT and ":" in each.own,
    )
    return driver(
        RouterSettings(
            asn=each.asn,
            router_id=f"192.0.2.{index}",
            addresses=(each.address,),
            port=each.port,
            peers=(settings,),
        ),
        link.right,
        directory / f"router-{index}",
    )


def session_tokens(stage: Stage, routers: Mapping[Far, Router]) -> dict[str, str]:
    """Return something for each session that changes when it is established anew."""
    return {
        name: next(iter(routers[stage.peers[name]].peers().values())).uptime_token
        for name in stage.step.expect.routes
    }


def check(stage: Stage, agent: Agent, routers: Mapping[Far, Router]) -> None:
    """Compare what the routers hold with what the step expects."""
    peers = agent.peers()
    if stage.step.expect.peer_names is not None:
        assert set(peers) == set(stage.step.expect.peer_names)
    states = {name: item["state"] for name, item in peers.items()}
    for name, expected in stage.step.expect.routes.items():
        assert states.get(name) == "Established", (name, states)
        session = stage.peers[name]
        hold_time = stage.step.expect.peers.get(name, {}).get("holdTime")
        if hold_time is not None:
            # The routers ask for a longer one, so that the manifests decide.
            assert peers[name]["holdSeconds"] == hold_time, name
        held = routers[session].all_routes()
        wanted = expected_routes(expected)
        assert set(held) == set(wanted), name
        for prefix, route in wanted.items():
            assert_attributes(held[prefix], route, session)


def assert_attributes(held: RouterRoute, expected: ExpectedRoute, session: Far) -> None:
    """Compare the attributes that a scenario gives."""
    if expected.communities is not None:
        assert held.communities == set(expected.communities), held.prefix
    if expected.large_communities is not None:
        assert held.large_communities == set(expected.large_communities), held.prefix
    # A local preference does not leave the AS.
    if expected.local_preference is not msgspec.UNSET and session.asn == session.own_asn:
        preference = 100 if expected.local_preference is None else expected.local_preference
        assert held.local_preference == preference, held.prefix
    if expected.next_hop is None:
        assert held.next_hop == next_hop_self(held.prefix, [session.own, *DEFAULT_OWN]), held.prefix
    elif expected.next_hop is not msgspec.UNSET:
        assert held.next_hop == expected.next_hop, held.prefix
