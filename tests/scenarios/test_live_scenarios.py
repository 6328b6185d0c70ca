"""Every scenario that names routes, through a running agent with real routers as the peers.

The same directories that the offline runner checks with ``waggle render``. What counts here is what
the routers' own tables hold.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.live import Lab
from tests.support.live_plan import Far, choose_router, plan
from tests.support.netns import linked_namespaces
from tests.support.scenario import directories, load
from tests.support.wait import settles

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

SETTLED = 0.25
"""For how many seconds a table has to stay as expected."""
INTERVAL = 0.08
SCENARIOS = {directory: load(directory) for directory in directories()}


@pytest.mark.parametrize("directory", SCENARIOS, ids=[path.name for path in SCENARIOS])
def test_every_scenario_has_a_live_expectation(directory: Path) -> None:
    assert any(step.expect.routes for step in SCENARIOS[directory].steps)


@pytest.mark.parametrize("directory", SCENARIOS, ids=[path.name for path in SCENARIOS])
def test_routers_hold_what_the_scenario_expects(
    directory: Path, no_namespaces: str | None, tmp_path: Path
) -> None:
    if no_namespaces is not None:
        pytest.skip(no_namespaces)
    scenario = SCENARIOS[directory]
    stages = plan(directory, scenario, tmp_path / "plan")
    kind = choose_router(stages, list(SCENARIOS).index(directory))
    with linked_namespaces() as link:
        lab = Lab(scenario, kind, stages, link, tmp_path)
        with lab.running():
            before = None
            tokens: dict[str, tuple[Far, str]] = {}
            for stage in stages:
                kept = {name: lab.held(stage, name) for name in stage.step.uninterrupted}
                resets = stage.resets(before)
                if resets:
                    # What is planned here has to be what the sessions show below.
                    planned = lab.planned(stage)
                    for name in resets.keys() - stage.step.passwords.keys() - stage.kept:
                        in_plan = name in planned or name.rpartition("/")[2] in planned
                        assert in_plan is resets[name], (name, planned)
                lab.carry_out(directory, stage)

                def check() -> dict[str, tuple[Far, str]]:
                    for name, prefixes in kept.items():  # noqa: B023
                        lost = prefixes - lab.held(stage, name)  # noqa: B023
                        if lost:
                            # Not an AssertionError, which would be waited for.
                            raise RuntimeError(f"{name} had to do without {sorted(lost)}")
                    lab.check(stage)  # noqa: B023
                    after = lab.tokens(stage)  # noqa: B023
                    for name, reset in resets.items():  # noqa: B023
                        same = after[name] == tokens[name]  # noqa: B023
                        assert same is not reset, f"{name}: reset is expected to be {reset}"
                    return after

                # Once more is enough, but where a moment counts: a session anew has another token.
                holding = INTERVAL if kept else SETTLED
                after = settles(
                    check, stays=SETTLED, interval=INTERVAL, holding=holding, context=lab.logs
                )
                lab.check_commands(stage)
                before, tokens = (stage, after) if lab.agent.daemon.running else (None, {})
