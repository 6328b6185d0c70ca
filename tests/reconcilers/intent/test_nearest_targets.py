"""The sentence for an unknown target: of one node, and one in place of several nodes' sentences."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from reconcilers.intent.explain import parse_target
from reconcilers.intent.nearest_targets import nothing_found, nothing_on_nodes
from reconcilers.model import ObjectRef
from speaker.nlri import Family, prefix_to_wire

NOTHING = "nothing that any node could advertise"


class Candidate(NamedTuple):
    """A route of an object, whatever the dialect."""

    object: ObjectRef
    family: Family | None
    nlri: bytes | None
    type: str = "LoadBalancerIP"
    service_field: str | None = None
    in_pool: bool = False


def service(name: str, prefix: str) -> Candidate:
    family, nlri = prefix_to_wire(prefix)
    return Candidate(ObjectRef("Service", *name.split("/")), family, nlri)


def sentence(node: str, target: str, *candidates: Candidate) -> str:
    """Return the sentence of a node that could advertise these alone."""
    slices = nothing_found(node, parse_target(target, {}), [candidates])
    while True:
        try:
            next(slices)
        except StopIteration as end:
            return str(end.value)


NEAR = service("shop/web-1", "198.51.100.12/32")
NEARER = service("shop/web", "198.51.100.10/32")
OTHER = service("far/other", "203.0.113.0/24")


@pytest.mark.parametrize(
    ("target", "end"),
    [
        ("shop/wep", "is called shop/wep; the nearest: Service/shop/web, Service/shop/web-1"),
        ("svc/shop/wep", "is called svc/shop/wep; the nearest: Service/shop/web, Service/shop/web-1"),
        ("wep", "is called wep; the nearest: Service/shop/web"),
        ("198.51.100.11", "contains 198.51.100.11; the nearest: 198.51.100.10/32, 198.51.100.12/32"),
        ("2001:db8::1", "contains 2001:db8::1"),
        ("shop/quite-another", "is called shop/quite-another"),
    ],
)  # fmt: skip
def test_several_nodes_have_one_sentence_with_the_nearest_of_all(target: str, end: str) -> None:
    sentences = [
        sentence("a", target, NEAR, OTHER),
        sentence("b", target, NEARER),
        sentence("c", target),
    ]
    assert nothing_on_nodes(sentences, parse_target(target, {})) == f"{NOTHING} {end}"
    # Whatever the order in which nodes answer.
    assert nothing_on_nodes(sentences[::-1], parse_target(target, {})) == f"{NOTHING} {end}"


@pytest.mark.parametrize(
    "other", ["no peer is called tor-1", sentence("b", "shop/cart", NEARER), "nothing has shop/wep"]
)
def test_a_sentence_about_something_else_stays_its_own(other: str) -> None:
    sentences = [sentence("a", "shop/wep", NEARER), other]
    assert nothing_on_nodes(sentences, parse_target("shop/wep", {})) is None
