"""`waggle explain` for MetalLB's Services: the step that decides, and its object."""

from __future__ import annotations

from typing import Any

import pytest

from reconcilers.dialect import Target
from reconcilers.metallb.node_facts import EXCLUDE_LABEL
from reconcilers.model import RouteExplanation
from tests.reconcilers.metallb.build import MetalLBNode
from tests.reconcilers.metallb.objects import advertisement, peer, pool
from tests.reconcilers.metallb.test_node import FRONT, endpoints, node, service

WEB = service("web", "198.18.30.5", tier="dev")
SELECTING = {"serviceSelectors": [{"matchLabels": {"tier": "prod"}}]}
PLAIN = (FRONT, advertisement("x"), endpoints("web"))


MANY = [f"1:{number}" for number in range(64)]


def explained(found: MetalLBNode) -> RouteExplanation:
    target = Target("shop/web", kind="Service", namespace="shop", name="web")
    [one] = [e for group in found.compiler.explainer().explain(target) for e in group]
    return one


@pytest.mark.parametrize(
    ("objects", "reason", "rule"),
    [
        (PLAIN, "Advertised", "x"),
        ((FRONT, advertisement("x")), "NoEndpoint", "x"),
        ((FRONT, endpoints("web")), "NotOwner", None),
        ((pool("p", "198.18.40.0/24"), advertisement("x")), "NoPool", None),
        ((FRONT, advertisement("x", **SELECTING)), "NoMatchingAdvertisement", "x"),
        ((FRONT, advertisement("x", peers=["b"]), endpoints("web")), "PeerNotSelected", "x"),
        ((*PLAIN, node(**{EXCLUDE_LABEL: ""})), "NodeExcluded", None),
        (
            (
                FRONT,
                advertisement("x", localPref=1, serviceSelectors=[{}]),
                advertisement("y", localPref=2),
            ),
            "LocalPreferenceConflict",
            "x",
        ),
        (
            (FRONT, advertisement("x", communities=MANY), endpoints("web")),
            "TooManyCommunities",
            "x",
        ),
        (
            (
                FRONT,
                advertisement("x", communities=MANY, aggregationLength=24),
                advertisement("y"),
                endpoints("web"),
            ),
            "Advertised",
            "y",
        ),
    ],
)
def test_each_step_has_a_reason(
    objects: tuple[dict[str, Any], ...], reason: str, rule: str | None
) -> None:
    found = MetalLBNode()
    found.put(node(), peer("a"), WEB)
    found.put(*objects)
    one = explained(found)
    assert (one.peer, one.reason) == ("203.0.113.9", reason)
    assert (one.rule and one.rule.name) == rule


def test_a_family_that_the_session_does_not_carry_is_the_reason() -> None:
    found = MetalLBNode()
    found.put(node(), peer("six", "2001:db8::9"), WEB, *PLAIN)
    one = explained(found)
    assert one.reason == "Family"


def test_an_aggregate_is_named() -> None:
    found = MetalLBNode()
    found.put(node(), peer("a"), WEB, FRONT, advertisement("x", aggregationLength=24))
    found.put(endpoints("web"))
    one = explained(found)
    assert (one.reason, one.message) == ("Advertised", "as a part of an aggregate of length 24")
