"""Behaviour scenarios: directories of manifests, steps, and what has to be true after each step.

docs/scenarios.md describes the format. Two runners share this module: one renders offline, one runs
an agent against a real router.
"""

from __future__ import annotations

import argparse
import functools
import ipaddress
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from reconcilers.cilium.options import CiliumOptions
from reconcilers.compile_manifests import OfflineSettings
from reconcilers.dialect import Dialect
from reconcilers.intent.options import IntentOptions
from resources.option_spelling import describe
from tests.support import plain_yaml
from waggle.dialects import DIALECTS
from waggle.intent_flags import add_intent_flags
from waggle.intent_flags import offline_settings as read_settings

T = TypeVar("T")
ROOT = Path(__file__).parent.parent / "scenarios"


class ExpectedRoute(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One route that a peer has to have; what is not given is not compared."""

    prefix: str
    communities: tuple[str, ...] | None = None
    large_communities: tuple[str, ...] | None = None
    local_preference: int | msgspec.UnsetType | None = msgspec.UNSET
    next_hop: str | msgspec.UnsetType | None = msgspec.UNSET
    origin: str | None = None
    as_path: tuple[int, ...] | None = None


class Command(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A ``waggle`` command, and its expected output."""

    run: str
    """Its arguments; the agent's socket is added."""
    status: int = 0
    lines: list[str] | None = None
    """Standard output line by line, blanks run together: regular expressions."""
    errors: list[str] | None = None
    """Standard error in the same way."""


class Question(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A question to ``waggle explain``, and an answer that has to be among its items."""

    target: str
    answer: dict[str, Any]
    peer: str | None = None

    @property
    def query(self) -> dict[str, str | None]:
        """The query parameters of the agent's API."""
        return {"target": self.target, "peer": self.peer}

    def answered(self, items: list[dict[str, Any]]) -> bool:
        """True if the expected answer is among the items."""
        return any(not differences(self.answer, item) for item in items)


class Expect(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What has to be true after a step."""

    peers: dict[str, dict[str, Any]] = {}
    peer_names: list[str] | None = None
    routes: dict[str, list[str | ExpectedRoute]] = {}
    conditions: list[dict[str, Any]] = []
    problems: list[dict[str, Any]] | None = None
    generated: list[dict[str, Any]] = []
    generated_names: list[str] | None = None
    condition_types: dict[str, list[str]] = {}
    stored_versions: dict[str, list[str]] = {}
    api_versions: dict[str, str] = {}
    explain: list[Question] = []
    held: dict[str, list[str]] = {}
    ceased: list[str] = []
    """Peers of this or an earlier step whose routers have received a Cease at some time."""
    sessions: dict[str, dict[str, Any]] = {}
    received: dict[str, list[str]] = {}
    available: list[str] | None = None
    commands: list[Command] = []


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Files put in and taken out, and what follows."""

    name: str
    apply: list[str] = []
    remove: list[str] = []
    agent: Literal["stop", "kill", "start", "restart"] | None = None
    """What happens to the running agent: ended before the files change, begun after it."""
    announce: dict[str, list[str]] = {}
    """By peer all that its router originates from now on."""
    passwords: dict[str, str | None] = {}
    """TCP MD5 passwords of routers, by peer: they restart with them, and their sessions are reset."""
    operator: dict[str, bool | str] | None = None
    """In the run with an operator: it ends, and another operator starts with these flags."""
    resets: list[str] = []
    """Peers whose sessions end and come back; sessions of all others that were there do not."""
    uninterrupted: list[str] = []
    """Peers that may not be without a route that they had before, not for a moment."""
    expect: Expect = Expect()


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One scenario."""

    title: str
    source: str
    node: str
    steps: list[Step]
    operator: bool = False
    """Whether it is run through an operator, too."""
    options: dict[str, bool | int | str | list[str]] = {}
    """Of `waggle render` and of the agent: flags without their dashes before."""
    dialect: str = ""
    """The name of the directory that the scenario is in."""

    @property
    def dialects(self) -> tuple[type[Dialect], ...]:
        """The dialects of the scenario: its own, and the dialects that it feeds."""
        by_name = {entry.name: entry for entry in DIALECTS}
        found: list[type[Dialect]] = []
        name: str | None = self.dialect
        while name is not None:
            found.append(by_name[name].load())
            name = found[-1].feeds
        return tuple(found)

    @property
    def agent_flags(self) -> list[str]:
        """The arguments of an agent with these dialects alone."""
        enabled = {dialect.name for dialect in self.dialects}
        cells = [
            f"--{'enable' if entry.name in enabled else 'disable'}-cell={entry.name}"
            for entry in DIALECTS
        ]
        return [*cells, *self.flags]

    @property
    def settings(self) -> OfflineSettings:
        """The options as the offline programs take them."""
        return offline_settings(self.node, self.options)

    @property
    def flags(self) -> list[str]:
        """The options as a program's arguments."""
        return _flags(self.options)


def offline_settings(node: str, options: Mapping[str, Any]) -> OfflineSettings:
    """Return settings for options by flag or field; an unknown one is an error of the test."""
    parser, by_field = _intent_flags()
    flags = _flags(
        {by_field.get(name, name.replace("_", "-")): value for name, value in options.items()}
    )
    args = parser.parse_args(flags)
    args.node = node
    return read_settings(args, DIALECTS)


@functools.cache
def _intent_flags() -> tuple[argparse.ArgumentParser, Mapping[str, str]]:
    """Return the parser of intent options, which takes long to make, and flags by field."""
    parser = argparse.ArgumentParser(exit_on_error=False, allow_abbrev=False)
    add_intent_flags(parser, DIALECTS)
    by_field = {item.field: item.flag.removeprefix("--") for item in describe("", IntentOptions)}
    by_field |= {item.field: item.flag.removeprefix("--") for item in describe("", CiliumOptions)}
    return parser, by_field


def _flags(options: Mapping[str, Any]) -> list[str]:
    return [
        f"--{name}={str(value).lower() if isinstance(value, bool) else value}"
        for name, given in options.items()
        for value in (given if isinstance(given, list | tuple) else [given])
    ]


def cilium_options(settings: OfflineSettings) -> CiliumOptions:
    """Return the options of the Cilium dialect."""
    found = settings.dialects["cilium"]
    assert isinstance(found, CiliumOptions)
    return found


@functools.cache
def load(directory: Path) -> Scenario:
    """Read a scenario, once. Raises `msgspec.ValidationError`."""
    text = (directory / "scenario.yaml").read_text()
    found = msgspec.convert(plain_yaml.load(text), Scenario)
    return msgspec.structs.replace(found, dialect=directory.parent.name)


@functools.cache
def written_objects(text: str) -> tuple[Any, ...]:
    """Return the objects of a manifest as they are written: once, as most steps leave it as it is."""
    return tuple(filter(None, plain_yaml.load_all(text)))


def directories() -> list[Path]:
    """List the scenarios."""
    return sorted(path.parent for path in ROOT.glob("*/*/scenario.yaml"))


def carry_out(directory: Path, step: Step, manifests: Path) -> None:
    """Put the step's files into the manifest directory."""
    for name in step.apply:
        # A file appears whole: copied beside it, then renamed.
        temporary = manifests / f".{name}.new"
        shutil.copy(directory / name, temporary)
        temporary.rename(manifests / name)
    # Afterwards: an object that goes from one file to another is never gone.
    for name in step.remove:
        (manifests / name).unlink()


def expected_routes(routes: list[str | ExpectedRoute]) -> dict[str, ExpectedRoute]:
    """Index expected routes by their canonical prefix."""
    made = (ExpectedRoute(route) if isinstance(route, str) else route for route in routes)
    return {str(ipaddress.ip_network(route.prefix)): route for route in made}


def differences(expected: Any, actual: Any, path: str = "") -> list[str]:  # noqa: ANN401
    """Return where ``expected`` is not contained in ``actual``: mappings by key, lists by index."""
    if isinstance(expected, dict):
        if not isinstance(actual, dict):
            return [f"{path}: {actual!r} is not a mapping"]
        return [
            difference
            for key, value in expected.items()
            for difference in differences(value, actual.get(key), f"{path}.{key}")
        ]
    if isinstance(expected, list):
        if not isinstance(actual, list | tuple) or len(expected) != len(actual):
            return [f"{path}: {actual!r}, expected {expected!r}"]
        return [
            difference
            for i, value in enumerate(expected)
            for difference in differences(value, actual[i], f"{path}[{i}]")
        ]
    return [] if expected == actual else [f"{path}: {actual!r}, expected {expected!r}"]


def named(items: Iterable[tuple[str, str, T]]) -> dict[str, T]:
    """Index by name; by ``instance/name`` where several instances have one of that name."""
    found = list(items)
    count = Counter(name for _, name, _ in found)
    return {
        name if count[name] == 1 else f"{instance}/{name}": item for instance, name, item in found
    }


def peers_by_name(document: dict[str, Any]) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return instance and peer of a render document by the peer's name."""
    return named((i["name"], p["name"], (i, p)) for i in document["instances"] for p in i["peers"])


def render_differences(expect: Expect, document: dict[str, Any]) -> list[str]:
    """Compare a render document with what is expected of it."""
    both = peers_by_name(document)
    peers = {name: peer for name, (_, peer) in both.items()}
    paths = {name: _as_path(instance, peer) for name, (instance, peer) in both.items()}
    found: list[str] = []
    if expect.peer_names is not None and sorted(peers) != sorted(expect.peer_names):
        found.append(f"peers: {sorted(peers)}, expected {sorted(expect.peer_names)}")
    for name, fields in expect.peers.items():
        found += differences(fields, peers.get(name), f"peer {name}")
    for name, routes in expect.routes.items():
        wanted = expected_routes(routes)
        actual = {route["prefix"]: route for route in peers.get(name, {}).get("advertise", [])}
        if actual.keys() != wanted.keys():
            found.append(f"routes of {name}: {sorted(actual)}, expected {sorted(wanted)}")
            continue
        for prefix, route in wanted.items():
            route_at_peer = {**actual[prefix], "asPath": paths[name]}
            found += differences(_given(route), route_at_peer, f"{name} {prefix}")
    found += _contained("conditions", expect.conditions, document["conditions"])
    found += _contained("generated", expect.generated, document["generated"])
    if expect.generated_names is not None:
        names = sorted(item["metadata"]["name"] for item in document["generated"])
        if names != sorted(expect.generated_names):
            found.append(f"generated: {names}, expected {sorted(expect.generated_names)}")
    if expect.problems is not None:
        found += _contained("problems", expect.problems, document["problems"])
        if not expect.problems and document["problems"]:
            found.append(f"problems: {document['problems']}, expected none")
    return found


def own_asn(instance: Mapping[str, Any], peer: Mapping[str, Any]) -> int:
    """Return our AS as a peer sees it: outside of a confederation its identifier (RFC 5065)."""
    own: int = peer["localASN"] or instance["localASN"]
    confederation = instance["confederation"]
    if confederation is None or peer["peerASN"] in (own, *confederation["members"]):
        return own
    return int(confederation["identifier"])


def _as_path(instance: dict[str, Any], peer: dict[str, Any]) -> list[int]:
    """Return the AS path that a peer sees: ours on eBGP, none on iBGP."""
    own = own_asn(instance, peer)
    return [] if peer["peerASN"] == own else [own]


def _given(route: ExpectedRoute) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if route.communities is not None:
        given["communities"] = list(route.communities)
    if route.large_communities is not None:
        given["largeCommunities"] = list(route.large_communities)
    if route.local_preference is not msgspec.UNSET:
        given["localPreference"] = route.local_preference
    if route.next_hop is not msgspec.UNSET:
        given["nextHop"] = route.next_hop
    if route.origin is not None:
        given["origin"] = route.origin
    if route.as_path is not None:
        given["asPath"] = list(route.as_path)
    return given


def _contained(what: str, expected: list[dict[str, Any]], actual: list[Any]) -> list[str]:
    return [
        f"{what}: none is like {item!r} in {actual!r}"
        for item in expected
        if all(differences(item, candidate) for candidate in actual)
    ]
