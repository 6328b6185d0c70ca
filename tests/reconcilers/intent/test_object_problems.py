"""The problems of single objects: problems of tenants and of administrators are listed apart."""

from __future__ import annotations

from reconcilers.intent.object_problems import LISTED_OBJECTS, ObjectProblems, ProblemSource
from reconcilers.model import ObjectRef, Problem
from resources.core.kinds import SERVICE, SERVICE_CIDR
from resources.kind import Kinds

RANGE = ObjectRef("ServiceCIDR", "", "kubernetes")
"""An object of the administrator, which comes after all Services."""


def source(ref: ObjectRef) -> ProblemSource:
    return ProblemSource(ref, "cilium", "services", (ref.namespace, ref.name))


def test_problems_that_tenants_cause_hide_none_of_the_administrators() -> None:
    found = ObjectProblems(Kinds((SERVICE, SERVICE_CIDR)))
    for number in range(LISTED_OBJECTS + 1):
        ref = ObjectRef("Service", "a", f"s{number:04}")
        # It names the administrator's object, too, and the Service has caused it.
        found.put(source(ref), [Problem((ref, RANGE), "", "is within it", of_tenant=True)])
    of_administrator = Problem((RANGE,), "", "is no prefix")
    found.put(source(RANGE), [of_administrator])
    *of_tenants, last = found.rows()
    assert last == of_administrator
    assert len(of_tenants) == LISTED_OBJECTS + 1
    assert (of_tenants[-1].count, of_tenants[-1].message[:13]) == (1, "1 more object")
