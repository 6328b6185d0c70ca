"""A scenario with a running agent and real routers: its participants, and its assertions.

Used by the live runner only. The routers have the addresses of the peers in the manifests, in network
namespaces of their own; nothing of a scenario is changed to make it run. Beside what a step expects,
in every step routes, in both directions, and sessions have to be as in ``waggle render``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import ipaddress
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reconcilers.plan import masked, node_plan, state_of
from reconcilers.plan.changes import ENDS_SESSION
from tests.support.agent import Agent
from tests.support.expected_routes import (
    actual_table,
    expected_table,
    next_hop_self,
    table_differences,
)
from tests.support.live_plan import DEFAULT_OWN, Far, Stage, announced_to, seen_as
from tests.support.netns import Link
from tests.support.received_routes import decision
from tests.support.routers import KINDS, PeerSettings, Router, RouterSettings
from tests.support.routers.base import Originated, RouterPeer, family_of
from tests.support.scenario import (
    Command,
    ExpectedRoute,
    Scenario,
    carry_out,
    differences,
    expected_routes,
    named,
)
from waggle.__main__ import main

TTL = 64
HOLD_TIME = 240
"""What the routers ask for, so that the manifests decide."""


class Lab:
    """The agent and the routers of one scenario."""

    def __init__(
        self, scenario: Scenario, kind: str, stages: list[Stage], link: Link, directory: Path
    ) -> None:
        self._link = link
        sessions = seen_as(stages)
        usual = {address for stage in stages for address in (*stage.own, *DEFAULT_OWN)}
        # The address that is connected last is used where none is configured.
        for each in sorted(sessions, key=lambda far: (far.own in usual, far)):
            link.connect(each.own, each.address)
        on_interface = {ipaddress.ip_address(far.own) for far in sessions}
        self._on_interface = [
            str(one)
            for one in sorted(on_interface, key=lambda one: (one.version, one.packed))
            if one.version == 6
        ]
        made: dict[tuple[str, int, int], Router] = {}
        for index, end in enumerate(sorted({far.end for far in sessions}), start=1):
            asns = {far.own: asns for far, asns in sorted(sessions.items()) if far.end == end}
            made[end] = _router(kind, end, asns, index, link, directory)
            announced = sorted(announced_to(stages).get(end, ()))
            made[end].announced.update(dict.fromkeys(announced, Originated()))
        self._made = tuple(made.values())
        self._ends = made
        self.routers = {far: made[far.end] for far in sessions}
        self.agent = Agent(
            link.left, directory / "agent", node=scenario.node, arguments=scenario.agent_flags
        )
        self.announced: dict[Far, set[str]] = {}
        self._shown: dict[Router, dict[str, RouterPeer]] = {}
        """What each router shows of its sessions, asked once in a `check`."""
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

    def planned(self, stage: Stage) -> set[str]:
        """Return the peers whose sessions end in a step, by a plan against the running agent."""
        before = state_of(self.agent.ask("/v1/intent"))
        plan = node_plan(before, masked(stage.state))
        return {
            name
            for name, change in named((s.instance, s.peer, s.change) for s in plan.sessions).items()
            if change in ENDS_SESSION
        }

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
        """Return something for each session that changes when it is established anew.

        Of the moment of the last `check`.
        """
        sessions = {name: stage.peers[name] for name in stage.established}
        return {name: (far, self._seen(far).uptime_token) for name, far in sessions.items()}

    def held(self, stage: Stage, name: str) -> set[str]:
        """Return the prefixes that a peer's router has."""
        session = stage.peers[name]
        return set(self.routers[session].all_routes(session.own))

    def _seen(self, session: Far) -> RouterPeer:
        router = self.routers[session]
        if router not in self._shown:
            self._shown[router] = router.peers()
        return self._shown[router][session.own]

    def check(self, stage: Stage) -> None:
        """Assert what a step expects, and what holds at every step."""
        self._shown.clear()
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
        for name, expected in stage.established.items():
            state = peers.get(name, {}).get("state")
            assert state == "Established", (name, state, peers.get(name, {}).get("reason"))
            self._check_session(stage, name, peers[name])
            self._check_routes(stage, name, expected)
            self._check_received(stage, name)
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
        own = [session.own, *stage.own, *self._on_interface]
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

    def _check_received(self, stage: Stage, name: str) -> None:
        """Assert that `waggle routes received` has all that the router announces, and why."""
        instance, peer = stage.wanted[name]
        router = self.routers[stage.peers[name]]
        items = self._command(
            "routes", "received", "--peer", peer["name"], "--instance", instance["name"]
        )
        found = {item["prefix"]: item for item in items}
        assert found.keys() == {p for p in router.announced if family_of(p) in peer["families"]}
        for prefix, item in found.items():
            accepted, filters = decision(peer, prefix)
            assert item["accepted"] is accepted, (name, item)
            assert item["filter"] in filters, (name, item)
            assert ("object" in item) is accepted, (name, item)

    def _command(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the items that `waggle` prints, run in this process."""
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            main([*arguments, "--socket", str(self.agent.socket), "-o", "json"])
        items: list[dict[str, Any]] = json.loads(printed.getvalue())["items"]
        return items

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
            other_next_hop=None if ":" in address else f"fd00:ffff::{index + 1:x}",
        )
        for each, asns in own.items()
    )
    settings = RouterSettings(
        asn=asn, router_id=f"192.0.2.{index}", addresses=(address,), port=port, peers=peers
    )
    return driver(settings, link.right, directory / f"router-{index}")
