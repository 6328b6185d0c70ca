"""Every scenario, step by step, through `waggle render`'s code: offline, without an agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconcilers.offline import render
from tests.support import scenario


@pytest.mark.parametrize("directory", scenario.directories(), ids=lambda path: path.name)
def test_scenario_rendered(directory: Path, tmp_path: Path) -> None:
    described = scenario.load(directory)
    for step in described.steps:
        scenario.carry_out(directory, step, tmp_path)
        document = render([str(tmp_path)], described.intent_options)
        assert not scenario.render_differences(step.expect, document), step.name
