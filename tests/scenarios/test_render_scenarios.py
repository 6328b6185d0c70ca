"""Every scenario, step by step, through `waggle render`'s code: offline, without an agent.

And through `waggle explain`'s, which has to come to the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconcilers.offline import Intended
from resources.manifests import load
from speaker.nlri import prefix_to_text
from tests.support import scenario


@pytest.mark.parametrize("directory", scenario.directories(), ids=lambda path: path.name)
def test_scenario_rendered(directory: Path, tmp_path: Path) -> None:
    described = scenario.load(directory)
    for step in described.steps:
        scenario.carry_out(directory, step, tmp_path)
        made = Intended(load([str(tmp_path)]), described.intent_options)
        document = made.document()
        assert not scenario.render_differences(step.expect, document), step.name
        assert explained(made) == advertised(document), step.name


def advertised(document: dict[str, Any]) -> dict[str, set[str]]:
    """Return what each peer is told, as the document says."""
    return {
        peer["name"]: {route["prefix"] for route in peer["advertise"]}
        for instance in document["instances"]
        for peer in instance["peers"]
    }


def explained(made: Intended) -> dict[str, set[str]]:
    """Return what each peer is told, as explanations say, which ask the rules anew."""
    found: dict[str, set[str]] = {peer: set() for peer in advertised(made.document())}
    for group in made.explanation().verdicts():
        for verdict in group:
            assert bool(verdict.told) == (verdict.reason == "Advertised"), verdict
            assert verdict.told or verdict.message, verdict
            if verdict.family is not None and verdict.peer is not None:
                found[verdict.peer] |= {prefix_to_text(verdict.family, n) for n in verdict.told}
    return found
