"""Every scenario, step by step, through `waggle render`'s code: offline, without an agent.

And through `waggle explain`'s, which has to come to the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cells.serve.items import explain_item
from reconcilers.compile_manifests import OfflineIntent, kinds_of
from reconcilers.dialect import Dialect, explained_kinds
from reconcilers.intent.explain import parse_target
from resources.manifests import load
from speaker.nlri import prefix_to_text
from tests.support import scenario
from tests.support.scenario import Question


@pytest.mark.parametrize("directory", scenario.directories(), ids=lambda path: path.name)
def test_the_rendered_intent_is_what_the_scenario_expects(directory: Path, tmp_path: Path) -> None:
    described = scenario.load(directory)
    dialects = described.dialects
    kinds = kinds_of(dialects)
    for step in described.steps:
        scenario.carry_out(directory, step, tmp_path)
        made = OfflineIntent(load([str(tmp_path)], kinds), dialects, described.settings)
        document = made.document()
        document["generated"] += made.rendered()
        assert not scenario.render_differences(step.expect, document), step.name
        assert explained(made) == advertised(document), step.name
        for question in step.expect.explain:
            found = answers(made, question, dialects)
            assert question.answered(found), (step.name, question)


def answers(
    made: OfflineIntent, question: Question, dialects: Iterable[type[Dialect]]
) -> list[dict[str, Any]]:
    """Return what is answered, as items of the API."""
    kinds = explained_kinds(dialects)
    groups = made.explainer().explain(
        parse_target(question.target, kinds),
        lambda _, *names: question.peer in (None, *names),
    )
    items = [explain_item(made.settings.node, verdict) for group in groups for verdict in group]
    found: list[dict[str, Any]] = msgspec.to_builtins(items)
    return found


def advertised(document: dict[str, Any]) -> dict[str, set[str]]:
    """Return the prefixes advertised to each peer, by the document."""
    return {
        name: {route["prefix"] for route in peer["advertise"]}
        for name, (_, peer) in scenario.peers_by_name(document).items()
    }


def explained(made: OfflineIntent) -> dict[str, set[str]]:
    """Return the prefixes advertised to each peer, by explanations, which evaluate the rules again."""
    document = made.document()
    names = {
        (instance["name"], peer["name"]): name
        for name, (instance, peer) in scenario.peers_by_name(document).items()
    }
    found: dict[str, set[str]] = {name: set() for name in names.values()}
    for group in made.explainer().explain():
        for verdict in group:
            assert bool(verdict.advertised) == (verdict.reason == "Advertised"), verdict
            assert verdict.advertised or verdict.message, verdict
            if verdict.family is not None and verdict.peer is not None:
                advertised = {prefix_to_text(verdict.family, nlri) for nlri in verdict.advertised}
                found[names[verdict.instance or "", verdict.peer]] |= advertised
    return found
