"""Before every step of every scenario: `waggle plan` predicts its effect.

What is planned is carried out in a model of the peers, which is then compared with what the scenario
expects: the routes with their attributes, the problems, the sessions that are reset, and the routes of
the kernel with what import rules accept. The same expectations hold for the routers of the live
scenarios: there it follows from the settings that both ends negotiate, not from the agent's table,
which sessions are reset.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from reconcilers.compile_manifests import CompiledManifests, kinds_of
from reconcilers.kernel.options import FibOptions
from reconcilers.kernel.reasons import Reason
from reconcilers.kernel.received_file import ReceivedRoute
from reconcilers.plan import (
    FieldChange,
    NodePlan,
    NodeState,
    Plan,
    masked,
    node_plan,
    state_items,
    state_of,
)
from reconcilers.plan.changes import ENDS_SESSION
from resources.host import Device, Host
from resources.manifests.load import load
from tests.support import live_plan, scenario
from tests.support.received_routes import decision, probes
from tests.support.scenario import Scenario

PeerKey = tuple[str, str]
Json = dict[str, Any]
LINKS: Final = ("0.0.0.0/1", "128.0.0.0/1", "2000::/3", "fc00::/7")
HOST: Final = Host((Device("eth0", addresses=("203.0.113.250",), networks=LINKS),))
"""A node with all next hops on its link."""


class Planned(msgspec.Struct):
    """A step: what its plan says, and both states."""

    plan: NodePlan
    before: NodeState
    after: NodeState
    problems: list[Json]
    rendered_problems: tuple[list[Json], list[Json]]
    """The problems of render before the step and after it."""
    kernel: Json
    """``kernel`` and ``notInstalled`` of render after the step."""


class Model:
    """What is known of a node, and of its peers, from its plans alone."""

    def __init__(self) -> None:
        self.routes: dict[PeerKey, dict[str, Json]] = {}
        self.down: dict[PeerKey, str] = {}
        self.kernel: dict[str, Json] = {}

    def follow(self, step: Planned) -> None:
        """Carry out a plan: each change has to fit what is there."""
        plan = step.plan
        for session in plan.sessions:
            key = (session.instance, session.peer)
            if session.change == "add":
                assert key not in self.routes
                self.routes[key] = {}
            if session.change not in ("add", "remove", "replace"):
                was_down = key in self.down
                words = {(False, True): "stop", (True, False): "start", (True, True): "update"}
                word = words.get((was_down, bool(session.message)))
                assert word in (None, session.change), session
                assert word or session.change in ("reset", "update"), session
            self.down.pop(key, None)
            if session.message:
                self.down[key] = session.message
        for route in plan.routes:
            held = self.routes[route.instance, route.peer]
            assert (route.prefix in held) is (route.change != "advertise"), route
            if route.change == "withdraw":
                del held[route.prefix]
            elif route.change == "advertise":
                peer = step.after.peers[route.instance, route.peer]
                held[route.prefix] = attributes(step.after, peer, route.prefix)
            else:
                assert route.fields, route
                change(held[route.prefix], route.fields)
        for session in plan.sessions:
            key = (session.instance, session.peer)
            if session.change == "remove":
                assert not self.routes.pop(key), session
            else:
                assert session.routes == len(self.routes[key])
        for item in plan.kernel:
            assert (item.prefix in self.kernel) is (item.change != "install"), item
            if item.change == "remove":
                del self.kernel[item.prefix]
            elif item.change == "install":
                found = (r for r in step.after.kernel if r["prefix"] == item.prefix)
                self.kernel[item.prefix] = dict(next(found))
            else:
                change(self.kernel[item.prefix], item.fields)

    def document(self, rendered: Json) -> Json:
        """Return a document of render with the routes of this model."""
        instances = [
            {
                **instance,
                "peers": [
                    {
                        **peer,
                        "advertise": [*self.routes[instance["name"], peer["name"]].values()],
                    }
                    for peer in instance["peers"]
                ],
            }
            for instance in rendered["instances"]
        ]
        return {**rendered, "instances": instances}


def change(item: Json, fields: tuple[FieldChange, ...]) -> None:
    """Carry out the changes of fields, each from the value that is there."""
    for field in fields:
        assert item[field.name] == field.before, field
        item[field.name] = field.after


def attributes(state: NodeState, peer: Any, prefix: str) -> Json:  # noqa: ANN401
    """Return a route as a peer is sent it."""
    route = dict(state.routes_of(peer)[prefix])
    hop = peer.config.next_hop_ipv6 if ":" in prefix else peer.config.next_hop_ipv4
    return route | {"nextHop": route["nextHop"] or hop}


class PlannedAgent:
    """An agent's intent from step to step."""

    def __init__(self, described: Scenario, manifests: Path) -> None:
        self._described = described
        self._settings = msgspec.structs.replace(described.settings, fib=FibOptions(fib=True))
        self._manifests = manifests
        self._kinds = kinds_of(described.dialects)
        self.made = self._compile()
        self._kernel: tuple[Json, ...] = ()

    def _compile(self) -> CompiledManifests:
        loaded = load([str(self._manifests)], self._kinds)
        return CompiledManifests(loaded, self._described.dialects, self._settings)

    def carry_out(self, directory: Path, step: scenario.Step) -> Planned:
        """Return the plan of a step, and carry it out."""
        before = msgspec.structs.replace(self.made.state(), kernel=self._kernel)
        rendered_before = self.made.document()["problems"]
        self._transfer(before)
        scenario.carry_out(directory, step, self._manifests)
        if step.agent in ("kill", "start", "restart", "stop"):
            self.made = self._compile()
        else:
            self.made.change(load([str(self._manifests)], self._kinds))
        kernel = self.made.kernel(self._announced(), HOST)
        self._kernel = tuple(kernel["kernel"])
        after = msgspec.structs.replace(self.made.state(), kernel=self._kernel)
        plan = node_plan(before, after)
        joined = Plan()
        joined.add(self._settings.node, before, after, plan)
        rendered = (rendered_before, self.made.document()["problems"])
        return Planned(plan, before, after, joined.problems(), rendered, kernel)

    def _announced(self) -> dict[PeerKey, tuple[ReceivedRoute, ...]]:
        """Return what each peer announces: prefixes at the ends of all import rules, and others.

        Nothing where no peer has such a rule.
        """
        peers = [
            (i["name"], peer) for i in self.made.document()["instances"] for peer in i["peers"]
        ]
        if not any(peer["accept"] for _, peer in peers):
            return {}
        prefixes = sorted(probes(peer for _, peer in peers))
        routes = tuple(ReceivedRoute(prefix=prefix) for prefix in prefixes)
        return {(instance, peer["name"]): routes for instance, peer in peers}

    def _transfer(self, state: NodeState) -> None:
        """Check that the state of a running agent arrives as it is, without its passwords."""
        slices = state_items(self.made.db.snapshot(), self.made.intent, state)
        items = msgspec.json.decode(msgspec.json.encode([item for part in slices for item in part]))
        filled = {name: routes for name, routes in state.route_sets.items() if routes}
        assert state_of(items) == msgspec.structs.replace(
            masked(state), route_sets=filled, kernel=()
        )


def sent(document: Json) -> dict[tuple[str, str, str], Json]:
    """Return the attributes of each route of each peer, in a document of render."""
    return {
        (instance["name"], peer["name"], route["prefix"]): {
            **route,
            "nextHop": route["nextHop"]
            or peer["nextHopIPv6" if ":" in route["prefix"] else "nextHopIPv4"],
            "origins": (),
        }
        for instance in document["instances"]
        for peer in instance["peers"]
        for route in peer["advertise"]
    }


def accepted(document: Json) -> Iterator[tuple[str, str]]:
    """Yield each prefix that import rules accept, with the address or interface of the peer."""
    peers = [(i, peer) for i in document["instances"] for peer in i["peers"]]
    for prefix in probes(peer for _, peer in peers):
        family = "ipv6-unicast" if ":" in prefix else "ipv4-unicast"
        for instance, peer in peers:
            if family in peer["families"] and decision(peer, prefix)[0]:
                end = peer["address"] or peer["interface"]
                yield prefix, end if instance["vrf"] is None else f"{instance['vrf']}/{end}"


def check_kernel(document: Json, kernel: dict[str, Json], rendered: Json) -> None:
    """Check that the kernel has what the rules accept, unless another reason is named."""
    by_rules = dict(accepted(document))
    assert kernel.keys() <= by_rules.keys()
    reasons: dict[str, set[str]] = {}
    for item in rendered["notInstalled"]:
        reasons.setdefault(item["prefix"], set()).add(item["reason"])
    for prefix in by_rules.keys() - kernel.keys():
        assert reasons[prefix] - {Reason.IMPORT_POLICY, Reason.NEXT_HOP}, prefix


def check_problems(step: scenario.Step, planned: Planned) -> None:
    """Check that each problem has the word that follows from what render has before and after."""
    before, after = ({problem_key(item) for item in items} for items in planned.rendered_problems)
    changes = {
        problem_key(item): "remains" if problem_key(item) in before else "new"
        for item in planned.rendered_problems[1]
    }
    changes |= dict.fromkeys(before - after, "solved")
    assert {problem_key(item): item["change"] for item in planned.problems} == changes, step.name
    for expected in step.expect.problems or ():
        wanted = {name: expected[name] for name in ("objects", "field") if name in expected}
        assert any(
            item["change"] != "solved" and not scenario.differences(wanted, item)
            for item in planned.problems
        ), (step.name, expected, planned.problems)


def problem_key(item: Json) -> tuple[object, ...]:
    """Return what makes a problem the same before and after: its place in a list does not."""
    return (
        *filter(None, item["objects"]),
        re.sub(r"\[\d+\]", "[]", item["field"]),
        item["message"],
    )


@pytest.mark.parametrize("directory", scenario.directories(), ids=lambda path: path.name)
def test_what_is_planned_before_a_step_happens_in_it(directory: Path, tmp_path: Path) -> None:
    described = scenario.load(directory)
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    agent = PlannedAgent(described, manifests)
    model = Model()
    stages = live_plan.plan(directory, described, tmp_path / "live")
    before = None
    for step, stage in zip(described.steps, stages, strict=True):
        planned = agent.carry_out(directory, step)
        model.follow(planned)
        rendered = agent.made.document()
        document = model.document(rendered)
        only_routes = scenario.Expect(peers=step.expect.peers, routes=step.expect.routes)
        assert not scenario.render_differences(only_routes, document), step.name
        assert sent(document) == sent(rendered), step.name
        disabled = {
            key: peer.config.disabled_reason
            for key, peer in planned.after.peers.items()
            if peer.config.disabled_reason is not None
        }
        assert model.down == disabled, step.name
        check_problems(step, planned)
        check_kernel(document, model.kernel, planned.kernel)
        sessions = planned.plan.sessions
        ended = {s.peer for s in sessions if s.change in ENDS_SESSION and s.change != "remove"}
        for name, reset in stage.resets(before).items():
            if name not in step.passwords:
                assert (name.rpartition("/")[2] in ended) is reset, (step.name, name)
        before = stage
