"""Wrong, strange and large objects in a review: denied with object and field, whatever they have."""

from __future__ import annotations

from typing import Any

import pytest

from resources.kubernetes.admission import write_review
from tests.reconcilers.frrk8s.bad_objects import (
    BAD,
    OWN,
    STRANGE,
    WHOLE,
    of_router,
    paths,
    replaced,
)
from tests.reconcilers.frrk8s.build import configuration, neighbor
from tests.reconcilers.metallb import bad_objects as of_metallb
from tests.reconcilers.metallb.test_review import Cluster

RIGHT = configuration("bad", of_router(neighbor()))


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    """Return a node without other objects."""
    return Cluster()


def test_what_is_wrong_is_denied_with_its_field_and_what_is_not_is_admitted(
    cluster: Cluster,
) -> None:
    for bad in BAD:
        verdict = cluster.review(configuration("bad", bad.spec))
        text = " ".join((verdict.message, *verdict.warnings))
        assert (bad.field or "") in text or bad is OWN, bad.id
        if bad.field is None:
            assert verdict.allowed, (bad.id, verdict)
        assert len(verdict.message) < 4000
        assert all(len(warning) < 1000 for warning in verdict.warnings)


def test_a_bad_object_may_be_repaired_and_may_not_get_worse() -> None:
    bad = configuration("bad", of_router(neighbor(port=0)))
    cluster = Cluster(bad)
    assert cluster.review(RIGHT, bad).allowed
    assert cluster.review(bad, bad).allowed, "a label may be changed"
    worse = configuration("bad", of_router(neighbor(port=0), id="x"))
    verdict = cluster.review(worse, bad)
    assert not verdict.allowed
    assert "routers[0].id" in verdict.message
    others: tuple[Any, ...] = (None, [], 7, "x", {}, {"metadata": []})
    for old in others:
        assert cluster.review(RIGHT, old).allowed


def test_a_strange_value_in_any_field_is_reviewed(cluster: Cluster) -> None:
    values = [value for value in STRANGE if value != STRANGE[-1]]
    for path in paths(WHOLE):
        for value in values[:8]:
            _check(cluster, replaced(path, value))
    for kind in of_metallb.SPECIMENS:
        for path in of_metallb.fields(kind):
            for value in values[:4]:
                _check(cluster, of_metallb.changed(kind, path, value))


def _check(cluster: Cluster, value: dict[str, Any]) -> None:
    verdict = cluster.review(value)
    assert verdict.allowed or verdict.message
    assert len(verdict.message) < 4000


def test_an_object_that_is_wrong_everywhere_has_an_answer_of_limited_size(
    cluster: Cluster,
) -> None:
    value = configuration("bad", of_router(prefixes=["x"] * 20_000))
    verdict = cluster.review(value)
    assert not verdict.allowed
    answer = write_review("1", allowed=False, message=verdict.message, warnings=verdict.warnings)
    assert len(answer) < 10_000
    assert "19900 more entries are not checked" in verdict.message
    assert verdict.message.endswith("; and 81 more")
