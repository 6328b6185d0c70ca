"""A scenario with a running agent and real routers: its participants, and its assertions.

Used by the live runner only. The routers have the addresses of the peers in the manifests, in network
namespaces of their own; nothing of a scenario is changed to make it run. Beside what a step expects,
in every step routes and sessions have to be those of ``waggle render``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconcilers.offline import render
from tests.support.agent import Agent
from tests.support.expected_routes import (
    actual_table,
    expected_table,
    next_hop_self,
    table_differences,
)
from tests.support.netns import Link
from tests.support.routers import ALL_ROUND, KINDS, PeerSettings, Router, RouterSettings
from tests.support.routers.base import RouterPeer
from tests.support.scenario import (
    Command,
    ExpectedRoute,
    Scenario,
    Step,
    carry_out,
    differences,
    expected_routes,
    named,
    own_asn,
    peers_by_name,
)

ANY_ASN = 65099
"""The AS of a peer that is accepted with any AS."""
DEFAULT_OWN = ("10.255.255.1", "fd00:ffff::1")
"""The node's addresses where its manifests give none."""
TTL = 64
HOLD_TIME = 240
"""What the routers ask for, so that the manifests decide."""


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Far:
    """A router that some step's manifests call for."""

    address: str
    port: int
    asn: int
    own: str
    """Our address of the session."""

    @property
    def end(self) -> tuple[str, int, int]:
        """What one process is."""
        return (self.address, self.port, self.asn)


@dataclasses.dataclass(frozen=True, slots=True)
class Stage:
    """One step with what ``waggle render`` makes of the manifests at that moment."""

    step: Step
    peers: dict[str, Far]
    wanted: dict[str, tuple[dict[str, Any], dict[str, Any]]]
    """Instance and peer of the render document, by the peer's name."""
    own_asns: dict[str, int]
    """Our AS, as each peer sees it."""
    own: tuple[str, ...]
    """The node's addresses."""
    mapped: bool
    """Whether an IPv6 prefix has a v4-mapped next hop: the node has no IPv6 address."""

    def identity(self, name: str) -> object:
        """Return all that a session depends on; nothing else may end it."""
        instance, peer = self.wanted[name]
        soft = {
            "advertise",
            "accept",
            "neverAccept",
            "nextHopIPv4",
            "nextHopIPv6",
            "connectRetryTime",
        }
        settings = {key: value for key, value in peer.items() if key not in soft}
        keys = ("name", "localASN", "routerID", "listenPort", "confederation")
        return (*(instance[key] for key in keys), settings)

    def resets(self, before: Stage | None) -> dict[str, bool]:
        """Return for each existing session whether it is reset."""
        if before is None or self.step.agent is not None:
            return {}
        found = {
            name: self.identity(name) != before.identity(name) or name in self.step.passwords
            for name in before.step.expect.routes.keys() & self.step.expect.routes.keys()
        }
        # The resets that a scenario declares have to follow from the settings.
        assert not self.step.resets or set(self.step.resets) == {n for n, r in found.items() if r}
        return found


def plan(source: Path, scenario: Scenario, directory: Path) -> list[Stage]:
    """Find out which peers exist after each step."""
    directory.mkdir()
    stages: list[Stage] = []
    for step in scenario.steps:
        carry_out(source, step, directory)
        own = node_addresses(directory, scenario.node)
        document = render([str(directory)], scenario.dialects, scenario.settings)
        wanted = {
            name: found
            for name, found in peers_by_name(document).items()
            if found[1]["address"] is not None
        }
        if stages:
            # Render knows no earlier state, which an agent may keep.
            named_by_step = step.expect.held.keys() | set(step.uninterrupted)
            kept = {
                name: found for name, found in stages[-1].wanted.items() if name in named_by_step
            }
            wanted = kept | wanted
        mapped = not any(":" in address for address in own) and any(
            ":" in route["prefix"]
            for _, peer in wanted.values()
            if ":" not in peer["address"]
            for route in peer["advertise"]
        )
        peers = {name: far(peer, own) for name, (_, peer) in wanted.items()}
        own_asns = {name: own_asn(instance, peer) for name, (instance, peer) in wanted.items()}
        stages.append(Stage(step, peers, wanted, own_asns, own, mapped))
    return stages


def far(peer: Mapping[str, Any], own: tuple[str, ...]) -> Far:
    """Return the router that a peer of the render document is."""
    version = ipaddress.ip_address(peer["address"]).version
    return Far(
        address=peer["address"],
        port=peer["peerPort"],
        asn=peer["peerASN"] or ANY_ASN,
        own=peer["localAddress"]
        or next(a for a in (*own, *DEFAULT_OWN) if ipaddress.ip_address(a).version == version),
    )


def seen_as(stages: list[Stage]) -> dict[Far, set[int]]:
    """Return as which ASes each router sees us, from the first step to the last."""
    found: dict[Far, set[int]] = {}
    for stage in stages:
        for name, session in stage.peers.items():
            found.setdefault(session, set()).add(stage.own_asns[name])
    return found


def node_addresses(manifests: Path, node: str) -> tuple[str, ...]:
    """Return the node's internal addresses."""
    found: dict[str, list[str]] = {"CiliumNode": [], "Node": []}
    for path in sorted(manifests.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            kind = document["kind"] if document else ""
            if kind in found and document["metadata"]["name"] == node:
                part = document.get("spec" if kind == "CiliumNode" else "status", {})
                found[kind] += [
                    address.get("ip") or address["address"]
                    for address in part.get("addresses", [])
                    if address["type"] == "InternalIP"
                ]
    return tuple(found["CiliumNode"] or found["Node"])


def choose_router(stages: list[Stage], turn: int) -> str:
    """Let all kinds take part in turn; where one is not installed, another takes its place."""
    # BIRD takes no v4-mapped next hop; it alone keeps the routes of a peer that restarts unasked.
    able = {
        kind
        for kind in ALL_ROUND
        if (kind != "bird" or not any(stage.mapped for stage in stages))
        and (kind == "bird" or not any(stage.step.agent for stage in stages))
        # GoBGP waits for seconds after each reset.
        and (kind != "gobgp" or not any(stage.step.resets for stage in stages))
        and (kind != "gobgp" or all(len(asns) == 1 for asns in seen_as(stages).values()))
    }
    index = turn % len(ALL_ROUND)
    for kind in ALL_ROUND[index:] + ALL_ROUND[:index]:
        if kind in able and KINDS[kind].missing() is None:
            return kind
    pytest.skip("no BGP router is installed (Debian: bird2, frr, gobgpd)")


class Lab:
    """The agent and the routers of one scenario."""

    def __init__(
        self, scenario: Scenario, kind: str, stages: list[Stage], link: Link, directory: Path
    ) -> None:
        self._link = link
        sessions = seen_as(stages)
        usual = {address for stage in stages for address in (*stage.own, *DEFAULT_OWN)}
        # The address that is connected last is the one that is taken where none is configured.
        for each in sorted(sessions, key=lambda far: (far.own in usual, far)):
            link.connect(each.own, each.address)
        made: dict[tuple[str, int, int], Router] = {}
        for index, end in enumerate(sorted({far.end for far in sessions}), start=1):
            asns = {far.own: asns for far, asns in sorted(sessions.items()) if far.end == end}
            made[end] = _router(kind, end, asns, index, link, directory)
        self._made = tuple(made.values())
        self._ends = made
        self.routers = {far: made[far.end] for far in sessions}
        self.agent = Agent(
            link.left, directory / "agent", node=scenario.node, arguments=scenario.agent_flags
        )
        self.announced: dict[Far, set[str]] = {}
        self._known: dict[str, Far] = {}

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run everything, from the start to the end."""
        parts: list[Agent | Router] = [self.agent, *self._made]
        with contextlib.ExitStack() as stack:
            for part in parts:
                part.start()
                stack.callback(part.stop)
            for part in parts:
                part.wait_ready()
            yield

    def logs(self) -> str:
        """Return the end of all logs."""
        daemons = [self.agent.daemon, *(router.daemon for router in self._made)]
        return "\n".join(daemon.tail() for daemon in daemons)

    def carry_out(self, source: Path, stage: Stage) -> None:
        """Do what a step does."""
        step = stage.step
        self._known |= stage.peers
        self._change_ends(stage)
        if step.agent in ("stop", "restart"):
            self.agent.stop()
        elif step.agent == "kill":
            self.agent.daemon.kill()
        carry_out(source, step, self.agent.manifests)
        for name, password in step.passwords.items():
            self._give_password(stage.peers[name], password)
        for name, prefixes in step.announce.items():
            session = stage.peers[name]
            router, before = self.routers[session], self.announced.get(session, set())
            router.withdraw(*(before - set(prefixes)))
            router.announce(*prefixes)
            self.announced[session] = set(prefixes)
        if step.agent in ("start", "restart"):
            self.agent.start()
            self.agent.wait_ready()

    def _give_password(self, session: Far, password: str | None) -> None:
        router = self.routers[session]
        peers = tuple(
            dataclasses.replace(peer, password=password) if peer.address == session.own else peer
            for peer in router.settings.peers
        )
        router.settings = dataclasses.replace(router.settings, peers=peers)
        router.restart()

    def _change_ends(self, stage: Stage) -> None:
        """Let only those routers run that a step has, of several with one address and port."""
        needed = {session.end for session in stage.peers.values()}
        taken = {end[:2] for end in needed}
        for end, router in self._ends.items():
            if end not in needed and end[:2] in taken and router.daemon.running:
                router.stop()
        for end in needed:
            if not self._ends[end].daemon.running:
                self._ends[end].start()
                self._ends[end].wait_ready()

    def tokens(self, stage: Stage) -> dict[str, tuple[Far, str]]:
        """Return something for each session that changes when it is established anew."""
        sessions = {name: stage.peers[name] for name in stage.step.expect.routes}
        return {name: (far, self._seen(far).uptime_token) for name, far in sessions.items()}

    def held(self, stage: Stage, name: str) -> set[str]:
        """Return the prefixes that a peer's router has."""
        session = stage.peers[name]
        return set(self.routers[session].all_routes(session.own))

    def _seen(self, session: Far) -> RouterPeer:
        return self.routers[session].peers()[session.own]

    def check(self, stage: Stage) -> None:
        """Assert what a step expects, and what holds at every step."""
        expect = stage.step.expect
        for name, prefixes in expect.held.items():
            assert self.held(stage, name) == {str(ipaddress.ip_network(p)) for p in prefixes}, name
        for name in expect.ceased:
            assert self.routers[self._known[name]].received_cease(), name
        if not self.agent.daemon.running:
            self._check_absence(stage)
            return
        items = self.agent.ask("/v1/peers")
        peers = named((item["instance"], item["name"], item) for item in items)
        if expect.peer_names is not None:
            assert set(peers) == set(expect.peer_names)
        for name, expected in expect.routes.items():
            state = peers.get(name, {}).get("state")
            assert state == "Established", (name, state, peers.get(name, {}).get("reason"))
            self._check_session(stage, name, peers[name])
            self._check_routes(stage, name, expected)
        for name, fields in expect.sessions.items():
            assert not differences(fields, peers.get(name)), name
        for name, prefixes in expect.received.items():
            instance, peer = stage.wanted[name]
            query = {"table": "received", "peer": peer["name"], "instance": instance["name"]}
            found = {route["prefix"] for route in self.agent.ask("/v1/routes", **query)}
            assert found == set(prefixes), name
        if expect.available is not None:
            found = {route["prefix"] for route in self.agent.routes("available")}
            assert found == set(expect.available)
        for question in expect.explain:
            items = self.agent.ask("/v1/explain", **question.query)
            assert question.answered(items), (question, items)
        self._check_kernel()

    def _check_session(self, stage: Stage, name: str, item: Mapping[str, Any]) -> None:
        """Assert the parameters of a session, at the agent and at the router."""
        instance, peer = stage.wanted[name]
        hold = min(peer["holdTime"], HOLD_TIME)
        assert item["holdSeconds"] == hold, name
        assert item["keepaliveSeconds"] <= max(1, hold // 3), name
        advertised = sum(count["routes"] for count in item["advertised"])
        assert advertised == len(peer["advertise"]), name
        seen = self._seen(stage.peers[name])
        assert seen.router_id in (None, instance["routerID"]), name
        assert seen.hold_time in (None, hold), name
        restart = peer["gracefulRestart"]
        if seen.knows_restart_time:
            assert seen.restart_time == (restart["restartTime"] if restart else None), name

    def _check_routes(self, stage: Stage, name: str, expected: list[str | ExpectedRoute]) -> None:
        session = stage.peers[name]
        instance, peer = stage.wanted[name]
        routes = self.routers[session].all_routes(session.own)
        wanted = expected_routes(expected)
        assert set(routes) == set(wanted), name
        if peer["peerASN"] == 0:
            peer = {**peer, "peerASN": session.asn}
        internal = session.asn == stage.own_asns[name]
        own = [session.own, *stage.own]
        wrong = table_differences(
            actual_table(routes, internal=internal), expected_table(instance, peer, own)
        )
        assert not wrong, (name, wrong)
        for prefix, route in wanted.items():
            found = routes[prefix]
            if route.communities is not None:
                assert found.communities == set(route.communities), prefix
            if route.large_communities is not None:
                assert found.large_communities == set(route.large_communities), prefix
            if route.as_path is not None:
                assert found.as_path == route.as_path, prefix
            assert route.origin in (None, found.origin), prefix
            # A local preference does not leave the AS.
            if isinstance(route.local_preference, int) and internal:
                assert found.local_preference == route.local_preference, prefix
            if route.next_hop is None:
                assert found.next_hop == next_hop_self(prefix, own), prefix
            elif isinstance(route.next_hop, str):
                assert found.next_hop == route.next_hop, prefix

    def _check_absence(self, stage: Stage) -> None:
        """Assert that no peer with graceful restart has received a Cease."""
        for name, session in stage.peers.items():
            if stage.wanted[name][1]["gracefulRestart"]:
                assert not self.routers[session].received_cease(), name

    def _check_kernel(self) -> None:
        """Assert that no received route is installed in the kernel."""
        announced = {prefix for prefixes in self.announced.values() for prefix in prefixes}
        if announced:
            for family in ("-4", "-6"):
                table = self._link.left.run("ip", family, "route", "show", "table", "all")
                assert not announced & set(table.split()), table

    def check_commands(self, stage: Stage) -> None:
        """Assert how `waggle` answers; after `check`, as each costs the start of a program."""
        for command in stage.step.expect.commands:
            self._check_command(command)

    def _check_command(self, command: Command) -> None:
        words = [*shlex.split(command.run), "--socket", str(self.agent.socket)]
        done = subprocess.run(
            [sys.executable, "-m", "waggle", *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == command.status, done
        for text, patterns in ((done.stdout, command.lines), (done.stderr, command.errors)):
            if patterns is not None:
                lines = [" ".join(line.split()) for line in text.splitlines()]
                assert len(lines) == len(patterns), text
                for line, pattern in zip(lines, patterns, strict=True):
                    assert re.fullmatch(pattern, line), (line, pattern)


def _router(
    kind: str,
    end: tuple[str, int, int],
    own: Mapping[str, set[int]],
    index: int,
    link: Link,
    directory: Path,
) -> Router:
    """Make one router that waits for the agent, at each of ``own`` addresses with their ASes."""
    driver = KINDS[kind]
    address, port, asn = end
    peers = tuple(
        PeerSettings(
            each,
            min(asns),
            any_external=len(asns) > 1,
            multihop=TTL,
            hold_time=HOLD_TIME,
            extended_next_hop="extended_next_hop" not in driver.CANNOT and ":" in each,
        )
        for each, asns in own.items()
    )
    settings = RouterSettings(
        asn=asn, router_id=f"192.0.2.{index}", addresses=(address,), port=port, peers=peers
    )
    return driver(settings, link.right, directory / f"router-{index}")
