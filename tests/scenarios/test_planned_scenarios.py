"""Before every step of every scenario: `waggle plan` says what happens in it.

Routes are compared with what the scenario expects at the peers; the same expectations hold for the
routers of the live scenarios. Sessions are compared with what these routers are held to: there it
follows from the settings that both ends negotiate, not from the agent's table, which ones are reset.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from reconcilers.compile_manifests import OfflineIntent, kinds_of
from reconcilers.plan import NodePlan, NodeState, masked, node_plan, state_items, state_of
from reconcilers.plan.changes import ENDS_SESSION
from resources.manifests import load
from tests.support import live_plan, scenario
from tests.support.scenario import Scenario


class PlannedAgent:
    """An agent's intent from step to step, and what has been planned for its peers so far."""

    def __init__(self, described: Scenario, manifests: Path) -> None:
        self._described = described
        self._manifests = manifests
        self._kinds = kinds_of(described.dialects)
        self._made = self._compile()
        self.routes: dict[tuple[str, str], set[str]] = {}
        self.down: set[tuple[str, str]] = set()

    def _compile(self) -> OfflineIntent:
        loaded = load([str(self._manifests)], self._kinds)
        return OfflineIntent(loaded, self._described.dialects, self._described.settings)

    def carry_out(self, directory: Path, step: scenario.Step) -> NodePlan:
        """Return the plan of a step, and carry it out."""
        before = self._made.state()
        self._transfer(before)
        scenario.carry_out(directory, step, self._manifests)
        if step.agent in ("kill", "start", "restart", "stop"):
            self._made = self._compile()
        else:
            self._made.change(load([str(self._manifests)], self._kinds))
        plan = node_plan(before, self._made.state())
        self._follow(plan)
        return plan

    def _transfer(self, state: NodeState) -> None:
        """Check that the state of a running agent arrives as it is, without its passwords."""
        slices = state_items(self._made.db.snapshot(), self._made.intent, state)
        items = msgspec.json.decode(msgspec.json.encode([item for part in slices for item in part]))
        filled = {name: routes for name, routes in state.route_sets.items() if routes}
        assert state_of(items) == msgspec.structs.replace(masked(state), route_sets=filled)

    def _follow(self, plan: NodePlan) -> None:
        for session in plan.sessions:
            key = (session.instance, session.peer)
            if session.change == "add":
                assert key not in self.routes
                self.routes[key] = set()
        for route in plan.routes:
            held = self.routes[route.instance, route.peer]
            assert (route.prefix in held) is (route.change != "advertise"), route
            (held.discard if route.change == "withdraw" else held.add)(route.prefix)
        for session in plan.sessions:
            key = (session.instance, session.peer)
            if session.change == "remove":
                assert not self.routes.pop(key), session
            else:
                assert session.routes == len(self.routes[key])

    @property
    def by_name(self) -> dict[str, set[str]]:
        """The planned routes by the names that scenarios have for peers."""
        return scenario.named((*key, routes) for key, routes in self.routes.items())


@pytest.mark.parametrize("directory", scenario.directories(), ids=lambda path: path.name)
def test_what_is_planned_before_a_step_happens_in_it(directory: Path, tmp_path: Path) -> None:
    described = scenario.load(directory)
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    agent = PlannedAgent(described, manifests)
    stages = live_plan.plan(directory, described, tmp_path / "live")
    before = None
    for step, stage in zip(described.steps, stages, strict=True):
        plan = agent.carry_out(directory, step)
        planned = agent.by_name
        for name, routes in step.expect.routes.items():
            assert planned.get(name, set()) == scenario.expected_routes(routes).keys(), step.name
        ended = {s.peer for s in plan.sessions if s.change in ENDS_SESSION and s.change != "remove"}
        for name, reset in stage.resets(before).items():
            if name not in step.passwords:
                assert (name.rpartition("/")[2] in ended) is reset, (step.name, name)
        before = stage
