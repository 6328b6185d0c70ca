"""What the steps of a scenario call for when they run: sessions, routers, what the routers announce.

Computed with ``waggle render`` from the manifests of each step, before anything runs.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reconcilers.compile_manifests import compile_manifests
from reconcilers.plan import NodeState
from tests.support.received_routes import probes
from tests.support.routers import ALL_ROUND, KINDS
from tests.support.scenario import (
    ExpectedRoute,
    Scenario,
    Step,
    carry_out,
    own_asn,
    peers_by_name,
    written_objects,
)

ANY_ASN = 65099
"""The AS of a peer that is accepted with any AS."""
DEFAULT_OWN = ("10.255.255.1", "fd00:ffff::1")
"""The node's addresses where its manifests give none."""


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
    state: NodeState
    """What the agent is to do, as ``waggle plan`` has it."""
    kept: frozenset[str]
    """Peers of an earlier state of the manifests that the agent keeps."""
    mapped: bool
    """Whether an IPv6 prefix has a v4-mapped next hop: the node has no IPv6 address."""

    @property
    def established(self) -> dict[str, list[str | ExpectedRoute]]:
        """The routes of each session that is up, also of sessions that last in a bad state."""
        expect = self.step.expect
        found: dict[str, list[str | ExpectedRoute]] = {
            name: [*prefixes] for name, prefixes in expect.held.items() if prefixes
        }
        return found | expect.routes

    @property
    def hold_times(self) -> bool:
        """Whether every session has a hold time."""
        return all(peer["holdTime"] for _, peer in self.wanted.values())

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
            for name in before.established.keys() & self.established.keys()
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
        compiled = compile_manifests([str(directory)], scenario.dialects, scenario.settings)
        document = compiled.whole_document()
        wanted = {
            name: found
            for name, found in peers_by_name(document).items()
            if found[1]["address"] is not None
        }
        rendered = wanted
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
        kept_names = frozenset(wanted.keys() - rendered.keys())
        stages.append(
            Stage(step, peers, wanted, own_asns, own, compiled.state(), kept_names, mapped)
        )
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


def any_reestablished(stages: list[Stage]) -> bool:
    """Whether a session ends in some step, and is established again in that or a later one."""
    ended: set[str] = set()
    for before, stage in itertools.pairwise(stages):
        resets = stage.resets(before)
        if any(resets.values()) or ended & stage.peers.keys():
            return True
        ended |= before.peers.keys() - stage.peers.keys()
    return False


def seen_as(stages: list[Stage]) -> dict[Far, set[int]]:
    """Return as which ASes each router sees us, from the first step to the last."""
    found: dict[Far, set[int]] = {}
    for stage in stages:
        for name, session in stage.peers.items():
            found.setdefault(session, set()).add(stage.own_asns[name])
    return found


def announced_to(stages: list[Stage]) -> dict[tuple[str, int, int], set[str]]:
    """Return what routers announce from the start, for the filters of all steps, by router.

    Nothing in a scenario that announces prefixes of its own, or that expects the agent's output.
    """
    if any(stage.step.announce or stage.step.expect.commands for stage in stages):
        return {}
    filtered: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
    for stage in stages:
        for name, session in stage.peers.items():
            filtered.setdefault(session.end, []).append(stage.wanted[name][1])
    return {end: probes(peers) for end, peers in filtered.items()}


def node_addresses(manifests: Path, node: str) -> tuple[str, ...]:
    """Return the node's internal addresses."""
    found: dict[str, list[str]] = {"CiliumNode": [], "Node": []}
    for path in sorted(manifests.glob("*.yaml")):
        for document in written_objects(path.read_text()):
            kind = document["kind"]
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
        # GoBGP waits for seconds before a session is established again.
        and (kind != "gobgp" or not any_reestablished(stages))
        and (kind != "gobgp" or all(len(asns) == 1 for asns in seen_as(stages).values()))
        # GoBGP gives each message no time at all where there is no hold time.
        and (kind != "gobgp" or all(stage.hold_times for stage in stages))
    }
    index = turn % len(ALL_ROUND)
    for kind in ALL_ROUND[index:] + ALL_ROUND[:index]:
        if kind in able and KINDS[kind].missing() is None:
            return kind
    pytest.skip("no BGP router is installed (Debian: bird2, frr, gobgpd)")
