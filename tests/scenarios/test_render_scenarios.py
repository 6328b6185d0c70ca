"""Every scenario, step by step, through `waggle render`'s code: offline, without an agent.

And through `waggle explain`'s, which has to come to the same: each route has a chain that leads over a
rule to its object, each prefix of another step has the rule that stands in its way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from cells.serve.items import explain_item
from reconcilers.compile_manifests import CompiledManifests, kinds_of
from reconcilers.dialect import Dialect, explained_kinds
from reconcilers.intent.explain import NothingFoundError, parse_target
from reconcilers.model import ObjectRef, RouteExplanation
from reconcilers.prefixes import covers
from resources.manifests.load import load
from speaker.nlri import prefix_to_text, prefix_to_wire
from tests.support import scenario
from tests.support.explanations import Explained, documents
from tests.support.scenario import Question, Scenario, Step

SELECTING: Final = frozenset(
    {"CiliumBGPClusterConfig", "CiliumBGPPeeringPolicy", "BGPPeer", "BGPPolicy", "FRRConfiguration"}
)
"""Kinds whose objects give nodes peers."""

POOLS: Final = frozenset({"IPAddressPool"})
"""Kinds whose objects have networks of which no Service need have an address: no aggregate, then."""


@pytest.mark.parametrize("directory", scenario.directories(), ids=lambda path: path.name)
def test_the_rendered_intent_is_what_the_scenario_expects(directory: Path, tmp_path: Path) -> None:
    described = scenario.load(directory)
    dialects = described.dialects
    kinds = kinds_of(dialects)
    for step in described.steps:
        scenario.carry_out(directory, step, tmp_path)
        made = CompiledManifests(load([str(tmp_path)], kinds), dialects, described.settings)
        document = made.document()
        document["generated"] += made.rendered()
        assert not scenario.render_differences(step.expect, document), step.name
        verdicts = explanations(made)
        assert explained(made, verdicts) == advertised(document), step.name
        explained_step = Explained(made, documents(tmp_path))
        explained_step.check(verdicts)
        explained_step.check_origins(verdicts)
        prefixes = scenario_prefixes(described)
        check_absent(made, explained_step, verdicts, prefixes, step, tmp_path)
        for question in step.expect.explain:
            found = answers(made, question, dialects)
            assert question.answered(found), (step.name, question)


def answers(
    made: CompiledManifests, question: Question, dialects: Iterable[type[Dialect]]
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


def explanations(made: CompiledManifests) -> list[RouteExplanation]:
    """Return what is explained of every address at every peer."""
    return [verdict for group in made.explainer().explain() for verdict in group]


def explained(made: CompiledManifests, verdicts: Iterable[RouteExplanation]) -> dict[str, set[str]]:
    """Return the prefixes advertised to each peer, by explanations, which evaluate the rules again."""
    names = peer_names(made)
    prefixes: dict[str, set[str]] = {name: set() for name in names.values()}
    for verdict in verdicts:
        assert bool(verdict.advertised) == (verdict.reason == "Advertised"), verdict
        assert verdict.advertised or verdict.message, verdict
        if verdict.family is not None and verdict.peer is not None:
            sent = {prefix_to_text(verdict.family, nlri) for nlri in verdict.advertised}
            prefixes[names[verdict.instance or "", verdict.peer]] |= sent
    return prefixes


def peer_names(made: CompiledManifests) -> dict[tuple[str, str], str]:
    """Return the names that scenarios have for peers, by instance and peer."""
    return {
        (instance["name"], peer["name"]): name
        for name, (instance, peer) in scenario.peers_by_name(made.document()).items()
    }


def scenario_prefixes(described: Scenario) -> dict[str, set[str]]:
    """Return the prefixes that a peer has in any step, by peer."""
    prefixes: dict[str, set[str]] = {}
    for step in described.steps:
        for name, routes in step.expect.routes.items():
            prefixes.setdefault(name, set()).update(scenario.expected_routes(routes))
    return prefixes


def check_absent(
    made: CompiledManifests,
    explained_step: Explained,
    verdicts: Sequence[RouteExplanation],
    prefixes: dict[str, set[str]],
    step: Step,
    directory: Path,
) -> None:
    """Check that each prefix a peer must not have has its obstacle, or that nothing has it."""
    keys = {name: key for key, name in peer_names(made).items()}
    present = documents(directory)
    check_selectors(made, verdicts, present)
    everywhere = set[str]().union(*prefixes.values())
    for name, routes in step.expect.routes.items():
        for prefix in everywhere - scenario.expected_routes(routes).keys():
            context = (step.name, name, prefix)
            at_peer = [
                verdict
                for verdict in verdicts
                if verdict.family is not None
                and verdict.nlri is not None
                and prefix_to_text(verdict.family, verdict.nlri) == prefix
                and keys.get(name, (verdict.instance, verdict.peer))
                == (verdict.instance, verdict.peer)
            ]
            if at_peer:
                for verdict in at_peer:
                    # Of an address that is a part of an aggregate, another prefix is advertised.
                    assert verdict.nlri not in verdict.advertised, (context, verdict)
                continue
            found = answer(made, prefix, keys.get(name))
            if isinstance(found, str):
                check_sentence(made, found, prefix, verdicts)
                check_not_written(directory, present, prefix)
            else:
                assert found, context
                explained_step.check(found)
                ref = router_with(present, prefix)
                for verdict in found:
                    assert _text(verdict) != prefix or not verdict.advertised, (context, verdict)
                    # Of another node's object, or of an address within an aggregate that is sent.
                    wanted = prefix_to_wire(prefix)[1]
                    assert (verdict.object == ref and verdict.rule == ref) or any(
                        covers(nlri, wanted) for nlri in verdict.advertised
                    ), (context, verdict)


def answer(
    made: CompiledManifests, prefix: str, key: tuple[str, str] | None
) -> list[RouteExplanation] | str:
    """Return what is explained of a prefix at one peer, or the sentence that nothing has it."""
    try:
        return [
            verdict
            for group in made.explainer().explain(
                parse_target(prefix, {}), lambda instance, name, _: key in (None, (instance, name))
            )
            for verdict in group
        ]
    except NothingFoundError as error:
        return str(error)


def check_sentence(
    made: CompiledManifests, sentence: str, prefix: str, verdicts: Iterable[RouteExplanation]
) -> None:
    """Check the sentence that nothing has a prefix, and the nearest prefixes in it."""
    node = made.settings.node
    begins = f"nothing that node {node} could advertise contains {prefix}"
    before, _, nearest = sentence.partition("; the nearest: ")
    assert before == begins
    known = {_text(verdict) for verdict in verdicts}
    if nearest and known:
        assert set(nearest.split(", ")) <= known, sentence


def check_not_written(directory: Path, present: list[dict[str, Any]], prefix: str) -> None:
    """Check that no object has a prefix, but a pool may have the network."""
    if prefix.endswith(("/32", "/128")):
        address = prefix.rpartition("/")[0]
        assert not any(
            re.search(rf"(?<![\w.:]){re.escape(address)}(?![\w.:])", file.read_text())
            for file in directory.iterdir()
        ), prefix
    else:
        written = [item["kind"] for item in present if prefix in json.dumps(item)]
        assert set(written) <= POOLS, prefix


def _text(verdict: RouteExplanation) -> str | None:
    if verdict.family is None or verdict.nlri is None:
        return None
    return prefix_to_text(verdict.family, verdict.nlri)


def check_selectors(
    made: CompiledManifests, verdicts: Sequence[RouteExplanation], present: list[dict[str, Any]]
) -> None:
    """Check that a node without peers has the nearest object that selects others, with the labels."""
    selecting = {
        "/".join(filter(None, (item["kind"], metadata.get("namespace"), metadata["name"])))
        for item in present
        for metadata in [item["metadata"]]
        if item["kind"] in SELECTING
        and item.get("spec", {}).keys() & {"nodeSelector", "nodeSelectors"}
    }
    for verdict in verdicts:
        if verdict.reason == "NoPeers" and selecting:
            node = made.settings.node
            if "lists none" in verdict.message:
                continue  # one of them selects the node
            assert str(verdict.rule) in selecting, verdict
            assert f"of {verdict.rule}; node {node} has " in verdict.message, verdict


def router_with(present: list[dict[str, Any]], prefix: str) -> ObjectRef | None:
    """Return an FRRConfiguration with a router that has a prefix."""
    for item in present:
        if item["kind"] == "FRRConfiguration":
            for router in item["spec"].get("bgp", {}).get("routers", ()):
                if prefix in router.get("prefixes", ()):
                    metadata = item["metadata"]
                    return ObjectRef(item["kind"], metadata["namespace"], metadata["name"])
    return None
