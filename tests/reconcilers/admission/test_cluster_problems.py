"""The problems of a cluster's objects: each once, with the nodes on which the objects have it."""

from __future__ import annotations

from reconcilers.admission.cluster_problems import cluster_problems
from reconcilers.dialect import Feeding
from resources.option_declarations import Options
from tests.reconcilers.admission.claims import ClaimDialect, claim
from tests.reconcilers.admission.test_review import A, Place


def test_a_problem_of_nodes_that_differ_in_what_they_lack_is_one() -> None:
    # Rack a has another object, so the racks are compiled one by one.
    place = Place(claim("one", 1, refersTo="x"), claim("two", 2, subject="other", labels=A))
    feeding = Feeding([ClaimDialect(place.tables, Options())])
    found = cluster_problems(feeding, place.db.snapshot(), ["a0", "b0"], "kube-system")
    ((problem, nodes),) = [(one.problem, one.nodes) for one in found]
    assert (problem.field, problem.message) == ("spec.refersTo", "x is not there")
    assert nodes == ("a0", "b0")
