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
import yaml

from cells.serve.items import explain_item
from reconcilers.compile_manifests import CompiledManifests, kinds_of
from reconcilers.dialect import Dialect, explained_kinds
from reconcilers.intent.explain import NothingFoundError, parse_target
from reconcilers.model import ObjectRef, RouteExplanation
from resources.manifests.load import load
from speaker.nlri import prefix_to_text
from tests.support import scenario
from tests.support.scenario import Question, Scenario, Step

WITHOUT_RULE: Final = frozenset({"LeftOut", "LoadBalancerClass", "NodeExcluded"})
"""Reasons of the Service, the node or the peer itself, or that no object is such a rule."""
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
        check_chains(made, verdicts)
        check_obstacles(made, verdicts, scenario_prefixes(described), step, tmp_path)
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


def check_chains(made: CompiledManifests, verdicts: Iterable[RouteExplanation]) -> None:
    """Check that each advertised route leads over a rule to an object, and that both exist."""
    for verdict in verdicts:
        if verdict.advertised:
            assert verdict.object is not None, verdict
            for ref in (verdict.object, verdict.rule):
                assert ref is None or exists(made, ref), (ref, verdict)
            assert verdict.rule is not None, verdict


def exists(made: CompiledManifests, ref: ObjectRef) -> bool:
    """Return whether an object is in the manifests, or generated from them."""
    snapshot = made.db.snapshot()
    node = made.settings.node
    if ref == ObjectRef("Node", "", node) or (ref.kind, ref.namespace) == ("Interface", node):
        return True  # of the host, with or without an object
    kind = made.resources.kinds.named(ref.kind)
    if kind is not None and made.resources.of(kind).get(snapshot, (ref.namespace, ref.name)):
        return True
    return any(row.object == ref for row in made.intent.generated.all(snapshot))


def scenario_prefixes(described: Scenario) -> dict[str, set[str]]:
    """Return the prefixes that a peer has in any step, by peer."""
    prefixes: dict[str, set[str]] = {}
    for step in described.steps:
        for name, routes in step.expect.routes.items():
            prefixes.setdefault(name, set()).update(scenario.expected_routes(routes))
    return prefixes


def check_obstacles(
    made: CompiledManifests,
    verdicts: Sequence[RouteExplanation],
    prefixes: dict[str, set[str]],
    step: Step,
    directory: Path,
) -> None:
    """Check that each prefix a peer must not have has its obstacle, or no object at all."""
    names = peer_names(made)
    present = documents(directory)
    check_selectors(made, verdicts, present)
    without_rule = WITHOUT_RULE
    if not any(item["kind"] == "BGPAdvertisement" for item in present):
        without_rule |= {"NotOwner"}
    everywhere = set[str]().union(*prefixes.values())
    for name, routes in step.expect.routes.items():
        for prefix in everywhere - scenario.expected_routes(routes).keys():
            at_peer = [
                verdict
                for verdict in verdicts
                if verdict.family is not None
                and verdict.nlri is not None
                and prefix_to_text(verdict.family, verdict.nlri) == prefix
                and names.get((verdict.instance or "", verdict.peer or ""), name) == name
            ]
            if at_peer:
                for verdict in at_peer:
                    # Of an address that is a part of an aggregate, another prefix is advertised.
                    assert verdict.nlri not in verdict.advertised, (step.name, name, verdict)
                    assert verdict.rule or verdict.reason in without_rule, (step.name, verdict)
            elif ref := router_with(present, prefix):
                found = [
                    verdict
                    for group in made.explainer().explain(parse_target(prefix, {}))
                    for verdict in group
                ]
                assert any(v.object == ref or v.rule == ref for v in found), (step.name, prefix)
            elif prefix.endswith(("/32", "/128")):
                address = prefix.rpartition("/")[0]
                assert not any(
                    re.search(rf"(?<![\w.:]){re.escape(address)}(?![\w.:])", file.read_text())
                    for file in directory.iterdir()
                ), (step.name, name, prefix)
            else:
                # A network that no object of the node has, which is the answer.
                with pytest.raises(NothingFoundError, match=f"contains {re.escape(prefix)}(;|$)"):
                    list(made.explainer().explain(parse_target(prefix, {})))
                written = [item["kind"] for item in present if prefix in json.dumps(item)]
                assert set(written) <= POOLS, (step.name, name, prefix)


def documents(directory: Path) -> list[dict[str, Any]]:
    """Return the objects of the manifests as they are written."""
    found: list[dict[str, Any]] = []
    for file in directory.iterdir():
        if file.suffix == ".yaml":
            found += filter(None, yaml.safe_load_all(file.read_text()))
    return found


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
