"""An instance in a VRF that the node does not have is that instance's problem."""

from __future__ import annotations

from reconcilers.intent.vrfs import missing_vrfs
from reconcilers.model import Instance, ObjectRef, Problem
from resources.host import Host, Vrf

ROUTER = ObjectRef("Router", "ns", "a")
DEFAULT = Instance("main", None, 65001, "192.0.2.1", dialect="ant")
RED = Instance("r", "red", 65001, "192.0.2.1", origin=ROUTER, dialect="ant")


def test_only_the_instance_whose_vrf_is_not_there_has_a_problem() -> None:
    blue = Instance("b", "blue", 65001, "192.0.2.1", dialect="ant")
    host = Host(vrfs=(Vrf("blue", 10),))
    text = "node n1 has no VRF 'red': the sessions of instance 'r' wait for it"
    assert list(missing_vrfs([DEFAULT, RED, blue], host, "n1")) == [
        Problem((ROUTER,), "", text, (), "unresolved", "ant")
    ]


def test_where_the_vrfs_are_not_known_there_is_no_problem() -> None:
    assert list(missing_vrfs([DEFAULT, RED], Host(), "n1")) == []
    assert len(list(missing_vrfs([DEFAULT, RED], Host(vrfs=()), "n1"))) == 1
